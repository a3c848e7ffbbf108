#!/usr/bin/env bash
# Builds the CPU image of deploy/Dockerfile as on a clean machine, and tests it:
#
#   tests/e2e/image_test.sh
#
# It needs no container engine. buildah builds the image on a Debian 12 made by
# debootstrap. The server runs as the image's user in the image's root, which is
# mounted read-only. The test needs root, the package mirrors and 12 GB of disk,
# and takes as long as a clean build. BAZEL_FLAGS are flags for the build, such
# as --jobs=2. BAZEL_CACHE is a folder that keeps build results, so that the
# next run compiles only what has changed.
set -euo pipefail

BUDGET_MB=900  # Megabytes of the image.
START_LIMIT=60  # Seconds until the server must be healthy.
STOP_LIMIT=40  # Seconds until the server must have stopped.

if [ "$(id -u)" != 0 ]; then
  echo "image: needs root, to make and enter root file systems" >&2
  exit 1
fi
# A separate mount namespace, whose mounts vanish with it.
if [ "${1:-}" != --in-namespace ]; then
  exec unshare --mount --propagation private "$0" --in-namespace
fi

cd "$(dirname "$0")/../.."

start=$(date +%s)
say() { echo "image: $* ($(($(date +%s) - start)) s)"; }
fail() {
  say "$*" >&2
  exit 1
}

for package in buildah debootstrap; do
  if ! command -v "$package" >/dev/null; then
    say "installing $package"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
  fi
done

