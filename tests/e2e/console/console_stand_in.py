"""A stand-in for the server. It serves the console's files and any answer that a test sets."""

import base64
import http.server
import json
import pathlib
import subprocess
import threading
import urllib.parse

PRINT_CONSOLE = pathlib.Path('tests/server/rest/console/print_console')
MODELS = [
    {'name': 'models/finder/versions/1', 'task': 'DETECTION', 'state': 'READY', 'classCount': 20,
     'maxBatchSize': 8, 'weightsSizeBytes': '6731000', 'precision': 'BF16',
     'input': {'buckets': [{'height': 256, 'width': 320}]}},
    {'name': 'models/mapper/versions/1', 'task': 'SEGMENTATION', 'state': 'READY'},
    {'name': 'models/namer/versions/1', 'task': 'CLASSIFICATION', 'state': 'READY'},
    {'name': 'models/namer/versions/2', 'task': 'CLASSIFICATION', 'state': 'LOADING'},
]
TIMING = {'decode': '0.004s', 'preprocess': '0.002s', 'queue': '0.010s', 'inference': '0.080s',
          'postprocess': '0.003s', 'total': '0.100s', 'batchSize': 3, 'paddedBatchSize': 4,
          'bucket': '256x320', 'device': 'cpu'}


def encode_runs(height, width, runs):
    """Encodes run lengths as the compressed text that COCO uses in JSON."""
    text = ''
    for i, run in enumerate(runs):
        value = run - runs[i - 2] if i > 2 else run
        more = True
        while more:
            bits = value & 31
            value >>= 5
            more = value != (-1 if bits & 16 else 0)
            text += chr(48 + bits + (32 if more else 0))
    return {'height': height, 'width': width, 'counts': text}


def rectangle(height, width, left, top, right, bottom):
    """Returns the mask of a rectangle, encoded by encode_runs()."""
    runs, last = [], 0
    for x in range(left, right):
        runs += [x * height + top - last, bottom - top]
        last = x * height + bottom
    return encode_runs(height, width, runs + [height * width - last])


class Answer:
    """The answer to one request. If `gate`, a threading.Event, is given, the answer waits until it
    is set.
    """

    def __init__(self, body, status=200, headers=(), gate=None, cut=False):
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status = status
        self.headers = dict(headers)
        self.gate = gate
        self.cut = cut  # If true, breaks the connection in mid-answer.


def error(code, message, http, *details):
    return Answer({'code': code, 'message': message, 'details': list(details)}, http)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        state = self.server.state
        if url.path in state.files:
            headers, body = state.files[url.path]
            self._send(200, headers, body)
        elif state.lost:
            self.close_connection = True
        elif self._refuses():
            pass
        elif url.path == '/v1/models':
            self._send(200, {'Content-Type': 'application/json'},
                       json.dumps({'models': state.models}).encode())
        elif url.path == '/metrics':
            state.metrics_read += 1
            self._send(200, {'Content-Type': 'text/plain; version=0.0.4'},
                       state.metrics(state.metrics_read).encode())
        else:
            self._send(404, {}, b'no such page')

    def _refuses(self):
        """Refuses a request that lacks the required token. Returns whether the request was refused.
        """
        state = self.server.state
        if state.token is None or self.headers['authorization'] == f'Bearer {state.token}':
            return False
        state.refused += 1
        answer = error(16, 'a token is needed', 401)
        self._send(401, {'Content-Type': 'application/json', 'WWW-Authenticate': 'Bearer'},
                   answer.body)
        return True

    def do_POST(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers['content-length']))
        if self._refuses():
            return
        self.server.state.asked.append(
            {'path': urllib.parse.unquote(url.path), 'headers': dict(self.headers), 'body': body,
             'query': dict(urllib.parse.parse_qsl(url.query))})
        answer = self.server.state.answer()
        if answer.gate:
            answer.gate.wait(60)
        self._send(answer.status, {'Content-Type': 'application/json', **answer.headers},
                   answer.body, answer.cut)

    def _send(self, status, headers, body, cut=False):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        try:
            self.end_headers()
            self.wfile.write(body[:len(body) // 2] if cut else body)
        except OSError:
            pass  # The page has cancelled the request.
        self.close_connection = self.close_connection or cut


class HttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Ignores connections that the browser ends."""


class StandIn:
    """Serves on a free port until close(). A test may change the fields at any time."""

    def __init__(self):
        printed = subprocess.run([PRINT_CONSOLE], check=True, stdout=subprocess.PIPE).stdout
        self.files = {file['path']: (dict(file['headers']), base64.b64decode(file['body']))
                      for file in json.loads(printed)}
        self.reset()
        self._http = HttpServer(('127.0.0.1', 0), Handler)
        self._http.state = self
        self.url = f'http://127.0.0.1:{self._http.server_port}/'
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()

    def reset(self):
        self.models = list(MODELS)
        self.lost = False  # If true, API calls get no answer.
        self.token = None  # The token that API calls must have, or None.
        self.refused = 0  # Counts the API calls without the token.
        # Returns the text of /metrics. `reading` says how often the console has fetched it so far.
        self.metrics = lambda reading: ''
        self.metrics_read = 0
        self.asked = []  # The requests so far, each with its path, query, headers and body.
        self.answer = lambda: error(5, 'no answer was prepared', 404)

    def close(self):
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
