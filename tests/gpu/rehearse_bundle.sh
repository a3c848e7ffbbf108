#!/bin/bash
# Runs what `CPU=1 tests/gpu/pack_server.sh FOLDER` packed as on another machine: in a
# root directory that has glibc, libstdc++ and libtorch, and nothing else of this one.
# rehearse_bundle.sh [FOLDER]   (default .gpu)
#
# measure.py runs beside it, with tiny models on the CPU. Needs root, for chroot and
# mounts, which end with this process.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(realpath "${1:-.gpu}")
if [ "${REHEARSES:-}" != 1 ]; then
  [ "$(id -u)" = 0 ] || {
    echo "rehearse_bundle: needs root, for chroot" >&2
    exit 1
  }
  REHEARSES=1 exec unshare --mount "$0" "$folder"
fi
torch=$(realpath "${LIBTORCH:-.deps/libtorch/torch}")
root=$(mktemp -d)
trap 'umount -R "$root" && rm -rf "$root" && rm -rf "$work"' EXIT
work=$(mktemp -d)
mount -t tmpfs none "$root"

mkdir -p "$root"/{bundle,torch,nvidia,lib64,system,proc,dev,tmp,client/samples} "$root$work" "$work/bin"
tar -C "$root/bundle" --strip-components=1 -xJf "$folder/server.tar.xz"
mount --bind "$torch" "$root/torch"
[ ! -d "$torch/../nvidia" ] || mount --bind "$torch/../nvidia" "$root/nvidia"
mount --bind client/samples "$root/client/samples"
mount --bind "$work" "$root$work"
mount -t proc none "$root/proc"
mount --bind /dev "$root/dev"
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
for name in libc.so.6 libm.so.6 libstdc++.so.6 libgcc_s.so.1 libpthread.so.0 libdl.so.2 librt.so.1; do
  cp -L "$(gcc -print-file-name="$name")" "$root/system/"
done
for name in sfmamba_server sfmamba serving_ceiling_benchmark; do
  cat >"$work/bin/$name" <<END
#!/bin/bash
export LD_LIBRARY_PATH=/bundle/lib:/torch/lib:/nvidia/cu13/lib:/system
exec chroot "$root" "/bundle/$name" "\$@"
END
  chmod +x "$work/bin/$name"
done
/usr/bin/python3 -B tests/gpu/server/measure.py --out "$work/lines" --server "$work/bin" \
  --work "$work" --device=cpu --tiny --time_scale=0.3
