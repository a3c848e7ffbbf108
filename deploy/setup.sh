#!/usr/bin/env bash
# Sets up a Debian 12 machine to build and run this project: Debian packages and
# libtorch. Seconds when there is nothing to do.
#
# LIBTORCH=/path/to/libtorch uses that libtorch 2.11 instead of fetching one.
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(
  g++ unzip ca-certificates python3 python3-pip
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev libjpeg-dev libpng-dev libwebp-dev libexif-dev libssl-dev
  libopencv-core-dev libopencv-imgproc-dev python3-numpy
  prometheus-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev
)
# promtool, which lints /metrics in the tests, comes in this package. Its
# service is not wanted: only the program is unpacked.
PROMTOOL_PACKAGE=prometheus

# The PyPI wheel of torch and the two CUDA runtime libraries that its CPU part
# names; requirements in pip's hash-checking form.
WHEELS='torch==2.11.0 --hash=sha256:7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cupti==13.0.85 --hash=sha256:4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8'

say() { echo "setup: $*"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

install_packages() {
  local missing=()
  for package in "${PACKAGES[@]}"; do
    installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} = 0 ]; then
    say "Debian packages: all ${#PACKAGES[@]} present"
    return
  fi
  say "Debian packages: installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" >/dev/null
}

install_promtool() {
  if command -v promtool >/dev/null || [ -x .deps/promtool ]; then
    return
  fi
  say "promtool: unpacking it from the package $PROMTOOL_PACKAGE"
  local folder=.deps/promtool.partial
  mkdir -p "$folder"
  (cd "$folder" && apt-get download -qq "$PROMTOOL_PACKAGE" &&
    dpkg-deb -x "$PROMTOOL_PACKAGE"_*.deb .)
  mv "$folder/usr/bin/promtool" .deps/promtool
  rm -rf "$folder"
}

install_libtorch() {
  if [ -n "${LIBTORCH:-}" ]; then
    say "libtorch: $LIBTORCH (LIBTORCH)"
    return
  fi
  local wanted
  wanted=$(echo "$WHEELS" | sha256sum | cut -c1-64)
  if [ "$(cat .deps/libtorch/.complete 2>/dev/null)" = "$wanted" ]; then
    say "libtorch: present"
    return
  fi
  say "libtorch: fetching torch 2.11.0 (530 MB)"
  rm -rf .deps/libtorch .deps/wheels
  mkdir -p .deps/libtorch .deps/wheels
  echo "$WHEELS" >.deps/wheels/requirements.txt
  python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --require-hashes -r .deps/wheels/requirements.txt -d .deps/wheels \
    --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 \
    --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64
  unzip -q .deps/wheels/torch-*.whl -d .deps/libtorch \
    'torch/include/*' torch/lib/libtorch_cpu.so torch/lib/libc10.so \
    'torch/lib/libgomp*'
  for wheel in .deps/wheels/nvidia_*.whl; do
    unzip -q "$wheel" 'nvidia/cu13/lib/*.so*' -d .deps/libtorch
  done
  rm -rf .deps/wheels
  echo "$wanted" >.deps/libtorch/.complete
}

if [ "$(uname -m)" != x86_64 ]; then
  say "this project builds on x86-64; this machine is $(uname -m)" >&2
  exit 1
fi
mkdir -p .deps
install_packages
install_promtool
install_libtorch
say "done"