work=$(mktemp -d "${TMPDIR:-/var/tmp}/sfmamba_image.XXXXXX")
b() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
server=
clean_up() {
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
  umount -l "$work/root/tmp" "$work/root/proc" "$work/root" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT

# The base is Debian's smallest system, with this machine's access to the
# package mirrors.
say "making a Debian 12"
debootstrap --variant=minbase bookworm "$work/base" \
  >"$work/debootstrap.log" || fail "debootstrap failed: $(tail -n 5 "$work/debootstrap.log")"
cp -r /etc/apt/sources.list.d/*.sources "$work/base/etc/apt/sources.list.d/" 2>/dev/null &&
  rm -f "$work/base/etc/apt/sources.list"
mkdir -p "$work"/base/{etc/ssl/certs,usr/local/share/ca-certificates}
for file in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  if [ -f "$file" ]; then cp "$file" "$work/base$file"; fi
done
cp -r /usr/local/share/ca-certificates/. "$work/base/usr/local/share/ca-certificates/"
container=$(b from scratch)
b copy --quiet "$container" "$work/base" / >/dev/null
b commit --quiet --rm "$container" sfmamba-base >/dev/null
rm -r "$work/base"

flags=${BAZEL_FLAGS:-}
cache=()
if [ -n "${BAZEL_CACHE:-}" ]; then
  mkdir -p "$BAZEL_CACHE"
  cache=(--volume "$(realpath "$BAZEL_CACHE"):/var/cache/bazel")
  flags+=" --disk_cache=/var/cache/bazel"
fi

say "building the image"
b build --isolation chroot --format docker --file deploy/Dockerfile --target cpu \
  --build-arg BASE=localhost/sfmamba-base --build-arg BAZEL_FLAGS="$flags" "${cache[@]}" \
  --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
  --tag sfmamba:cpu . >"$work/build.log" 2>&1 ||
  fail "the build failed: $(tail -n 30 "$work/build.log")"
grep '^stage:' "$work/build.log" || true

container=$(b from localhost/sfmamba:cpu)
root=$(b mount "$container")
size=$(du -sm --apparent-size "$root" | cut -f1)
libtorch=$(stat -c %s "$root/usr/lib/x86_64-linux-gnu/libtorch_cpu.so")
say "the image is built: $size MiB, of which libtorch_cpu.so $((libtorch >> 20)) MiB"
[ "$size" -le $BUDGET_MB ] || fail "expected at most $BUDGET_MB MiB"

# The image's own file list must name exactly its files.
listed=$(python3 -c 'import json, sys
for file in json.load(open(sys.argv[1]))["files"]: print(file["fileName"])' \
  "$root/usr/share/sfmamba/sbom.spdx.json" | sort)
held=$(cd "$root" && find . -type f -not -path ./usr/share/sfmamba/sbom.spdx.json | sort)
[ "$listed" = "$held" ] || fail "the SBOM differs: $(diff <(echo "$listed") <(echo "$held"))"
say "the SBOM lists its $(wc -l <<<"$held") files"
[ "$(stat -c %a "$root/var/cache/sfmamba")" = 1777 ] ||
  fail "a volume over /var/cache/sfmamba could not be written"

# The settings that an engine reads from the image's configuration.
config() { b inspect --type image --format "{{$1}}" localhost/sfmamba:cpu; }
list() { b inspect --type image --format "{{range $1}}{{println .}}{{end}}" localhost/sfmamba:cpu; }
[ "$(config .Docker.Config.User)" = 65532:65532 ] || fail "the user is $(config .Docker.Config.User)"
[ "$(config .Docker.Config.StopSignal)" = SIGTERM ] || fail "the stop signal is not SIGTERM"
mapfile -t command < <(list .Docker.Config.Entrypoint; list .Docker.Config.Cmd)
mapfile -t command < <(printf '%s\n' "${command[@]}" | grep .)
mapfile -t check < <(list .Docker.Config.Healthcheck.Test | grep -v -x -e CMD -e '')
say "it runs: ${command[*]}"

# Mounts the image's root like an engine: read-only, with /proc, and with the
# sample pictures at /tmp.
touch "$work/built"
mkdir "$work/root"
mount --bind "$root" "$work/root"
mkdir -p "$root/proc"
mount -o remount,bind,ro "$work/root"
mount -t proc proc "$work/root/proc"
mount --bind client/samples "$work/root/tmp"
mount -o remount,bind,ro "$work/root/tmp"
inside() { chroot --userspec=65532:65532 "$work/root" "$@"; }

: >"$work/log"
env -i "$(type -P chroot)" --userspec=65532:65532 "$work/root" "${command[@]}" \
  --port=0 --http_port=0 --metrics_port=0 2>"$work/log" &
server=$!
port_of() { grep -m 1 '"msg":"listening"' "$work/log" | grep -o "\"$1\":[0-9]*" | cut -d: -f2; }
for ((i = 0; ; ++i)); do
  if [ -n "$(port_of port)" ] &&
    inside "${check[@]}" --server="127.0.0.1:$(port_of port)" &>/dev/null; then
    break
  fi
  kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat "$work/log")"
  [ $i -lt $((START_LIMIT * 10)) ] || fail "not healthy: $(cat "$work/log")"
  sleep 0.1
done
address=127.0.0.1:$(port_of port)
say "the server is healthy, by the image's own check"

uids=$(awk '/^Uid:/ {print $2, $3, $4, $5}' "/proc/$server/status")
[ "$uids" = "65532 65532 65532 65532" ] || fail "its user ids are $uids"

inside /usr/bin/sfmamba models --server="$address"
answer=$(inside /usr/bin/sfmamba classify --server="$address" --top_k=3 /tmp/render_01.jpg) ||
  fail "Classify failed: $answer"
echo "$answer"
[ "$(wc -l <<<"$answer")" = 4 ] || fail "expected three answers"
metrics=$(python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' \
  "http://127.0.0.1:$(port_of metrics_port)/metrics")
grep -q 'sfmamba_requests_total{code="OK",method="Classify"' <<<"$metrics" ||
  fail "/metrics does not count the request"

kill -TERM "$server"
for ((i = 0; i < STOP_LIMIT * 10; ++i)); do
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
status=0
kill -0 "$server" 2>/dev/null && fail "it does not stop"
wait "$server" || status=$?
server=
[ $status = 0 ] || fail "it stopped with exit code $status"
written=$(find "$root" -newer "$work/built" -not -path "$root/proc" -not -path "$root")
[ -z "$written" ] || fail "it wrote $written"
say "it stopped as asked and wrote nothing"
echo "1 passed, 0 failed"
