"""Tests the errors of the package with and without the server's details. Also tests that other
packages in the process may define protobuf messages with the same names."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2

from sfmamba import VisionError, _errors, _messages


def packed(message):
    return any_pb2.Any(type_url='type.googleapis.com/' + message.DESCRIPTOR.full_name,
                       value=message.SerializeToString())


def status(*details, code=8, message='full'):
    made = _messages.Status(code=code, message=message)
    for detail in details:
        made.details.add().ParseFromString(detail.SerializeToString())
    return made


INFO = _messages.ErrorInfo(reason='QUEUE_FULL', domain='sfmamba.serving',
                           metadata={'queue': 'batch'})
BAD = _messages.BadRequest(field_violations=[{'field': 'images[2].encoded'}, {'field': 'model'}])
RETRY = _messages.RetryInfo()
RETRY.retry_delay.seconds, RETRY.retry_delay.nanos = 1, 500_000_000


class RpcError(grpc.RpcError):
    def __init__(self, code, details, trailers):
        self.code, self.details = lambda: code, lambda: details
        self.trailing_metadata = lambda: trailers


class ErrorsTest(unittest.TestCase):
    def test_all_details(self):
        error = _errors.from_status(status(packed(INFO), packed(BAD), packed(RETRY)))
        self.assertEqual(error.code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(error.message, 'full')
        self.assertEqual(error.reason, 'QUEUE_FULL')
        self.assertEqual(error.metadata, {'queue': 'batch'})
        self.assertEqual(error.fields, ('images[2].encoded', 'model'))
        self.assertEqual(error.field, 'images[2].encoded')
        self.assertEqual(error.retry_delay, 1.5)
        self.assertEqual(str(error), 'RESOURCE_EXHAUSTED (QUEUE_FULL): images[2].encoded: full; '
                                     'retry after 1.5 s')

    def test_a_field_is_said_once(self):
        error = VisionError(grpc.StatusCode.NOT_FOUND, 'model: no', fields=('model',))
        self.assertEqual(str(error), 'NOT_FOUND: model: no')

    def test_of_a_call(self):
        trailers = (('x', 'y'), ('grpc-status-details-bin',
                                 status(packed(INFO)).SerializeToString()))
        error = _errors.from_rpc_error(RpcError(grpc.StatusCode.NOT_FOUND, 'no', trailers))
        self.assertEqual((error.code, error.message, error.reason, error.retry_delay),
                         (grpc.StatusCode.NOT_FOUND, 'no', 'QUEUE_FULL', None))

    def test_without_or_with_unreadable_details(self):
        unreadable = any_pb2.Any(type_url='type.googleapis.com/google.rpc.ErrorInfo',
                                 value=b'\xff\xff')
        other = packed(duration_pb2.Duration(seconds=1))
        for trailers in (None, (), (('grpc-status-details-bin', b'\xff\xff'),),
                         (('grpc-status-details-bin',
                           status(unreadable, other).SerializeToString()),)):
            error = _errors.from_rpc_error(RpcError(grpc.StatusCode.INTERNAL, None, trailers))
            self.assertEqual((error.code, error.message, error.reason, error.fields),
                             (grpc.StatusCode.INTERNAL, '', '', ()))

    def test_a_code_that_grpc_does_not_know(self):
        self.assertEqual(_errors.from_status(status(code=99)).code, grpc.StatusCode.UNKNOWN)


class PoolTest(unittest.TestCase):
    def test_others_may_use_the_same_names(self):
        pool = descriptor_pool.Default()
        for name, package in [('google/rpc/status.proto', 'google.rpc'),
                              ('sfmamba/v1/vision.proto', 'sfmamba.v1')]:
            # Registers a different file under the same name, as another package may do. This fails
            # if sfmamba has registered its own file in the default pool.
            pool.AddSerializedFile(descriptor_pb2.FileDescriptorProto(
                name=name, package=package, message_type=[{'name': 'Status'}]).SerializeToString())
        self.assertEqual(len(pool.FindMessageTypeByName('google.rpc.Status').fields), 0)
        self.assertEqual(len(_messages.Status.DESCRIPTOR.fields), 3)

    def test_generated_stubs_are_imported_beside_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            stubs = pathlib.Path(folder, 'sfmamba', 'v1')
            stubs.mkdir(parents=True)
            (stubs / 'vision_pb2.py').touch()
            done = subprocess.run(
                [sys.executable, '-c',
                 'import sfmamba; from sfmamba.v1 import vision_pb2; sfmamba.Client'],
                env={**os.environ, 'PYTHONPATH': folder},
                capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ''))


if __name__ == '__main__':
    unittest.main()
