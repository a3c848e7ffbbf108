"""Tests the Python client, installed from its wheel, on a server with TLS and tokens."""

import pathlib
import sys
import tempfile
import unittest

import grpc
import sfmamba

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # Helpers of the e2e tests.

from keys import Keys
from model_server import SAMPLES, Server

PICTURE = SAMPLES / 'camera.jpg'
PATIENCE = 60  # The time limit of each call, in seconds.


def setUpModule():
    global keys, server, roots
    keys = Keys(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    keys.give('camera', 'camera-token', 'INFER')
    server = Server(*keys.flags(), f'--tls_client_ca_file={keys.path("ca.pem")}',
                    '--tls_client_optional')
    unittest.addModuleCleanup(server.close)
    roots = pathlib.Path(keys.path('ca.pem')).read_bytes()


def arguments(**more):
    return {'root_certificates': roots, 'timeout': PATIENCE, **more}


class TlsTest(unittest.TestCase):
    def connect(self, address=None, **more):
        client = sfmamba.Client(address or server.address, **more)
        self.addCleanup(client.close)
        return client

    def failure(self, client, method='classify', argument=PICTURE):
        with self.assertRaises(sfmamba.VisionError) as raised:
            getattr(client, method)(argument)
        return raised.exception

    def test_a_token_over_tls(self):
        client = self.connect(**arguments(token='camera-token'))
        self.assertEqual(client.classify(PICTURE).labels[0], 'tripod')
        [(_, answer)] = client.stream(client.classify, [PICTURE])
        self.assertEqual(answer.labels[0], 'tripod')
        self.assertTrue(client.health())

    def test_a_certificate_of_its_own(self):
        client = self.connect(**arguments(
            token=lambda: 'camera-token',
            private_key=pathlib.Path(keys.path('client.key')).read_bytes(),
            certificate_chain=pathlib.Path(keys.path('client.pem')).read_bytes()))
        self.assertEqual(client.classify(PICTURE).labels[0], 'tripod')

    def test_who_may_not(self):
        for token in (None, 'wrong'):
            error = self.failure(self.connect(**arguments(token=token)))
            self.assertEqual((error.code, error.reason),
                             (grpc.StatusCode.UNAUTHENTICATED, 'TOKEN_INVALID'))
        error = self.failure(self.connect(**arguments(token='camera-token')), 'model', 'everyday')
        self.assertEqual((error.code, error.reason),
                         (grpc.StatusCode.PERMISSION_DENIED, 'SCOPE_MISSING'))

    def test_a_stream_without_a_token(self):
        client = self.connect(**arguments())
        with self.assertRaises(sfmamba.VisionError) as raised:
            list(client.stream(client.classify, [PICTURE]))
        self.assertEqual(raised.exception.code, grpc.StatusCode.UNAUTHENTICATED)

    def test_in_clear_it_is_not_answered(self):
        error = self.failure(self.connect(timeout=2))
        self.assertIn(error.code, (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED))


class AsyncTlsTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_token_over_tls(self):
        async with sfmamba.AsyncClient(server.address,
                                       **arguments(token='camera-token')) as client:
            self.assertEqual((await client.classify(PICTURE)).labels[0], 'tripod')
            async for _, answer in client.stream(client.classify, [PICTURE]):
                self.assertEqual(answer.labels[0], 'tripod')


if __name__ == '__main__':
    unittest.main()
