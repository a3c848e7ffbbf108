#!/usr/bin/env bash
# Runs the fuzzers: run.sh [MINUTES [FUZZER ...]], or run.sh --merge
#
# Builds them and runs each, or those named ("request image_header"), from its
# corpus; they share MINUTES (1). Says how many inputs each ran and how much of the
# code they reached. It is a finding if an input breaks a promise, touches memory
# or does arithmetic that it must not, leaks, or takes over 5 s or 1 GiB: then the
# exit status is 1, and the line about the fuzzer names a file with the input.
# Where the environment variable XML_OUTPUT_FILE names a file, each fuzzer is
# written there as a test case in JUnit's form. FUZZ_SEED is the number that chance
# starts from: another in each run unless it is set.
#
# Inputs that reached more of the code lie in out/fuzz/corpus until the next run;
# --merge adds those to the corpus that do so still.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

OUT=out/fuzz
CORPUS=tests/fuzz/corpus
LIMITS=(-timeout=5 -rss_limit_mb=1024 -malloc_limit_mb=256)

say() { echo "fuzz: $*"; }

all_fuzzers() {
  local file
  for file in tests/fuzz/*_fuzz.cc; do basename "$file" _fuzz.cc; done
}

# build FUZZER ...: afterwards they lie in $bin.
build() {
  bazel build --config=fuzz --color=no --show_progress_rate_limit=30 \
    "${@/%/_fuzz}" || { say "the build failed"; exit 1; }
  bin=$(bazel info --config=fuzz bazel-bin 2>/dev/null)/tests/fuzz
}

merge() {
  local name
  for name in "${fuzzers[@]}"; do
    [ -d "$OUT/corpus/$name" ] || continue
    mkdir -p "$CORPUS/$name"
    "$bin/${name}_fuzz" -merge=1 "$CORPUS/$name" "$OUT/corpus/$name" 2>&1 |
      grep 'MERGE-OUTER.*new files' || true
  done
}

# report NAME [WHY]: a test case, failed if there is a WHY.
report() {
  echo "<testcase classname=\"fuzz\" name=\"$1\">${2:+<failure>$2</failure>}</testcase>" \
    >>"$OUT/cases"
}

# fuzz NAME SECONDS: false after a finding.
fuzz() {
  local name=$1 log=$OUT/$1.log found runs edges all
  mkdir -p "$OUT/corpus/$name"
  "$bin/${name}_fuzz" "${LIMITS[@]}" -max_total_time="$2" -print_final_stats=1 \
    -seed="${FUZZ_SEED:-0}" -artifact_prefix="$OUT/$name-" "$OUT/corpus/$name" "$CORPUS/$name" >"$log" 2>&1
  local status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
  all=$(sed -n 's/.*Loaded 1 modules *(\([0-9]*\) inline.*/\1/p' "$log")
  if [ $status = 0 ]; then
    say "$name: ${runs:-0} inputs, $edges of $all edges reached"
    report "$name"
    return
  fi
  found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
  say "$name: finding: ${found:-none was written}, see $log"
  grep -m 3 -E 'broken promise|^==[0-9]+== ?(ERROR|libFuzzer)|SUMMARY|runtime error' "$log"
  report "$name" "${found:-exit status $status}; see $log"
  return 1
}

run() {
  local seconds=$((60 * minutes / ${#fuzzers[@]})) findings=0 name
  [ $seconds -gt 0 ] || seconds=1
  rm -rf "$OUT"
  mkdir -p "$OUT"
  for name in "${fuzzers[@]}"; do
    fuzz "$name" $seconds || findings=$((findings + 1))
  done
  if [ -n "${XML_OUTPUT_FILE:-}" ]; then
    echo "<testsuite name=\"fuzz\">$(cat "$OUT/cases")</testsuite>" >"$XML_OUTPUT_FILE"
  fi
  say "${#fuzzers[@]} fuzzers, $findings with findings"
  [ $findings = 0 ]
}

mapfile -t fuzzers < <(all_fuzzers)
minutes=1
case "${1:-}" in
  --merge) ;;
  '' | *[!0-9]*)
    [ -z "${1:-}" ] || {
      echo "fuzz: unknown argument $1; usage: run.sh [MINUTES [FUZZER ...]] or run.sh --merge" >&2
      exit 2
    }
    ;;
  *)
    minutes=$1
    [ $# = 1 ] || fuzzers=("${@:2}")
    ;;
esac
build "${fuzzers[@]/#///tests/fuzz:}"
if [ "${1:-}" = --merge ]; then merge; else run; fi
