#!/usr/bin/env bash
# Sets up a Debian 12 machine to build and run this project: Debian packages and
# libtorch. Seconds when there is nothing to do.
#
# setup.sh [--cuda] [--cuda-runtime] [--checks]
#   --cuda          also what `bazel build --config=cuda` needs: nvcc, unless
#                   CUDA_HOME or /usr/local/cuda has it; the CUDA part of libtorch;
#                   cuobjdump and nvdisasm for tests. It needs no GPU. Where an
#                   NVIDIA driver is installed it includes the next.
#   --cuda-runtime  also what programs need that were built so, cuBLAS, cuDNN and
#                   others: 3 GB. They then run on the CPU where there is no GPU.
#   --checks        also clang and clang-format, which tests/checks reads the sources
#                   with.
#
# LIBTORCH=/path/to/libtorch uses that libtorch 2.11 instead of fetching one.
set -euo pipefail
cd "$(dirname "$0")/.."

CUDA=
CUDA_RUNTIME=
CHECKS=
for argument; do
  case "$argument" in
    --cuda) CUDA=yes ;;
    --cuda-runtime) CUDA_RUNTIME=yes ;;
    --checks) CHECKS=yes ;;
    *)
      echo "setup: unknown argument $argument; usage: setup.sh [--cuda] [--cuda-runtime] [--checks]" >&2
      exit 2
      ;;
  esac
done

PACKAGES=(
  g++ unzip ca-certificates python3 python3-pip
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev libjpeg-dev libpng-dev libwebp-dev libssl-dev
  libopencv-core-dev libopencv-imgproc-dev
  python3-numpy python3-yaml python3-jsonschema
  prometheus-cpp-dev libcpp-httplib-dev libgtest-dev libgmock-dev libbenchmark-dev
)
# The version is Debian 12's: the next one formats some lines otherwise.
CHECK_PACKAGES=(clang-14 clang-format-14)
# promtool and prometheus, which the tests run, come in this package. Its service
# is not wanted: only the programs are unpacked.
PROMETHEUS_PACKAGE=prometheus

# The PyPI wheel of torch and the two CUDA runtime libraries that its CPU part
# names; requirements in pip's hash-checking form.
WHEELS='torch==2.11.0 --hash=sha256:7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cupti==13.0.85 --hash=sha256:4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8'

# Wheels that carry the schemas which manifests are tested against: data, not code.
SCHEMA_WHEELS='kubernetes-validate==1.37.0 --hash=sha256:85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9
docker-compose==1.29.2 --hash=sha256:8d5589373b35c8d3b1c8c1182c6e4a4ff14bffa3dd0b605fcd08f73c94cef809'

# Scores detections in the test of the default models' accuracy.
PYTHON_WHEELS='pycocotools==2.0.11 --hash=sha256:18ba75ff58cedb33a85ce2c18f1452f1fe20c9dd59925eec5300b2bf6205dbe1'

# The torch wheel's files: to build, and to link with --config=cuda. What
# libtorch_cuda.so loads besides an NVIDIA driver stands in cuda-runtime.txt; it
# finds that through its RPATH below .deps/libtorch/nvidia.
TORCH_FILES=('torch/include/*' torch/lib/libtorch_cpu.so torch/lib/libc10.so
  'torch/lib/libgomp*')
TORCH_CUDA_FILES=(torch/lib/libtorch_cuda.so torch/lib/libc10_cuda.so
  torch/lib/libtorch_nvshmem.so torch/lib/libcaffe2_nvrtc.so
  torch/lib/libtorch_cuda_linalg.so)

# nvcc with its headers, and the disassembler that tests count instructions with.
NVCC_WHEELS='nvidia-cuda-nvcc==13.0.88 --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
nvidia-nvvm==13.0.88 --hash=sha256:c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
nvidia-cuda-crt==13.0.88 --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
nvidia-cuda-cccl==13.0.85 --hash=sha256:e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548'
DISASSEMBLER_WHEELS='nvidia-cuda-cuobjdump==13.2.78 --hash=sha256:394087411405b846bf43aa52ca2ff603bbe18b3b8a1257cda0903e23c17bdbf3
nvidia-cuda-nvdisasm==13.2.78 --hash=sha256:b4ebcd3c5046bf8039ac52675b9dbefd843600969649ecaab0a42b0713a61dae'

