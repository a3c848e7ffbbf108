"""Runs the real server with the default models, for tests in Python."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

SAMPLES = pathlib.Path('client/samples')
PATIENCE = 60  # The time limit of each wait, in seconds.


def wait_until(is_so):
    """Polls until `is_so()` is true. Raises AssertionError if this takes longer than PATIENCE."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, 'it does not come to pass'


class Server:
    """Runs the server on free ports until close().

    Attributes:
      address: the address of gRPC.
      http_address: the address of REST and the console.
      metrics_address: the address of /metrics only.
      url: the URL of the console.
    """

    def __init__(self, *flags):
        # The server does not follow links out of its repository, so the models are copied.
        self._folder = tempfile.TemporaryDirectory()
        models = f'{self._folder.name}/models'
        shutil.copytree('models', models)
        self._process = subprocess.Popen(
            ['server/sfmamba_server', f'--model_repository={models}', '--host=127.0.0.1',
             '--port=0', '--http_port=0', '--metrics_port=0', *flags],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self._process.stdout:
            if '"listening"' in line:
                said = json.loads(line)
                self.address = f'127.0.0.1:{said["port"]}'
                self.http_address = f'127.0.0.1:{said["http_port"]}'
                self.metrics_address = f'127.0.0.1:{said["metrics_port"]}'
                self.url = f'http://{self.http_address}/'
            if '"serving"' in line:
                break
        else:
            raise RuntimeError('the server ends before it serves')
        self._lines = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def lines(self):
        """Returns the number of lines that the server has written since it began to serve."""
        return self._lines

    def _read(self):
        for _ in self._process.stdout:
            self._lines += 1

    def close(self):
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        self._folder.cleanup()
