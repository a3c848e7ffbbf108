#!/bin/bash
# Builds //tests/gpu:suite and puts it where it can travel to a machine with a
# GPU: pack.sh [FOLDER]   (default .gpu)
#
# Environment: ARCHS, the GPUs it is for (90: H100 and H200). Checks that it needs
# only libtorch for CUDA 13 and the libraries that every Linux has, that it has at
# most 30 MiB, and with the repository and what else is in FOLDER at most 64 MiB.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-.gpu}
limit=$((30 << 20))
limit_of_all=$((64 << 20))
allowed='^(libtorch.*|libc10.*|libcudart\.so\.13|libc\.so\.6|libm\.so\.6|libstdc\+\+\.so\.6|libgcc_s\.so\.1|libgomp\.so\.1|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-x86-64\.so\.2)$'

fail() {
  echo "pack: $*" >&2
  exit 1
}

${BAZEL:-bazel} build --config=cuda --define=cuda_archs="${ARCHS:-90}" //tests/gpu:suite
mkdir -p "$folder"
strip -o "$folder/suite" "${BAZEL_BIN:-bazel-bin}/tests/gpu/suite"

needed=$(readelf -d "$folder/suite" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if foreign=$(grep -Ev "$allowed" <<<"$needed"); then
  fail "the suite needs what a GPU machine may lack:" $foreign
fi
size=$(stat -c %s "$folder/suite")
[ "$size" -le "$limit" ] || fail "the suite has $size bytes, expected at most $limit"

repository=$(git ls-files -z | xargs -0 stat -c %s | awk '{sum += $1} END {print sum}')
all=$((repository + $(du -sb "$folder" | cut -f1)))
[ "$all" -le "$limit_of_all" ] ||
  fail "the repository and $folder have $all bytes, expected at most $limit_of_all"
echo "pack: $folder/suite, $((size >> 20)) MiB; with all that travels $((all >> 20)) MiB; needs" $needed
