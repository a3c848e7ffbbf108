"""Tests TLS and tokens on the HTTP port of the real server, and changes of them."""

import base64
import http.client
import json
import pathlib
import socket
import ssl
import sys
import tempfile
import threading
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # Helpers of the e2e tests.

from keys import Keys
from model_server import SAMPLES, Server

PICTURE = (SAMPLES / 'render_04.jpg').read_bytes()
CLASSIFY = '/v1/models/everyday:classify?top_k=1'
PATIENCE = 30  # The time limit of each wait, in seconds.


def setUpModule():
    global keys, server
    folder = unittest.enterModuleContext(tempfile.TemporaryDirectory())
    keys = Keys(folder)
    keys.give('camera', 'camera-token', 'INFER, READ')
    keys.give('eye', 'eye-token', 'INFER', 'quota { max_items: 4 }')
    keys.give('chief', 'chief-token', 'INFER, READ, ADMIN')
    server = Server(*keys.flags())
    unittest.addModuleCleanup(server.close)


def connect():
    context = ssl.create_default_context(cafile=keys.path('ca.pem'))
    return http.client.HTTPSConnection(server.http_address, timeout=PATIENCE, context=context)


def ask(method, path, token=None, body=None, connection=None):
    """Sends a request. Returns the status and the body of the answer, parsed if it is JSON."""
    connection = connection or connect()
    headers = {'Content-Type': 'image/jpeg'} if body else {}
    if token:
        headers['Authorization'] = f'Bearer {token}'
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    text = response.read()
    try:
        return response.status, json.loads(text)
    except ValueError:
        return response.status, text.decode()


def reason(answer):
    return next(detail['reason'] for detail in answer['details'] if 'reason' in detail)


def samples(name):
    """Returns a metric's values. The keys are the label texts, such as '{method="Classify"}'."""
    text = ask('GET', '/metrics', 'camera-token')[1]
    return {line[len(name):].rpartition(' ')[0]: float(line.rpartition(' ')[2])
            for line in text.splitlines() if line.startswith(name)}


class TokenTest(unittest.TestCase):
    def test_a_token_lets_in(self):
        status, answer = ask('POST', CLASSIFY, 'camera-token', PICTURE)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer['results'][0]['categories'][0]['label'], 'table')

    def test_who_has_none_is_refused(self):
        before = samples('sfmamba_unauthorized_total').get('{reason="TOKEN_INVALID"}', 0)
        for token in (None, 'wrong'):
            status, answer = ask('POST', CLASSIFY, token, PICTURE)
            self.assertEqual((status, reason(answer)), (401, 'TOKEN_INVALID'))
            self.assertNotIn('wrong', json.dumps(answer))
        after = samples('sfmamba_unauthorized_total')['{reason="TOKEN_INVALID"}']
        self.assertEqual(after, before + 2)

    def test_a_scope_that_is_missing(self):
        for path in ('/v1/models', '/metrics'):
            status, answer = ask('GET', path, 'eye-token')
            self.assertEqual((status, reason(answer)), (403, 'SCOPE_MISSING'))
        status, answer = ask('POST', '/v2/repository/models/everyday/unload', 'camera-token')
        self.assertEqual(status, 403)
        self.assertIn('error', answer)

    def test_probes_and_the_console_are_for_everybody(self):
        for path in ('/healthz', '/livez', '/readyz', '/v2/health/ready', '/',
                     '/console/main.js'):
            self.assertEqual(ask('GET', path)[0], 200, path)

    def test_a_refused_upload_is_not_read(self):
        raw = socket.create_connection(server.http_address.split(':'), PATIENCE)
        with ssl.create_default_context(cafile=keys.path('ca.pem')).wrap_socket(
                raw, server_hostname='localhost') as connection:
            connection.sendall(b'POST /v1/models/everyday:classify HTTP/1.1\r\nHost: a\r\n'
                               b'Content-Type: image/jpeg\r\nContent-Length: 60000000\r\n\r\n')
            sent, block = 0, bytes(1 << 20)
            try:
                while sent < 60_000_000:
                    connection.sendall(block)
                    sent += len(block)
            except OSError:
                pass
            self.assertLess(sent, 60_000_000)

    def test_the_answer_to_a_refused_upload_is_read(self):
        raw = socket.create_connection(server.http_address.split(':'), PATIENCE)
        with ssl.create_default_context(cafile=keys.path('ca.pem')).wrap_socket(
                raw, server_hostname='localhost') as connection:
            connection.sendall(b'POST /v1/models/everyday:classify HTTP/1.1\r\nHost: a\r\n'
                               b'Content-Type: image/jpeg\r\nContent-Length: 60000000\r\n\r\n')
            self.assertTrue(connection.recv(64).startswith(b'HTTP/1.1 401 '))

    def test_guessing_writes_no_lines(self):
        lines = server.lines()
        for i in range(200):
            self.assertEqual(ask('GET', '/v1/models', f'guess-{i}')[0], 401)
        self.assertLess(server.lines() - lines, 20)

    def test_a_quota(self):
        image = {'encoded': base64.b64encode(PICTURE).decode()}
        body = json.dumps({'images': [image] * 5}).encode()
        connection = connect()
        connection.request('POST', CLASSIFY.partition('?')[0], body,
                           {'Content-Type': 'application/json',
                            'Authorization': 'Bearer eye-token'})
        response = connection.getresponse()
        answer = json.loads(response.read())
        self.assertEqual((response.status, reason(answer)), (429, 'CLIENT_QUOTA'), answer)


