#!/usr/bin/env bash
# Sets up this machine, builds everything and runs every test; then builds the
# server and the suite for GPUs, which needs none, and checks the kernels that came
# out; last, what tests/checks says of the sources. The last line is "N passed,
# N failed", counted from the test cases' own reports.
#
# TORCH_PYTHON=/path/to/python runs the tests of tools/pytorch too, where that Python
# has what tools/pytorch/README.md names; setting it up would take 3 GB.
set -uo pipefail
cd "$(dirname "$0")/.."

start=$(date +%s)
say() { echo "tests: $* ($(($(date +%s) - start)) s)"; }

fail() {
  say "$1"
  echo "0 passed, 1 failed"
  exit 1
}

deploy/setup.sh --cuda --checks || fail "set-up failed"
export PATH="$PWD/.deps:$PATH" PYTHONPATH="$PWD/.deps/python"
build() {
  bazel build --color=no --show_progress_rate_limit=30 "$@" || fail "the build failed"
}
say "building //..."
build //...

# run_tests ARGUMENT...: fails unless they ran, passed or not.
run_tests() {
  bazel test --color=no --show_progress_rate_limit=30 --test_output=errors \
    --test_env=PATH --test_env=PYTHONPATH --test_env=TORCH_PYTHON \
    --test_env=OMP_WAIT_POLICY=passive \
    --build_tests_only "$@"
  local status=$?
  # 3: some test failed. 4: there were no tests. Others: the run itself broke.
  [ $status = 0 ] || [ $status = 3 ] || fail "bazel test ended with $status"
}
say "running the tests"
run_tests //...
say "building for GPUs"
build --config=cuda //server:sfmamba_server //tests/gpu:suite
run_tests --config=cuda //tests/kernels/cuda:compile_test
say "checking the sources"
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
XML_OUTPUT_FILE=$reports/checks.xml tests/testing/run_python_tests.sh tests/checks '*_check.py'
say "counting"
bazel query --noshow_progress 'tests(//...)' 2>/dev/null |
  python3 tests/count_results.py bazel-testlogs "$reports/checks.xml"
