#!/usr/bin/env bash
# Runs the fuzzers: run.sh [MINUTES [FUZZER ...]], or run.sh --merge
#
# Builds all fuzzers, or only the named ones ("request image_header"). Runs each of
# them from its corpus of inputs. MINUTES (1 by default) is the time for all fuzzers
# together. Prints for each fuzzer how many inputs it ran and how much of the code
# they reached.
#
# A finding is an input that breaks a promise, leaks memory, takes over 5 s or
# 1 GiB, or causes an invalid memory access or undefined arithmetic. The exit status
# is then 1, and the line about the fuzzer names a file with the input.
#
# If the environment variable XML_OUTPUT_FILE names a file, each fuzzer is written
# to it as a test case in JUnit's form. FUZZ_SEED is the seed of the random numbers.
# If it is not set, each run has another seed.
#
# Inputs that reached new code stay in out/fuzz/corpus until the next run. --merge
# adds to the corpus those inputs that still reach new code.
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

# build FUZZER ... builds the fuzzers and sets $bin to their folder.
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

# report NAME [WHY] writes a test case. If WHY is given, the case has failed.
report() {
  echo "<testcase classname=\"fuzz\" name=\"$1\">${2:+<failure>$2</failure>}</testcase>" \
    >>"$OUT/cases"
}

# fuzz NAME SECONDS runs a fuzzer. Returns false if there is a finding.
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
