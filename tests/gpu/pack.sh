#!/bin/bash
# Builds //tests/gpu:suite and puts it where it can travel to a machine with a
# GPU: pack.sh [FOLDER]   (default .gpu)
#
# Checks what it needs there: libtorch for CUDA 13 and the libraries that every
# Linux has. At most 40 MiB.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-.gpu}
limit=$((40 << 20))
allowed='^(libtorch.*|libc10.*|libcudart\.so\.13|libc\.so\.6|libm\.so\.6|libstdc\+\+\.so\.6|libgcc_s\.so\.1|libgomp\.so\.1|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-x86-64\.so\.2)$'

${BAZEL:-bazel} build --config=cuda //tests/gpu:suite
mkdir -p "$folder"
strip -o "$folder/suite" "${BAZEL_BIN:-bazel-bin}/tests/gpu/suite"

needed=$(readelf -d "$folder/suite" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if foreign=$(grep -Ev "$allowed" <<<"$needed"); then
  echo "pack: the suite needs what a GPU machine may lack:" $foreign >&2
  exit 1
fi
size=$(stat -c %s "$folder/suite")
if [ "$size" -gt "$limit" ]; then
  echo "pack: the suite has $size bytes, expected at most $limit" >&2
  exit 1
fi
echo "pack: $folder/suite, $((size >> 20)) MiB, needs" $needed
