#!/bin/bash
# Runs the suite on a machine with a GPU: run.sh [STEP...]
#
#   tests      every kernel, and whole models
#   sanitizer  the kernels under compute-sanitizer
#   tune       the fold table of this card
#   benchmark  figures of the scan and of whole models
#   peers      PyTorch beside them
#
# Without a step all of them, in this order. Environment: SUITE, the program
# (.gpu/suite); OUT, the folder for logs and results (.gpu/results); PYTHON, one
# with torch for CUDA 13 (python3).
set -uo pipefail
cd "$(dirname "$0")/../.."
suite=${SUITE:-.gpu/suite}
out=${OUT:-.gpu/results}
python=${PYTHON:-python3}
mkdir -p "$out"

# libtorch is the one of Python's torch, with the CUDA libraries beside it.
torch=$($python -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent)') || exit 1
libraries=$torch/lib
for folder in "$torch"/../nvidia/*/lib; do libraries+=:$folder; done
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# The kernels alone: whole models, of other libraries' kernels for the most
# part, take the sanitizer too long.
kernels='--gtest_filter=-*Gpu*'

step() {  # NAME SECONDS COMMAND...: with its output in a log.
  local name=$1 seconds=$2
  shift 2
  echo "== $name"
  timeout "$seconds" "$@" >"$out/$name.log" 2>&1
  local status=$?
  tail -n 4 "$out/$name.log"
  if [ $status -ne 0 ]; then
    echo "== $name: exit status $status"
    failed=1
  fi
}

sanitizer() {
  for tool in memcheck racecheck initcheck synccheck; do
    step "$tool" 240 compute-sanitizer --tool=$tool --error-exitcode=3 \
      "$suite" "$kernels"
  done
}

failed=0
[ $# -gt 0 ] || set -- tests sanitizer tune benchmark peers
for name; do
  case $name in
    tests) step tests 420 "$suite" "--gtest_output=xml:$out/tests.xml" ;;
    sanitizer) sanitizer ;;
    tune) step tune 300 "$suite" "--tune=$out/fold_table.txt" ;;
    benchmark) step benchmark 540 "$suite" --benchmark --out="$out" ;;
    peers)
      step peers 420 "$python" tools/benchmark_peers/gpu.py --suite "$suite" \
        --variants T --seconds 0.5 --json "$out/peers.json"
      ;;
    *)
      echo "run: unknown step $name" >&2
      exit 2
      ;;
  esac
done
exit $failed
