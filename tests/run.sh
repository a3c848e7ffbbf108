#!/usr/bin/env bash
# Proves that the project works: run.sh [--fast [REVISION] | --sanitize]
#
# Sets up this machine, builds everything and runs every test; then builds the
# server and the suite for GPUs, which needs none, and checks the kernels that came
# out; runs the fuzzers for a minute, and some tests with sanitizers; last, what
# tests/checks says of the sources. The last line is "N passed, N failed", counted
# from the test cases' own reports.
#
# --fast is a developer's loop, after a run of everything: the tests that depend on
# what changed since REVISION (HEAD), but for slow ones, and the sources' format.
#
# --sanitize runs, with ThreadSanitizer, the tests of what threads share and, with
# AddressSanitizer and UndefinedBehaviorSanitizer, all unit tests on the CPU: hours
# on a small machine, which compiles all of it twice more.
#
# TORCH_PYTHON=/path/to/python runs the tests of tools/pytorch and models/recipe too, where
# that Python has what their README.md name; setting it up would take 3 GB.
set -uo pipefail
cd "$(dirname "$0")/.."

start=$(date +%s)
say() { echo "tests: $* ($(($(date +%s) - start)) s)"; }

fail() {
  say "$1"
  echo "0 passed, 1 failed"
  exit 1
}

build() {
  bazel build --color=no --show_progress_rate_limit=30 "$@" || fail "the build failed"
}

# What is tested with sanitizers, as Bazel's query language has it. First what is
# short: where many threads meet, and where the bytes of others are read, but for
# what needs libtorch.
TSAN_SHORT='//tests/server/threads:all + //tests/server/shares:all + //tests/server/host:all
  + //tests/server/batching:all + //tests/server/http:all + //tests/server/observability:all'
ASAN_SHORT='//tests/base:all - //tests/base:coco_rle_test + //tests/server/http:all
  + //tests/server/rest/kserve:json_test + //tests/server/call/wire:wire_cursor_test'
TSAN_ALL="$TSAN_SHORT + //tests/server/prediction/... + //tests/server/repository/...
  + //tests/server/call/... + //tests/server/api/... + //tests/server/rpc/...
  + //tests/server/rest:all + //tests/server/security/... + //tests/server/tracing/...
  + //tests/server:server_test + //tests/server:cancellation_test
  - //tests/server/prediction:sliding_network_test"  # libtorch's OpenMP is not seen.
ASAN_ALL='//tests/... - //tests/e2e/... - //tests/gpu/... - //tests/fuzz/...
  + //tests/e2e/attacks:random_calls_attack_test
  + //tests/e2e/attacks:random_requests_attack_test'
# They count allocations by a malloc of their own.
COUNT_ALLOCATIONS='rdeps(//tests/..., //tests/testing:allocations, 1)'
# They measure how long things take, or the process's memory, both of which are
# several times as much with a sanitizer.
MEASURE=PredictionTest.WhatIsStillToBeDecodedCountsForMaxQueueWait
MEASURE+=:BadImageTest.APngThatUnpacksToMuchCostsLittle
MEASURE+=:VisionRoutesTest.WhatPicturesCameInIsFreedBeforeTheModelRuns

# run_tests ARGUMENT...: fails unless they ran, passed or not.
run_tests() {
  bazel test --color=no --show_progress_rate_limit=30 --test_output=errors \
    --test_env=PATH --test_env=PYTHONPATH --test_env=TORCH_PYTHON \
    --build_tests_only "$@"
  local status=$?
  # 3: some test failed. 4: there were no tests. Others: the run itself broke.
  [ $status = 0 ] || [ $status = 3 ] || fail "bazel test ended with $status"
}

# sanitize CONFIG QUERY: those of its C++ tests; adds them to $sanitized.
sanitize() {
  local labels logs
  labels=$(bazel query --noshow_progress "kind(cc_test, tests($2)) - $COUNT_ALLOCATIONS" 2>/dev/null)
  [ -n "$labels" ] || fail "no tests were chosen for $1"
  say "running $(grep -c . <<<"$labels") test targets with --config=$1"
  # shellcheck disable=SC2086  # Labels have no spaces.
  run_tests --config="$1" --keep_going --test_filter="-$MEASURE" \
    --test_timeout=180,900,2700,7200 $labels
  logs=$(bazel info --config="$1" bazel-testlogs 2>/dev/null)
  sanitized+=$(sed "s|\$| $logs|" <<<"$labels")$'\n'
}
sanitized=

# check PATTERN: those of tests/checks; their cases are in $reports/checks.xml.
check() {
  XML_OUTPUT_FILE=$reports/checks.xml tests/testing/run_python_tests.sh tests/checks "$1"
}

# count LABELS: says what came of these tests and of the checks and fuzzers.
count() {
  local own
  own=$(find "$reports" -name '*.xml')
  # shellcheck disable=SC2086  # Names have no spaces.
  echo "$1" | python3 tests/checks/count_results.py bazel-testlogs $own
}

test_everything() {
  say "building //..."
  build //...
  say "running the tests"
  run_tests //...
  say "building for GPUs"
  build --config=cuda //server:sfmamba_server //tests/gpu:suite
  run_tests --config=cuda //tests/kernels/cuda:compile_test
  say "running the fuzzers"
  # The same inputs in each run, as far as a minute goes: a test of what changed.
  FUZZ_SEED=1 XML_OUTPUT_FILE=$reports/fuzz.xml tests/fuzz/run.sh 1
  # A finding is counted.
  [ -f "$reports/fuzz.xml" ] || fail "the fuzzers did not run"
  sanitize tsan "$TSAN_SHORT"
  sanitize asan "$ASAN_SHORT"
  say "checking the sources"
  check '*_check.py'
  say "counting"
  count "$(bazel query --noshow_progress 'tests(//...)' 2>/dev/null)"$'\n'"$sanitized"
}

test_sanitized() {
  sanitize tsan "$TSAN_ALL"
  sanitize asan "$ASAN_ALL"
  say "counting"
  count "$sanitized"
}

# test_changed [REVISION]
test_changed() {
  check '[fp]*_check.py'  # The quick ones: format_ and plain_english_.
  local tests
  tests=$(python3 -B tests/checks/affected_tests.py "$@") || fail "no tests were chosen"
  say "running $(grep -c . <<<"$tests") test targets"
  # shellcheck disable=SC2086  # Labels have no spaces.
  [ -z "$tests" ] || run_tests $tests
  say "counting"
  count "$tests"
}

reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
export PATH="$PWD/.deps:$PATH" PYTHONPATH="$PWD/.deps/python:$PWD/.deps/interop"
case "${1:-}" in
  --fast) test_changed "${@:2:1}" ;;
  --sanitize) test_sanitized ;;
  '')
    deploy/setup.sh --cuda --checks --interop || fail "set-up failed"
    test_everything
    ;;
  *)
    echo "tests: unknown argument $1; usage: run.sh [--fast [REVISION] | --sanitize]" >&2
    exit 2
    ;;
esac
