#!/bin/bash
# Builds the server for GPUs, its client and serving_ceiling_benchmark, and packs them
# with the libraries that they need: pack_server.sh [FOLDER]   (default .gpu)
# makes FOLDER/server.tar.xz, which tests/gpu/server/measure.py unpacks.
#
# Libraries beside libtorch's and what every Linux has travel along, as Debian has
# them: some have no archive to link. Environment: ARCHS, the GPUs (90: H100 and H200);
# CPU=1 packs the build for CPUs, to rehearse. Checks that nothing is missing and that
# the archive, with the repository, has at most 64 MiB.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-.gpu}
limit=$((64 << 20))
programs=(server/sfmamba_server client/sfmamba tests/server/ceiling/serving_ceiling_benchmark)
# They come with Ubuntu 24.04 and with Python's torch.
theirs='^(libtorch.*|libc10.*|libcu(da|dart|pti|dnn|blas|fft|rand|solver|sparse|file).*|libn(ccl|vshmem|vJitLink|vrtc|vToolsExt).*|libc\.so\.6|libm\.so\.6|libstdc\+\+\.so\.6|libgcc_s\.so\.1|libgomp\.so\.1|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-x86-64\.so\.2)$'

fail() {
  echo "pack_server: $*" >&2
  exit 1
}

options=(--config=cuda --define=cuda_archs="${ARCHS:-90}")
[ "${CPU:-}" != 1 ] || options=()

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/server/lib" "$work/programs" "$work/archives"

# build PROGRAM OPTION...
build() {
  local program=$1
  ${BAZEL:-bazel} build "${options[@]}" "${@:2}" "//${program%/*}:${program##*/}"
  cp -f "${BAZEL_BIN:-bazel-bin}/$program" "$work/programs/"
  strip -o "$work/server/${program##*/}" "${BAZEL_BIN:-bazel-bin}/$program"
}

# OpenCV alone is linked from its archives, without what is not called: its libraries
# need LAPACK and OpenGL, which would take a third of the archive. What is called brings
# a few functions along that name those two and are not called: any address will do.
ln -s /usr/lib/x86_64-linux-gnu/libopencv_{core,imgproc}.a "$work/archives/"
# shellcheck disable=SC2054  # It is one option.
archives=("-L$work/archives" -Wl,--gc-sections -lopencv_imgproc -lopencv_core -ltbb -lz)
for name in glXGetProcAddressARB cblas_{s,d,c,z}gemm \
  {s,d}{gels,geqrf,gesdd,gesv,getrf,posv,potrf}_; do
  archives+=("-Wl,--defsym=$name=main")
done
for program in "${programs[@]}"; do build "$program" "${archives[@]/#/--linkopt=}"; done

# ldd says "NAME => PATH (ADDRESS)" of all that is loaded, also indirectly; what only
# libtorch needs is its own. What ldd lacks, the other machine would lack too.
for program in "${programs[@]}"; do
  ldd "$work/programs/${program##*/}"
done | awk '$2 == "=>" {print $1, $3, $4}' | sort -u >"$work/needed"
while read -r name path rest; do
  [[ ! $name =~ $theirs ]] || continue
  [ "$path" != not ] || fail "$name is not found here: ${rest:-}"
  case $path in
    */torch/lib/* | */nvidia/*) continue ;;
  esac
  cp -L "$path" "$work/server/lib/$name"
done <"$work/needed"

# The closure once more, of what was packed alone.
torch=$(realpath "${LIBTORCH:-.deps/libtorch/torch}")/lib
for file in "$work"/server/sfmamba* "$work"/server/serving* "$work"/server/lib/*; do
  readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
done | sort -u | while read -r name; do
  [[ $name =~ $theirs ]] || [ -e "$work/server/lib/$name" ] || [ -e "$torch/$name" ] ||
    fail "$name is needed and was not packed"
done

mkdir -p "$folder"
rm -rf "$folder/server"  # Else measure.py would use what was unpacked before.
# The filter for x86 makes programs a tenth smaller.
tar -C "$work" --sort=name --owner=0 --group=0 -cf - server |
  xz --x86 --lzma2=preset="${PRESET:-9e}" >"$folder/server.tar.xz"
size=$(stat -c %s "$folder/server.tar.xz")
repository=$(git ls-files -z | xargs -0 stat -c %s | awk '{sum += $1} END {print sum}')
[ $((repository + size)) -le "$limit" ] ||
  fail "the repository and $folder/server.tar.xz have $((repository + size)) bytes, expected" \
    "at most $limit"
echo "pack_server: $folder/server.tar.xz, $((size >> 10)) KiB," \
  "$(find "$work/server/lib" -type f | wc -l) libraries; with the repository" \
  "$(((repository + size) >> 20)) of $((limit >> 20)) MiB"
