"""Tests the unmodified tritonclient with TLS and a token, over gRPC and over HTTP.

The package is fetched by deploy/setup.sh --interop.
"""

import pathlib
import ssl
import sys
import tempfile
import unittest

import gevent.ssl
import numpy
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # Helpers of the e2e tests.

from keys import Keys
from model_server import SAMPLES, Server

MODEL = 'everyday'
TOKEN = {'authorization': 'Bearer camera-token'}


def classify(module, client, headers):
    """Sends a picture and returns its best class."""
    image = module.InferInput('image', [1], 'BYTES')
    image.set_data_from_numpy(
        numpy.array([(SAMPLES / 'render_04.jpg').read_bytes()], dtype=numpy.object_))
    best = module.InferRequestedOutput('logits', class_count=1)
    result = client.infer(MODEL, [image], outputs=[best], headers=headers)
    return result.as_numpy('logits').flatten()[0].decode().rpartition(':')[2]


class TritonClientTlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keys = Keys(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.keys.give('camera', 'camera-token', 'INFER, READ')
        cls.server = Server(*cls.keys.flags(),
                            f'--tls_client_ca_file={cls.keys.path("ca.pem")}')
        cls.addClassCleanup(cls.server.close)

    def ask(self, module, client):
        self.addCleanup(client.close)
        self.assertTrue(client.is_server_ready())
        self.assertEqual(classify(module, client, TOKEN), 'table')
        self.assertEqual(self.name(client.get_model_metadata(MODEL, headers=TOKEN)), MODEL)
        for headers in (None, {'authorization': 'Bearer wrong'}):
            with self.assertRaises(InferenceServerException) as raised:
                classify(module, client, headers)
            self.assertIn('token', str(raised.exception))

    @staticmethod
    def name(metadata):
        return metadata['name'] if isinstance(metadata, dict) else metadata.name

    def test_grpc(self):
        self.ask(tritonclient.grpc, tritonclient.grpc.InferenceServerClient(
            self.server.address.replace('127.0.0.1', 'localhost'), ssl=True,
            root_certificates=self.keys.path('ca.pem'), private_key=self.keys.path('client.key'),
            certificate_chain=self.keys.path('client.pem')))

    def test_http(self):
        def context():
            made = gevent.ssl.create_default_context(cafile=self.keys.path('ca.pem'))
            made.load_cert_chain(self.keys.path('client.pem'), self.keys.path('client.key'))
            return made

        self.ask(tritonclient.http, tritonclient.http.InferenceServerClient(
            self.server.http_address.replace('127.0.0.1', 'localhost'), ssl=True,
            ssl_context_factory=context))

    def test_http_without_a_certificate(self):
        client = tritonclient.http.InferenceServerClient(
            self.server.http_address.replace('127.0.0.1', 'localhost'), ssl=True,
            ssl_context_factory=lambda: gevent.ssl.create_default_context(
                cafile=self.keys.path('ca.pem')))
        self.addCleanup(client.close)
        with self.assertRaises((ssl.SSLError, OSError)):
            client.is_server_ready()


if __name__ == '__main__':
    unittest.main()
