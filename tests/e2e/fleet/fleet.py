"""Replicas of a server whose batches sleep, an Envoy, a name server and load generators."""

import collections
import json
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

import grpc
import numpy as np
from sfmamba import _messages

BINARY = 'tests/e2e/fleet/sleepy_server'
COMMAND = 'client/sfmamba'
PATIENCE = 60  # The time limit of each wait, in seconds.
NAME = 'fleet.test'

_CONFIG = """
backbone { variant: "custom" dim: 16 in_dim: 8 depths: [1, 1, 2, 2] num_heads: [1, 1, 2, 4]
           windows: [4, 2] }
input { size: 64 }
"""
_GREY = np.full((64, 64, 3), 120, np.uint8)


def picture():
    return _GREY


def wait_until(is_so, what):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def free_port(hosts=('127.0.0.1',)):
    """Returns a port that is free at each of the hosts. It is below the ports that Linux gives to
    clients, so it stays free until the test uses it."""
    while True:
        port = random.randrange(20000, 32000)
        try:
            for host in hosts:
                socket.create_server((host, port)).close()
            return port
        except OSError:
            pass


class Replica:
    """Runs a server on one port until the test ends. Each of its batches takes `milliseconds`.

    Attributes:
      host, port: the address of gRPC.
    """

    def __init__(self, test, *flags, milliseconds=20, max_batch_size=8, host='127.0.0.1', port=0):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        version = pathlib.Path(folder.name, 'sleepy', '1')
        version.mkdir(parents=True)
        (version / 'config.textproto').write_text(
            f'{_CONFIG} num_classes: {milliseconds} batching {{ max_batch_size: {max_batch_size} }}')
        self.host = host
        self.port = port or free_port()
        self.metrics_port = 0
        self._command = [BINARY, f'--model_repository={folder.name}', '--random_init',
                         f'--host={host}', f'--port={self.port}', '--http_port=-1',
                         '--metrics_port=0', *flags]
        self._process = None
        test.addCleanup(self.kill)

    @property
    def address(self):
        return f'{self.host}:{self.port}'

    def start(self):
        """Starts the server and waits until it serves."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            if '"listening"' in line:
                self.metrics_port = int(re.search('"metrics_port":([0-9]+)', line)[1])
            if '"msg":"serving"' in line:
                break
        else:
            raise RuntimeError('the server has ended:\n' + ''.join(lines))
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        return self

    @staticmethod
    def _read(pipe):
        with pipe:
            pipe.read()

    def signal(self, number):
        self._process.send_signal(number)

    def kill(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def stop(self):
        """Stops the server and waits until it has drained and ended."""
        self.signal(signal.SIGTERM)
        self._process.wait(PATIENCE)

    def restart(self):
        self.stop()
        self.start()

    def answered(self):
        """Returns the number of images answered since the start."""
        with urllib.request.urlopen(f'http://{self.host}:{self.metrics_port}/metrics',
                                    timeout=PATIENCE) as page:
            return sum(float(line.rpartition(' ')[2]) for line in page.read().decode().splitlines()
                       if line.startswith('sfmamba_items_total') and 'outcome="ok"' in line)


class Envoy:
    """Runs Envoy with deploy/envoy/envoy.yaml in front of the replicas' gRPC, until the test ends.

    Attributes:
      address: the plaintext gRPC listener.
    """

    _POLICY = """load_balancing_policy:
        policies:
          - typed_extension_config:
              name: envoy.load_balancing_policies.client_side_weighted_round_robin
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin
                blackout_period: 1s
                weight_update_period: 0.5s"""

    @staticmethod
    def is_installed():
        return shutil.which('envoy') is not None

    def __init__(self, test, replicas, weighted=False):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        text = pathlib.Path('deploy/envoy/envoy.yaml').read_text()
        endpoint = '- endpoint: {address: {socket_address: {address: server, port_value: 8001}}}'
        assert endpoint in text
        text = text.replace(endpoint, ('\n' + 14 * ' ').join(
            endpoint.replace('server', one.host).replace('8001', str(one.port))
            for one in replicas))
        # Replaces the host of the server's HTTP port, because this machine may not know the name
        # "server". The tests send nothing to this port.
        text = text.replace('address: server,', 'address: 127.0.0.1,')
        for own in (8080, 8443, 9901, 9902):
            text = text.replace(f'port_value: {own}}}', 'port_value: 0}')
        text = text.replace('0.0.0.0', '127.0.0.1').replace('/etc/envoy/', folder.name + '/')
        if weighted:
            text = text.replace('lb_policy: LEAST_REQUEST', self._POLICY, 1)
        # Envoy's configuration refers to this file and this folder. The folder stays empty, because
        # nothing connects over TLS.
        shutil.copy('deploy/envoy/tls.yaml', folder.name)
        pathlib.Path(folder.name, 'certificate').mkdir()
        pathlib.Path(folder.name, 'envoy.yaml').write_text(text)
        self._log = pathlib.Path(folder.name, 'log')
        admin = pathlib.Path(folder.name, 'admin')
        with self._log.open('w') as log:
            process = subprocess.Popen(
                ['envoy', '--config-path', f'{folder.name}/envoy.yaml', '--concurrency', '1',
                 '--admin-address-path', str(admin),
                 '--use-dynamic-base-id', '--log-level', 'warning'], stdout=log, stderr=log)

        def end():
            process.kill()
            process.wait(PATIENCE)
        test.addCleanup(end)
        started = len([one for one in replicas if one.metrics_port])
        try:
            wait_until(lambda: admin.exists() and admin.read_text(), 'Envoy opens its admin port')
            self._admin = admin.read_text()
            wait_until(lambda: self.stat('cluster.grpc.membership_healthy') == started
                       and self.stat('listener_manager.workers_started') == 1,
                       'Envoy finds the replicas healthy')
        except AssertionError:
            print(self._log.read_text()[-2000:], flush=True)
            raise
        # The page has a line such as "cleartext::127.0.0.1:40123" for each listener.
        self.address = re.search(r'^cleartext::(.*)$', self._page('listeners'), re.MULTILINE)[1]

    def stat(self, name):
        try:
            return int(self._page(f'stats?filter=^{name}$').rpartition(':')[2])
        except (OSError, ValueError):
            return -1

    def _page(self, name):
        with urllib.request.urlopen(f'http://{self._admin}/{name}', timeout=PATIENCE) as page:
            return page.read().decode()


class NameServer:
    """Answers every DNS query for addresses with `hosts`, until the process ends.

    Attributes:
      hosts: IPv4 addresses, which may change at any time.
    """

    def __init__(self, hosts):
        self.hosts = list(hosts)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(('127.0.0.1', 0))
        threading.Thread(target=self._answer, daemon=True).start()

    def target(self, port):
        """Returns the gRPC target that resolves to the hosts."""
        return f'dns://127.0.0.1:{self._socket.getsockname()[1]}/{NAME}:{port}'

    def _answer(self):
        while True:
            question, peer = self._socket.recvfrom(4096)
            end = question.index(b'\0', 12) + 5
            is_ipv4 = question[end - 4:end - 2] == b'\0\1'
            hosts = self.hosts if is_ipv4 else []
            answer = (question[:2] + b'\x81\x80' + b'\0\1' + len(hosts).to_bytes(2, 'big') + bytes(4)
                      + question[12:end])
            # An answer has the name of the question, type A, class IN and TTL 0.
            for host in hosts:
                answer += b'\xc0\x0c\0\1\0\1' + bytes(4) + b'\0\4' + socket.inet_aton(host)
            self._socket.sendto(answer, peer)


def plain_call(channel, timeout=5):
    """Returns a function that classifies a picture with plain gRPC, without retries."""
    classify = channel.unary_unary(
        '/sfmamba.v1.VisionService/Classify', request_serializer=lambda request: request,
        response_deserializer=_messages.ClassifyResponse.FromString)
    pixels = {'width': 64, 'height': 64, 'format': 'RGB8', 'data': _GREY.tobytes()}
    request = _messages.ClassifyRequest(images=[{'pixels': pixels}]).SerializeToString()

    def call():
        classify(request, timeout=timeout)
    return call


class Bench:
    """Runs the C++ client's bench: `rate` calls per second for `seconds`.

      with Bench(target, seconds, deadline) as bench:
          ...
      bench.calls, bench.answered, bench.lost
    """

    def __init__(self, target, seconds, deadline, rate=160):
        self._process = subprocess.Popen(
            [COMMAND, 'bench', '--retry', f'--server={target}', '--tensor=uint8', '--warmup=0s',
             f'--rate={rate}', f'--duration={seconds}s', f'--deadline={deadline}s', '--json'],
            stdout=subprocess.PIPE, text=True)

    def has_ended(self):
        return self._process.poll() is not None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        report = json.loads(self._process.communicate(timeout=PATIENCE)[0])
        self.calls = report['requests']
        self.answered = report['in_time']
        self.lost = {code: count for code, count in report['codes'].items() if code != 'OK'}


class Load:
    """Runs `callers` threads that call `call`.

    Each thread calls every `period` seconds, or at once if the last call took longer.

      with Load(call) as load:
          ...
      load.calls, load.lost
    """

    def __init__(self, call, callers=16, period=0.1):
        self._call = call
        self._period = period
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._answered = 0
        self.lost = collections.Counter()  # The number of failed calls by error text.
        self._threads = [threading.Thread(target=self._run, args=(i / callers,))
                         for i in range(callers)]

    @property
    def calls(self):
        return self._answered + sum(self.lost.values())

    @property
    def answered(self):
        return self._answered

    def _run(self, phase):
        due = time.monotonic() + phase * self._period
        while not self._stop.wait(max(0, due - time.monotonic())):
            due = max(due + self._period, time.monotonic())
            try:
                self._call()
            except Exception as error:  # Each kind of client raises other exceptions.
                text = ' '.join(str(error).split())[:200]
                if isinstance(error, grpc.RpcError):
                    text = f'{error.code().name}: {error.details()}'
                with self._lock:
                    self.lost[text] += 1
            else:
                with self._lock:
                    self._answered += 1

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind, error, traceback):
        self._stop.set()
        for thread in self._threads:
            thread.join()
