"""Runs a real server under load, a real Prometheus and a fake Alertmanager. Prometheus scrapes the
server and sends the alerts that fire to the Alertmanager.

As a program, it prints the address of Prometheus and runs for some seconds, so that a person can
look at the pages: live.py SERVER CLIENT SECONDS
"""

import contextlib
import http.server
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import yaml

START_LIMIT = 30  # The seconds in which a process must start.

_BACKBONE = """num_classes: 5
backbone { variant: 'custom' dim: 16 in_dim: 8 depths: [1, 1, 2, 2]
           num_heads: [1, 1, 2, 4] windows: [4, 2] }
"""
# The queue of "narrow" has room for only two images, so the server refuses some of its requests.
# "seldom" gets so few requests that the server cannot estimate how long they take. The server
# therefore does not refuse them, and some of them miss their deadlines.
MODELS = {
    'namer': 'input { size: 64 }',
    'finder': """task: DETECTION detector { channels: 16 fc_width: 32 }
                 input { short_side: 64 long_side: 96 }""",
    'seldom': """task: DETECTION detector { channels: 16 fc_width: 32 }
                 input { short_side: 64 long_side: 96 }""",
    'painter': """task: SEGMENTATION segmenter { channels: 16 }
                  input { short_side: 64 long_side: 96 }""",
    'narrow': """input { size: 64 }
                 batching { max_queue_items: 2 }""",
}


class Process:
    """Runs a command in a child process, until close() kills it. wait_for() waits for a line of the
    process's output."""

    def __init__(self, *command):
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
        self._lines = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._lines.append(None)  # The end of the output.
            self._changed.notify_all()

    def wait_for(self, text):
        """Waits for a line of the output that contains the text, and returns the first such line.
        Raises RuntimeError if there is no such line before the output ends, or within START_LIMIT
        seconds."""
        def found():
            return next((line for line in self._lines if line is None or text in line), '')
        with self._changed:
            self._changed.wait_for(lambda: found() != '', START_LIMIT)
            if not found():
                raise RuntimeError(f'no "{text}" in the output: {self._lines[-20:]}')
            return found()

    def close(self):
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()


class Manager:
    """A fake Alertmanager. It stores the alerts that Prometheus sends. It runs in its own thread
    until close()."""

    def __init__(self):
        self.alerts = []
        alerts = self.alerts

        class Handler(http.server.BaseHTTPRequestHandler):

            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                if self.path == '/api/v2/alerts':
                    alerts.extend(json.loads(body))
                self.send_response(200 if self.path == '/api/v2/alerts' else 404)
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.address = f'127.0.0.1:{self._server.server_port}'
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


