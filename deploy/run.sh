#!/usr/bin/env bash
# Sets up this machine, builds, serves models/ and shows what they make of the
# sample pictures: what photographs and renders show, and by detectors and
# segmenters, where models/ has them, annotated pictures in out/.
#
#   deploy/run.sh [--once] [--port N] [--device cpu|cuda|auto]
#
# The server listens on 127.0.0.1, gRPC on N (8001), HTTP on N - 1, /metrics on
# N + 1, until Ctrl-C; with --once it is stopped after the demonstration. It is built
# for the CPU; for NVIDIA GPUs with --device cuda, which needs one and its driver, or
# auto, which runs on the CPU where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

START_LIMIT=120  # Seconds until the server must be healthy,
STOP_LIMIT=30    # and until it must have stopped.

say() { echo "run: $*"; }

usage() {
  echo "usage: deploy/run.sh [--once] [--port N] [--device cpu|cuda|auto], 2 <= N <= 65534" >&2
  exit 2
}

once=false
port=8001
device=cpu
while [ $# -gt 0 ]; do
  case "$1" in
    --once) once=true ;;
    --port) shift; port=${1:-} ;;
    --port=*) port=${1#--port=} ;;
    --device) shift; device=${1:-} ;;
    --device=*) device=${1#--device=} ;;
    -h | --help)
      sed -n '2,/^set /s/^# \?//p' deploy/run.sh
      exit
      ;;
    *) usage ;;
  esac
  shift || usage
done
case "$device" in
  cpu) setup=() build=() ;;
  cuda | auto) setup=(--cuda --cuda-runtime) build=(--config=cuda) ;;
  *) usage ;;
esac
if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]] || [ "$port" -lt 2 ] ||
  [ "$port" -gt 65534 ]; then usage; fi
address=127.0.0.1:$port
http=http://127.0.0.1:$((port - 1))/
metrics=http://127.0.0.1:$((port + 1))/metrics

server=
log=$(mktemp "${TMPDIR:-/tmp}/sfmamba_server.XXXXXX.log")

running() { [ -n "$server" ] && kill -0 "$server" 2>/dev/null; }

# Asks the server to stop; its exit code.
stop_server() {
  kill -TERM "$server" 2>/dev/null || true
  for ((i = 0; i < STOP_LIMIT * 10; ++i)); do
    running || break
    sleep 0.1
  done
  if running; then
    say "the server does not stop; killing it" >&2
    kill -KILL "$server"
  fi
  local status=0
  wait "$server" || status=$?
  server=
  return $status
}

# Whatever ends this script, no server is left behind.
clean_up() {
  if running; then stop_server || true; fi
  rm -f "$log"
}
trap clean_up EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT

fail() {
  say "$*" >&2
  if [ -s "$log" ]; then
    say "the end of the server's log:" >&2
    tail -n 20 "$log" >&2
  fi
  exit 1
}

deploy/setup.sh "${setup[@]}" || fail "set-up failed"
say "building (the first time takes minutes)"
bazel build --color=no --show_progress_rate_limit=30 "${build[@]}" \
  //server:sfmamba_server //client:sfmamba || fail "the build failed"

say "starting the server on $address"
# In a session of its own: Ctrl-C reaches this script alone, which then stops it.
setsid bazel-bin/server/sfmamba_server --model_repository=models \
  --host=127.0.0.1 --port="$port" --http_port=$((port - 1)) \
  --metrics_port=$((port + 1)) \
  --device="$device" --drain_delay=0s --drain_timeout=10s 2>"$log" </dev/null &
server=$!

sfmamba() { bazel-bin/client/sfmamba "$@" --server "$address"; }

healthy() {
  # Its own log first: another server on the port would be healthy, too.
  grep -q '"msg":"listening"' "$log" &&
    sfmamba health --service=sfmamba.v1.VisionService --deadline=1s &>/dev/null
}

for ((i = 0; ; ++i)); do
  healthy && break
  if ! running; then
    status=0
    wait "$server" || status=$?
    fail "the server ended with exit code $status"
  fi
  [ $i -lt $((START_LIMIT * 5)) ] ||
    fail "the server is not healthy after $START_LIMIT s"
  sleep 0.2
done
say "the server is healthy; its models:"
models=$(sfmamba models) || fail "listing the models failed"
echo "$models"
serves() { grep -q " $1 " <<<"$models"; }

show() {  # The verb, flags and pictures.
  say "sfmamba $*, and where the server's time went:"
  sfmamba "$@" --timing --deadline=60s || fail "sfmamba $1 failed"
}
samples=client/samples
if serves CLASSIFICATION; then
  show classify --top_k=3 $samples/{coffee,chelsea,camera,rocket,astronaut}.jpg
  show classify --model=everyday --top_k=3 $samples/render_*.jpg
fi
if serves DETECTION; then
  show detect --output_dir=out $samples/*.jpg
fi
if serves SEGMENTATION; then show segment --output_dir=out $samples/*.jpg; fi
if serves DETECTION || serves SEGMENTATION; then
  say "annotated pictures: $PWD/out"
fi
say "metrics: $metrics; REST and the console: $http"

if $once; then
  stop_server || fail "the server stopped with exit code $?"
  say "done; the server has stopped"
  exit 0
fi

say "serving on $address until Ctrl-C; try: bazel-bin/client/sfmamba help"
trap 'say "stopping"; stop_server && exit 0; fail "the server stopped with exit code $?"' INT TERM
status=0
wait "$server" || status=$?
fail "the server ended by itself with exit code $status"
