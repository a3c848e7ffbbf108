#!/bin/sh
# run_in_venv.sh FOLDER PATTERN [MODULE...]: runs the folder's tests in a new
# virtual environment. It builds the wheel of client/python with pip and
# installs the wheel, its dependencies and the MODULEs. All packages come from
# the wheels that deploy/setup.sh has downloaded. If there are none, reports one
# skipped case.
set -e
wheels=$PWD/../python_client/wheels
if [ ! -d "$wheels" ]; then
  echo "deploy/setup.sh has not fetched the wheels of the Python client"
  exec tests/testing/run_python_tests.sh "$@" sfmamba
fi
unset PYTHONPATH
export GRPC_VERBOSITY=NONE  # Tests provoke errors, which gRPC would log.
others=$PWD/../python_client
export PIP_NO_INDEX=1 PIP_FIND_LINKS="$wheels $others/batch $others/ray" PIP_NO_CACHE_DIR=1 \
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# pip writes files next to the sources, so it gets a copy.
mkdir -p "$TEST_TMPDIR/source/client"
cp -rL client/python "$TEST_TMPDIR/source/client/python"
cp -rL proto "$TEST_TMPDIR/source/proto"
chmod -R u+w "$TEST_TMPDIR/source"
/usr/bin/python3 -m pip wheel --quiet --no-deps --wheel-dir "$TEST_TMPDIR" \
  "$TEST_TMPDIR/source/client/python"
/usr/bin/python3 -m venv --without-pip "$TEST_TMPDIR/venv"
folder=$1 pattern=$2
shift 2
# If a module has no wheel, run_python_tests.py skips the tests because the
# module is missing.
found=
for module; do
  if ls "$others"/*/"$module"-*.whl >/dev/null 2>&1; then found="$found $module"; fi
done
/usr/bin/python3 -m pip --python "$TEST_TMPDIR/venv/bin/python" install --quiet --no-compile \
  "$TEST_TMPDIR"/sfmamba-*.whl pillow $found
exec "$TEST_TMPDIR/venv/bin/python" -B tests/testing/run_python_tests.py "$folder" "$pattern" "$@"
