#!/bin/sh
# Uses Debian's Python even if PATH has another one, because it has the packages
# that deploy/setup.sh installs. With --torch as the first argument, uses the
# Python that TORCH_PYTHON names.
python=/usr/bin/python3
if [ "$1" = --torch ]; then
  python=${TORCH_PYTHON:-$python}
  shift
fi
exec "$python" -B tests/testing/run_python_tests.py "$@"
