"""Tests a REST client that knows only the description in /openapi.json.

The client builds each call from the description and checks each answer against it.
"""

import http.client
import json
import unittest
import urllib.parse
import uuid
import zlib

import jsonschema

from model_server import PATIENCE, SAMPLES, Server

PICTURE = (SAMPLES / 'scene_01.jpg').read_bytes()


class Client:
    """Calls operations by their operationId."""

    def __init__(self, address):
        self._address = address
        self.document = json.loads(self.send('GET', '/openapi.json')[1])
        self._operations = {
            operation['operationId']: (method, path, operation)
            for path, methods in self.document['paths'].items()
            for method, operation in methods.items()}

    def send(self, method, target, body=None, headers=None):
        connection = http.client.HTTPConnection(self._address, timeout=PATIENCE)
        connection.request(method, target, body, headers or {})
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, answer, response.headers

    def call(self, name, body=None, content_type=None, **arguments):
        """Calls an operation and returns its answer. Each answer, even an error, must match the
        description.
        """
        method, path, operation = self._operations[name]
        query = {}
        for parameter in operation.get('parameters', []):
            value = arguments.pop(parameter['name'], None)
            if parameter['in'] == 'path':
                path = path.replace('{%s}' % parameter['name'], str(value))
            elif value is not None:
                query[parameter['name']] = value
        assert not arguments, arguments
        if content_type is not None:
            kinds = operation['requestBody']['content']
            assert content_type.split(';')[0] in kinds or 'image/*' in kinds
        target = path + ('?' + urllib.parse.urlencode(query) if query else '')
        status, text, _ = self.send(method.upper(), target, body,
                                    {'Content-Type': content_type} if content_type else {})
        responses = operation['responses']
        content = responses.get(str(status), responses.get('default'))['content']
        if 'application/json' not in content:
            return status, text.decode()
        answer = json.loads(text)
        schema = {**content['application/json']['schema'],
                  'components': self.document['components']}
        jsonschema.Draft4Validator(schema).validate(answer)
        return status, answer


def form(*parts):
    """Returns a multipart/form-data body and its type, as browsers and `requests` write them."""
    boundary = uuid.uuid4().hex
    body = b''
    for name, file, content in parts:
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode()
        if file:
            body += f'; filename="{file}"\r\nContent-Type: application/octet-stream'.encode()
        body += b'\r\n\r\n' + content + b'\r\n'
    return body + f'--{boundary}--\r\n'.encode(), f'multipart/form-data; boundary={boundary}'


class OpenApiClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server('--allowed_origins=https://pages.example.org')
        cls.addClassCleanup(cls.server.close)
        cls.client = Client(cls.server.http_address)

    def classify(self, body=PICTURE, content_type='image/jpeg', **arguments):
        status, answer = self.client.call('classify', body, content_type, model='everyday',
                                          **arguments)
        self.assertEqual(status, 200, answer)
        return answer

    def test_models(self):
        status, page = self.client.call('listModels', page_size=2)
        self.assertEqual((status, len(page['models'])), (200, 2))
        status, model = self.client.call('getModel', model='everyday')
        self.assertEqual(model['task'], 'CLASSIFICATION')
        self.assertEqual(self.client.call('getModelVersion', model='everyday', version=1),
                         (200, model))
        self.assertEqual(self.client.call('readyz'), (200, 'ok\n'))

    def test_predictions(self):
        answer = self.classify(top_k=2, score_type='SIGMOID')
        self.assertEqual(len(answer['results'][0]['categories']), 2)
        status, answer = self.client.call(
            'detect', PICTURE, 'image/jpeg', model='everyday_detector', mask_encoding='COCO_RLE',
            class_filter='1,2,3,4,5', include_timing='true')
        self.assertEqual(status, 200)
        self.assertIn('detections', answer['results'][0])
        status, answer = self.client.call(
            'segmentVersion', PICTURE, 'image/jpeg', model='everyday_segmenter', version=1,
            **{'crop.x_max': 0.5})
        self.assertEqual(status, 200)
        self.assertIn('pngIndex', answer['results'][0])

    def test_errors(self):
        for arguments, part in (({'top_k': -1}, 'params.top_k: got -1, expected '),
                                ({'score_type': 'softmax'},
                                 'score_type: got "softmax", expected one of SOFTMAX, ')):
            status, error = self.client.call('classify', PICTURE, 'image/jpeg',
                                             model='everyday', **arguments)
            self.assertEqual((status, error['code']), (400, 3))
            self.assertTrue(error['message'].startswith(part), error)
        self.assertEqual(self.client.call('getModel', model='none')[0], 404)

    def test_however_a_picture_is_sent(self):
        expected = self.classify(top_k=3)
        for kind in ('application/x-www-form-urlencoded', 'application/json', 'text/plain', None):
            self.assertEqual(self.classify(content_type=kind, top_k=3), expected, kind)
        target = '/v1/models/everyday:classify?top_k=3'
        self.assertEqual(json.loads(self.client.send('PUT', target, PICTURE)[1]), expected)
        packed = self.client.send('POST', target, zlib.compress(PICTURE),
                                  {'Content-Encoding': 'deflate'})
        self.assertEqual(json.loads(packed[1]), expected)
        body, kind = form(('image', 'scene 1.jpg', PICTURE), ('top_k', None, b'3'))
        self.assertEqual(self.classify(body, kind), expected)
        body, kind = form(('files', 'a.jpg', PICTURE), ('files', 'b.jpg', PICTURE))
        twice = self.classify(body, kind, top_k=3)
        self.assertEqual(twice['results'], 2 * expected['results'])

    def test_pages_of_allowed_origins(self):
        target = '/v1/models/everyday:classify'
        for origin, allowed in (('https://pages.example.org', 'https://pages.example.org'),
                                ('https://example.org', None)):
            headers = {'Origin': origin, 'Access-Control-Request-Method': 'POST',
                       'Access-Control-Request-Headers': 'content-type'}
            for method, body, status in (('OPTIONS', None, 204), ('POST', PICTURE, 200)):
                answer = self.client.send(method, target, body, headers)
                self.assertEqual(answer[0], status)
                self.assertEqual(answer[2]['Access-Control-Allow-Origin'], allowed)
                self.assertIsNone(answer[2]['Access-Control-Allow-Credentials'])


if __name__ == '__main__':
    unittest.main()