class Live:
    """Runs the server, Prometheus, the fake Alertmanager and the load until close()."""

    def __init__(self, server, client):
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for name, config in MODELS.items():
                version = folder / 'models' / name / '1'
                version.mkdir(parents=True)
                (version / 'config.textproto').write_text(_BACKBONE + config)
            self._server = Process(server, f'--model_repository={folder}/models',
                                   '--random_init', '--host=127.0.0.1', '--port=0',
                                   '--http_port=0', '--metrics_port=0')
            stack.callback(self._server.close)
            ports = json.loads(self._server.wait_for('"listening"'))
            self._server.wait_for('"serving"')
            self.address = f'127.0.0.1:{ports["port"]}'
            self.metrics_address = f'127.0.0.1:{ports["metrics_port"]}'

            self._manager = Manager()
            stack.callback(self._manager.close)
            self._prometheus = Process('prometheus', f'--config.file={self._configure(folder)}',
                                       f'--storage.tsdb.path={folder}/tsdb',
                                       '--web.listen-address=127.0.0.1:0')
            stack.callback(self._prometheus.close)
            line = self._prometheus.wait_for('msg="Listening on"')
            self.prometheus = 'http://' + line.rsplit('address=', 1)[1].strip()
            self._prometheus.wait_for('Server is ready')
            deadline = time.monotonic() + START_LIMIT
            while not self.numbers('up == 1'):
                if time.monotonic() > deadline:
                    raise RuntimeError('the server is not scraped')
                time.sleep(0.1)

            self._client = client
            self._broken = folder / 'broken.jpg'
            self._broken.write_bytes(b'\xff\xd8\xff not a picture')
            self._stop = threading.Event()
            load = threading.Thread(target=self._load)
            load.start()
            stack.callback(load.join)
            stack.callback(self._stop.set)
            self._cleanup = stack.pop_all()

    def close(self):
        self._cleanup.close()

    def _configure(self, folder):
        """Writes a changed copy of the configuration in deploy/prometheus, and returns its path.
        The copy names this server and this Alertmanager. It has short intervals, and alerts fire
        without a delay."""
        shipped = pathlib.Path('deploy/prometheus/prometheus.yml')
        config = yaml.safe_load(shipped.read_text())
        config['global'] = {'scrape_interval': '500ms', 'scrape_timeout': '500ms',
                            'evaluation_interval': '1s'}
        config['rule_files'] = [f'{folder}/*.rules.yml']
        for rules in shipped.parent.glob('rules/*.yml'):
            (folder / f'{rules.stem}.rules.yml').write_text(
                re.sub(r'^ +for: .*\n', '', rules.read_text(), flags=re.M))
        [manager] = config['alerting']['alertmanagers']
        manager['static_configs'] = [{'targets': [self._manager.address]}]
        [job] = config['scrape_configs']
        job['static_configs'] = [{'targets': [self.metrics_address]}]
        path = folder / 'prometheus.yml'
        path.write_text(yaml.safe_dump(config))
        return path

    def _load(self):
        """Sends requests in a loop until close(): pictures for each model, and requests that
        fail."""
        pictures = sorted(str(path) for path in pathlib.Path('client/samples').glob('*.jpg'))
        brief = ['--warmup=0s', '--concurrency=4', '--requests=12']
        rounds = [
            ['bench', '--model=namer', *brief, *pictures],
            ['bench', '--model=finder', '--method=detect', *brief, *pictures],
            ['bench', '--model=painter', '--method=segment', *brief, *pictures],
            ['bench', '--model=narrow', '--images=2', '--requests=4', *brief[:2], pictures[0]],
            ['bench', '--model=namer', '--requests=2', *brief[:2], str(self._broken)],
        ]
        def detect(deadline):
            return ['detect', '--model=seldom', f'--deadline={deadline}ms', pictures[0]]

        # Some deadlines are long enough to decode the picture but too short to detect objects. The
        # test does not know them, so it tries each deadline from 2 to 24 ms. It does this first,
        # because the server does not yet know the times of both steps and refuses nothing.
        first = [detect(deadline) for deadline in range(2, 25)]
        rounds = [arguments for deadline in (6, 9, 12, 16, 24)
                  for arguments in (detect(deadline), *rounds)]
        for arguments in itertools.chain(first, itertools.cycle(rounds)):
            if self._stop.is_set():
                return
            subprocess.run([self._client, *arguments, f'--server={self.address}'],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
                           check=False)

    def exposition(self):
        """Returns the text of the server's /metrics."""
        return _get(f'http://{self.metrics_address}/metrics')

    def ask(self, path, **parameters):
        """Calls Prometheus' API and returns the data of the answer. Raises an exception if the
        answer is an error."""
        pairs = urllib.parse.urlencode(parameters)
        return json.loads(_get(f'{self.prometheus}/api/v1/{path}?{pairs}'))['data']

    def told(self):
        """Returns the alerts that Prometheus has sent, in the order of arrival."""
        return list(self._manager.alerts)

    def numbers(self, query):
        """Runs an instant query. Returns its values as texts, without NaN."""
        values = [sample['value'][1] for sample in self.ask('query', query=query)['result']]
        return [value for value in values if value != 'NaN']


if __name__ == '__main__':
    live = Live(*sys.argv[1:3])
    print(live.prometheus, flush=True)
    try:
        time.sleep(float(sys.argv[3]))
    finally:
        live.close()