class ChangeTest(unittest.TestCase):
    """Changes tokens and certificates while another client sends requests."""

    def setUp(self):
        self.failures, self.answered = [], 0
        self.stopped = threading.Event()
        self.load = threading.Thread(target=self.ask_on)
        self.load.start()
        self.addCleanup(self.stop)

    def stop(self):
        self.stopped.set()
        self.load.join()

    def ask_on(self):
        """Sends requests on one persistent connection and on new ones, until `stopped` is set."""
        kept = connect()
        while not self.stopped.is_set():
            for connection in (kept, connect()):
                try:
                    status, answer = ask('POST', CLASSIFY, 'camera-token', PICTURE, connection)
                    if status != 200:
                        self.failures.append(answer)
                except OSError as error:
                    self.failures.append(error)
                self.answered += 1

    def wait_until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def test_tokens(self):
        self.assertEqual(ask('GET', '/v1/models', 'new-token')[0], 401)
        keys.give('new', 'new-token', 'READ')
        self.wait_until(lambda: ask('GET', '/v1/models', 'new-token')[0] == 200)
        keys.take('new')
        self.wait_until(lambda: ask('GET', '/v1/models', 'new-token')[0] == 401)
        good = pathlib.Path(keys.path('tokens.textproto')).read_text()
        pathlib.Path(keys.path('tokens.textproto')).write_text('client { nonsense')
        self.wait_until(lambda: samples('sfmamba_security_reloads_total').get(
            '{files="tokens",outcome="kept_old"}'))
        self.assertEqual(ask('GET', '/v1/models', 'camera-token')[0], 200)
        pathlib.Path(keys.path('tokens.textproto')).write_text(good)
        self.stop()
        self.assertEqual(self.failures, [])
        self.assertGreater(self.answered, 2)

    def test_certificates(self):
        def shown():
            connection = connect()
            connection.connect()
            return connection.sock.getpeercert(True)

        before = shown()
        self.assertEqual(shown(), before)
        keys.certify('server')
        self.wait_until(lambda: shown() != before)
        self.stop()
        self.assertEqual(self.failures, [])
        self.assertGreater(self.answered, 2)


class TlsTest(unittest.TestCase):
    def test_in_clear_the_port_says_what_it_speaks(self):
        connection = http.client.HTTPConnection(server.http_address, timeout=PATIENCE)
        status, answer = ask('GET', '/healthz', connection=connection)
        self.assertEqual(status, 400)
        self.assertIn('TLS', answer['message'])

    def test_metrics_stay_in_clear(self):
        connection = http.client.HTTPConnection(server.metrics_address, timeout=PATIENCE)
        self.assertEqual(ask('GET', '/metrics', connection=connection)[0], 200)


if __name__ == '__main__':
    unittest.main()
