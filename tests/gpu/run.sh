#!/bin/bash
# Proves and measures every kernel and model on a machine with a GPU: README.md.
#
# run.sh [--budget=SECONDS] [--parts=NAME,...] [--again]
#
# Environment: SUITE, the program (.gpu/suite); PYTHON, 3.11 or later, with torch for
# CUDA 13 (python3); OUT, a folder that the results are copied to after each part.
cd "$(dirname "$0")/../.." || exit 1
export PYTHON=${PYTHON:-python3}
exec "$PYTHON" -B tests/gpu/driver/run.py "$@"
