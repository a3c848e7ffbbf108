#!/bin/bash
# Builds mamba-ssm from PyPI for sm_90 alone, for tools/benchmark_peers/gpu.py to
# measure: build_peer.sh [FOLDER]   (default .gpu/peer)
#
# It needs no GPU, but nvcc 13 (CUDA_HOME, else /usr/local/cuda), 8 GB of disk for
# a while and the Python of the machine with the GPU: PYTHON, a 3.12 (python3.12).
# That machine's torch must be 2.11.0 too.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(realpath -m "${1:-.gpu/peer}")
python=${PYTHON:-python3.12}
limit=$((16 << 20))

package='mamba-ssm==2.3.2.post1 --hash=sha256:104cc47e9101e5401a675fa2b784f2952b9b037f3b1dd83b5ac544394e95d028'

export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
[ -x "$CUDA_HOME/bin/nvcc" ] || {
  echo "build_peer: no nvcc in $CUDA_HOME; set CUDA_HOME" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "build_peer: torch 2.11.0 (3 GB, deleted afterwards)"
"$python" -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip install torch==2.11.0 numpy ninja packaging setuptools wheel einops

# setup.py names nine architectures and wants line numbers; nvcc gets one of the
# former and none of the latter, which the machine code does not depend on.
cat >"$work/nvcc" <<'END'
#!/bin/bash
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    -gencode)
      if [ "$2" = arch=compute_90,code=sm_90 ]; then arguments+=("$1" "$2"); fi
      shift
      ;;
    -lineinfo) ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
exec "$CUDA_HOME/bin/nvcc" "${arguments[@]}" -compress-mode=size
END
chmod +x "$work/nvcc"

echo "build_peer: ${package%% *}"
echo "$package" >"$work/requirements.txt"
PATH="$work/venv/bin:$PATH" PYTORCH_NVCC="$work/nvcc" TORCH_CUDA_ARCH_LIST=9.0 \
  MAX_JOBS=${MAX_JOBS:-$(nproc)} MAMBA_FORCE_BUILD=TRUE \
  pip --no-cache-dir install --no-deps --no-build-isolation --no-binary mamba-ssm \
  --require-hashes -r "$work/requirements.txt" --target "$work/peer"
strip "$work"/peer/selective_scan_cuda*.so
find "$work/peer" -name __pycache__ -prune -exec rm -r {} +

# All that can be tried without a GPU: it loads beside this torch.
PYTHONPATH="$work/peer:tools/benchmark_peers" "$work/venv/bin/python" -B -c '
import sys
import gpu
function, version = gpu.mamba_ssm_scan()
if function is None:
    sys.exit(f"build_peer: mamba-ssm does not load: {version}")
print(f"build_peer: mamba-ssm {version} loads")'

rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$work/peer" "$folder"
size=$(du -sb "$folder" | cut -f1)
if [ "$size" -gt "$limit" ]; then
  echo "build_peer: $folder has $size bytes, expected at most $limit" >&2
  exit 1
fi
echo "build_peer: $folder, $((size >> 20)) MiB"
