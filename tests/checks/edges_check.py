"""Checks that Bazel refuses dependencies that the layers do not allow.

An edge is a dependency of a package on a target. The check adds a target `edge` with such
dependencies to a copy of each package's BUILD file. Bazel reads the copies instead of the
originals. Bazel analyses the targets and builds nothing.
"""

import pathlib
import subprocess
import tempfile
import unittest

import sources

# Each entry is a package and a target that it must not depend on. The comment of an entry says why.
# For example, "kernels -> model" means that the layer kernels must not depend on the layer model.
# "server, upwards" means that the target is in a higher package of the same layer.
FORBIDDEN = (
    ('kernels/scan', '//model:config'),  # kernels -> model
    ('kernels/scan', '//server/observability:metrics'),  # kernels -> server
    ('kernels/pixels', '//kernels/detection:nms'),  # kernels, upwards
    ('model/engine', '//proto:vision'),  # model -> proto
    ('model', '//server/observability:metrics'),  # model -> server
    ('client/commands', '//server/errors:error'),  # client -> server
    ('client/commands', '//model:config'),  # client -> model
    ('server', '//kernels/scan:selective_scan'),  # server -> kernels
    # server -> internals of model
    ('server/rpc', '//model/engine:vision_model'),
    ('server/image', '//server/batching:batcher'),  # server, upwards
    ('server/rpc', '//server/api/kserve:infer'),  # server, upwards
    ('server/shares', '//server/threads:fair_queue'),  # server, upwards
    ('server/rpc/wire', '//server/rpc:call'),  # server, upwards
    ('server/call', '//server/rpc:call'),  # server, upwards
    ('server/api/vision', '//server/rpc:call'),  # a method -> a transport
    ('server/api/vision', '//server/rest:call_headers'),  # a method -> a transport
    ('server/api/kserve', '//server/rpc:grpc_status'),  # a method -> a transport
    ('server/rest', '//server/rpc:call'),  # one transport -> another
    # server: methods must use server/prediction instead
    ('server/api/kserve', '//server/batching:batcher'),
)
# Each entry is a package and a target that it may depend on.
ALLOWED = (
    ('kernels/segmentation', '//kernels/pixels:resize_taps'),
    ('model/ops', '//kernels/scan:selective_scan'),
    ('client/rpc', '//proto:rpc'),
    ('server', '//model:vision_model'),
    ('server/rpc/stream', '//server/api/kserve:infer'),
)

TARGET = '''
cc_library(
    name = "edge",
    deps = {deps},
)
'''


def analyse(edges):
    """Adds only these dependencies and lets Bazel analyse them. Returns (Bazel's exit status, its
    error output)."""
    with tempfile.TemporaryDirectory() as folder:
        for package in {package for package, _ in edges}:
            build = pathlib.Path(folder, package, 'BUILD')
            build.parent.mkdir(parents=True, exist_ok=True)
            deps = [label for source, label in edges if source == package]
            own = (sources.ROOT / package / 'BUILD').read_text(encoding='utf-8')
            build.write_text(own + TARGET.format(deps=deps))
        done = subprocess.run(
            ['bazel', 'build', '--nobuild', '--keep_going', '--color=no', '--noshow_progress',
             f'--package_path={folder}:%workspace%',
             *(f'//{package}:edge' for package, _ in edges)],
            cwd=sources.ROOT, capture_output=True, text=True)
    return done.returncode, done.stderr


class EdgesCheck(unittest.TestCase):
    def test_forbidden_edges_do_not_build(self):
        status, said = analyse(FORBIDDEN)
        self.assertNotEqual(status, 0, said)
        for package, label in FORBIDDEN:
            with self.subTest(f'{package} -> {label}'):
                self.assertIn(f"target '{label}' is not visible from target '//{package}:edge'",
                              said)

    def test_allowed_edges_build(self):
        status, said = analyse(ALLOWED)
        self.assertEqual(status, 0, said)


if __name__ == '__main__':
    unittest.main()
