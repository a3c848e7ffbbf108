#!/bin/sh
# Debian's own Python, whatever else is on the PATH: it has the packages that
# deploy/setup.sh installs.
exec /usr/bin/python3 -B tests/testing/run_python_tests.py "$@"