say() { echo "setup: $*"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

installed() { [ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" = 'install ok installed' ]; }

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

install_prometheus() {
  if { command -v promtool && command -v prometheus; } >/dev/null ||
    [ -x .deps/prometheus ]; then
    return
  fi
  say "prometheus: unpacking its programs from the package $PROMETHEUS_PACKAGE"
  local folder=.deps/prometheus.partial
  rm -rf "$folder"
  mkdir -p "$folder"
  (cd "$folder" && apt-get download -qq "$PROMETHEUS_PACKAGE" &&
    dpkg-deb -x "$PROMETHEUS_PACKAGE"_*.deb .)
  mv "$folder/usr/bin/promtool" "$folder/usr/bin/prometheus" .deps/
  rm -rf "$folder"
}

install_schemas() {
  local folder=.deps/schemas wanted
  wanted=$(echo "$SCHEMA_WHEELS" | sha256sum | cut -c1-64)
  if [ "$(cat $folder/.complete 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  say "schemas: fetching those of Kubernetes and Compose"
  rm -rf $folder
  mkdir -p $folder/wheels
  echo "$SCHEMA_WHEELS" >$folder/wheels/requirements.txt
  python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --require-hashes -r $folder/wheels/requirements.txt -d $folder/wheels
  for version in 1.29 1.37; do
    unzip -p $folder/wheels/kubernetes_validate-*.whl \
      "*/v$version.0-local-strict/_definitions.json" >$folder/kubernetes-$version.json
  done
  unzip -p $folder/wheels/docker_compose-*.whl \
    compose/config/compose_spec.json >$folder/compose.json
  rm -rf $folder/wheels
  echo "$wanted" >$folder/.complete
}

checksum() { sha256sum | cut -c1-64; }

# fetch_wheels REQUIREMENTS FOLDER: x86-64 wheels, whatever Python runs pip.
fetch_wheels() {
  rm -rf "$2"
  mkdir -p "$2"
  echo "$1" >"$2/requirements.txt"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --require-hashes -r "$2/requirements.txt" -d "$2" \
    --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    --platform manylinux_2_25_x86_64 --platform manylinux_2_18_x86_64 \
    --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    --platform manylinux_2_12_x86_64 --platform manylinux2010_x86_64
}

install_libtorch() {
  if [ -n "${LIBTORCH:-}" ]; then
    say "libtorch: $LIBTORCH (LIBTORCH)"
    return
  fi
  local wanted files=()
  wanted=$(echo "$WHEELS" | checksum)
  if [ "$(cat .deps/libtorch/.complete 2>/dev/null)" != "$wanted" ]; then
    rm -rf .deps/libtorch
    files+=("${TORCH_FILES[@]}")
  fi
  if [ -n "$CUDA" ] && [ "$(cat .deps/libtorch/.complete-cuda 2>/dev/null)" != "$wanted" ]; then
    files+=("${TORCH_CUDA_FILES[@]}")
  fi
  if [ ${#files[@]} = 0 ]; then
    say "libtorch: present"
    return
  fi
  say "libtorch: fetching torch 2.11.0 (530 MB)"
  fetch_wheels "$WHEELS" .deps/wheels
  mkdir -p .deps/libtorch
  unzip -q -o .deps/wheels/torch-*.whl -d .deps/libtorch "${files[@]}"
  for wheel in .deps/wheels/nvidia_*.whl; do
    unzip -q -n "$wheel" 'nvidia/cu13/lib/*.so*' -d .deps/libtorch
  done
  rm -rf .deps/wheels
  echo "$wanted" >.deps/libtorch/.complete
  [ -z "$CUDA" ] || echo "$wanted" >.deps/libtorch/.complete-cuda
}

# install_wheels NAME REQUIREMENTS FOLDER: unpacks them there, once.
install_wheels() {
  local wanted
  wanted=$(echo "$2" | checksum)
  if [ "$(cat "$3/.complete" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  say "$1: fetching"
  rm -rf "$3"
  fetch_wheels "$2" "$3/wheels"
  for wheel in "$3"/wheels/*.whl; do
    unzip -q -o "$wheel" -x '*.dist-info/*' -d "$3"
  done
  rm -rf "$3/wheels"
  echo "$wanted" >"$3/.complete"
}

has_driver() { ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 ' || command -v nvidia-smi >/dev/null; }

install_cuda_runtime() {
  if [ -n "${LIBTORCH:-}" ]; then
    say "CUDA run-time libraries: those beside $LIBTORCH (LIBTORCH)"
    return
  fi
  local wanted
  wanted=$(checksum <deploy/cuda-runtime.txt)
  if [ "$(cat .deps/libtorch/.complete-cuda-runtime 2>/dev/null)" = "$wanted" ]; then
    say "CUDA run-time libraries: present"
    return
  fi
  say "CUDA run-time libraries: fetching (2 GB)"
  fetch_wheels "$(cat deploy/cuda-runtime.txt)" .deps/wheels
  for wheel in .deps/wheels/*.whl; do
    unzip -q -o "$wheel" 'nvidia/*/lib/*.so*' -d .deps/libtorch
  done
  rm -rf .deps/wheels
  echo "$wanted" >.deps/libtorch/.complete-cuda-runtime
}

install_cuda() {
  if [ -n "${CUDA_HOME:-}" ]; then
    say "nvcc: that of $CUDA_HOME (CUDA_HOME)"
  elif [ -x /usr/local/cuda/bin/nvcc ]; then
    say "nvcc: that of /usr/local/cuda"
  else
    install_wheels nvcc "$NVCC_WHEELS" .deps/cuda
  fi
  install_wheels "CUDA disassembler" "$DISASSEMBLER_WHEELS" .deps/cuda-disassembler
}

if [ "$(uname -m)" != x86_64 ]; then
  say "this project builds on x86-64; this machine is $(uname -m)" >&2
  exit 1
fi
mkdir -p .deps
[ -z "$CHECKS" ] || PACKAGES+=("${CHECK_PACKAGES[@]}")
install_packages
install_prometheus
install_schemas
install_wheels pycocotools "$PYTHON_WHEELS" .deps/python
install_libtorch
[ -z "$CUDA" ] || install_cuda
if [ -n "$CUDA_RUNTIME" ] || { [ -n "$CUDA" ] && has_driver; }; then
  install_cuda_runtime
fi
say "done"
