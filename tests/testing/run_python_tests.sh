#!/bin/sh
# Uses Debian's Python, because it has the packages that deploy/setup.sh
# installs. PATH may have another Python. If the first argument is --torch, uses
# the Python that TORCH_PYTHON names.
python=/usr/bin/python3
if [ "$1" = --torch ]; then
  python=${TORCH_PYTHON:-$python}
  shift
fi
exec "$python" -B tests/testing/run_python_tests.py "$@"
