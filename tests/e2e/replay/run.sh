#!/usr/bin/env bash
# Runs replay.py with the packages that deploy/setup.sh --interop fetches.
set -eu
cd "$(dirname "$0")/../../.."
PYTHONPATH=.deps/interop exec /usr/bin/python3 tests/e2e/replay/replay.py "$@"
