#!/bin/bash
# Builds the scan and the short convolution as operators of PyTorch, for ladder.py:
# build_operators.sh [FOLDER]   (default .gpu/operators)
# with Abseil's libraries beside them, whose archives cannot be part of a library.
#
# It needs no GPU, but nvcc 13 (CUDA_HOME, else /usr/local/cuda) and torch 2.11's
# headers and libraries (LIBTORCH, else .deps/libtorch/torch, by deploy/setup.sh
# --cuda); the machine with the GPU must have the same torch. ARCHS: see pack.sh.
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=${1:-.gpu/operators}
torch=$(realpath "${LIBTORCH:-.deps/libtorch/torch}")
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
runtime=$(find -L "$torch"/../nvidia/cu13/lib "$torch/lib" -name 'libcudart.so.13' | head -1)
for needed in "$nvcc" "$torch/lib/libtorch_cuda.so" "${runtime:-libcudart.so.13}"; do
  [ -e "$needed" ] || {
    echo "build_operators: no $needed" >&2
    exit 1
  }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

codes=()
archs=${ARCHS:-90}
for arch in ${archs//,/ }; do codes+=("-gencode=arch=compute_$arch,code=sm_$arch"); done
for source in kernels/scan/selective_scan*.cu kernels/sequence/depthwise_conv1d_cuda.cu; do
  echo "build_operators: $source"
  "$nvcc" -c "$source" -o "$work/$(basename "$source").o" -O3 -std=c++17 \
    --expt-relaxed-constexpr -compress-mode=size -Xcompiler=-fPIC \
    "${codes[@]}" -I. -Ikernels/cuda/nvcc
done
echo "build_operators: tests/gpu/torch/operators.cc"
g++ -shared -fPIC -O2 -std=c++17 -Wall -Wno-sign-compare -I. -isystem "$torch/include" \
  -isystem "$torch/include/torch/csrc/api/include" -isystem "$(dirname "$nvcc")/../include" \
  -o "$work/operators.so" tests/gpu/torch/operators.cc kernels/scan/scan_plan.cc "$work"/*.o \
  -L"$torch/lib" -ltorch_cuda -ltorch_cpu -lc10_cuda -lc10 "$runtime" \
  -Wl,--as-needed /usr/lib/x86_64-linux-gnu/libabsl_*.so -Wl,--allow-shlib-undefined \
  -Wl,-z,defs "-Wl,--disable-new-dtags,-rpath,\$ORIGIN"
rm -rf "$folder"
mkdir -p "$folder"
strip --strip-unneeded -o "$folder/sfmamba_operators.so" "$work/operators.so"
ldd "$work/operators.so" | awk '$1 ~ /^libabsl/ {print $3}' | xargs cp -L -t "$folder"
echo "build_operators: $folder, $(du -sk "$folder" | cut -f1) KiB"
