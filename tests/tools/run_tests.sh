#!/bin/sh
# Debian's own Python, whatever else is on the PATH: it has NumPy.
exec /usr/bin/python3 -B tests/tools/run_tests.py
