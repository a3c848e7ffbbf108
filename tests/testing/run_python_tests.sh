#!/bin/sh
# Debian's own Python, whatever else is on the PATH: it has the packages that
# deploy/setup.sh installs. With --torch first, the one that TORCH_PYTHON names.
python=/usr/bin/python3
if [ "$1" = --torch ]; then
  python=${TORCH_PYTHON:-$python}
  shift
fi
exec "$python" -B tests/testing/run_python_tests.py "$@"
