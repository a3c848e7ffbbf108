"""Runs the real server with models of random weights, and measures the CPU time of its threads."""

import collections
import json
import os
import pathlib
import signal
import subprocess
import time

CONFIG = '''task: CLASSIFICATION
backbone {{ {backbone} }}
precision: {precision}
{more}batching {{ max_batch_size: 128 max_queue_items: 4096 }}
'''
VARIANT = 'variant: "sf_mamba_{letter}"'
TINY = ('variant: "custom" dim: 16 in_dim: 8 depths: [1, 1, 2, 2] num_heads: [1, 2, 4, 8] '
        'windows: [4, 2] layer_scale: false tokens: DATA')
POLL = 0.05  # The seconds between two reads of the log.


class ServerError(Exception):
    pass


class NoGpu(ServerError):
    """Raised if the server ends with exit code 5."""


def write_model(folder, name, letter, precision='BF16', tiny=False):
    """Writes version 1 of a classifier without weights. `letter` selects the variant. For example,
    "t" is SF-Mamba-T, whose inputs have 224 x 224 pixels. If `tiny` is true, `letter` is ignored,
    and the classifier is much smaller, with inputs of 64 x 64 pixels.
    """
    version = pathlib.Path(folder, name, '1')
    version.mkdir(parents=True, exist_ok=True)
    more = 'num_classes: 1000\n' + ('input { size: 64 }\n' if tiny else '')
    backbone = TINY if tiny else VARIANT.format(letter=letter)
    (version / 'config.textproto').write_text(
        CONFIG.format(backbone=backbone, precision=precision, more=more))


class Server:
    """Runs the server from start() to stop(). The end of a `with` block also stops it."""

    def __init__(self, folder, models, log, *flags):
        """`folder` contains the program. `models` is a model repository. The server's output
        replaces the file `log`. `flags` are more flags for the server.
        """
        self.log = pathlib.Path(log)
        self.command = [str(pathlib.Path(folder, 'sfmamba_server')),
                        f'--model_repository={models}', '--random_init', '--host=127.0.0.1',
                        '--port=0', '--http_port=0', '--metrics_port=0',
                        '--model_control=explicit', '--client_share=1',
                        '--decode_queue_items=4096', '--log_level=info,requests=error', *flags]
        self.process = None
        self.address = None
        self.seconds_to_ready = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self, seconds):
        """Returns when the server is ready. Raises ServerError if it ends, or is not ready within
        `seconds`.
        """
        begin = time.monotonic()
        with open(self.log, 'wb') as output:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=subprocess.STDOUT)
        while True:
            said = self.said()
            if 'serving' in said:
                self.address = f'127.0.0.1:{said["listening"]["port"]}'
                self.seconds_to_ready = time.monotonic() - begin
                return self
            code = self.process.poll()
            if code == 5:
                raise NoGpu('the server found no GPU')
            if code is not None:
                raise ServerError(f'the server ended with {code}: {self.last_line()}')
            if time.monotonic() > begin + seconds:
                self.kill()
                raise ServerError(f'not READY after {seconds:.0f} s: {self.last_line()}')
            time.sleep(POLL)

    def said(self):
        """Returns {message: event} for the log's events. If several events have the same message,
        returns the last of them.
        """
        events = {}
        for line in self.log.read_text(errors='replace').splitlines():
            try:
                event = json.loads(line)
                events[event['msg']] = event
            except (ValueError, KeyError, TypeError):
                continue
        return events

    def last_line(self):
        return (self.log.read_text(errors='replace').splitlines() or ['it said nothing'])[-1][:300]

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def thread_times(self):
        """Returns {name: CPU seconds used so far}. Threads with the same kind_of() name are added.
        """
        times = collections.Counter()
        for task in pathlib.Path('/proc', str(self.process.pid), 'task').iterdir():
            try:
                name = (task / 'comm').read_text().strip()
                times[kind_of(name)] += int((task / 'schedstat').read_text().split()[0]) / 1e9
            except (OSError, ValueError, IndexError):
                continue  # The thread has ended.
        return times

    def stop(self, seconds):
        """Sends SIGTERM. Returns the exit code and how long the server took to end. Raises
        ServerError if it hangs.
        """
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(f'it runs {seconds:.0f} s after SIGTERM') from None
        return code, time.monotonic() - begin

    def kill(self):
        if self.alive():
            self.process.kill()
            self.process.wait()


def kind_of(name):
    """Returns the common name of threads that do the same work. For example, "batch-0" and
    "batch-1" are "batch".
    """
    head, _, tail = name.rpartition('-')
    return head if head and tail.isdigit() else name


def microseconds_an_image(before, after, images):
    """Returns {name: microseconds of CPU time per image}. `before` and `after` are two results of
    thread_times(), between which the server processed `images` images. The largest time comes
    first. Times below 0.05 microseconds are left out.
    """
    spent = {name: after[name] - before.get(name, 0) for name in after}
    costs = {name: round(1e6 * seconds / images, 2) for name, seconds in spent.items()}
    return {name: cost for name, cost in sorted(costs.items(), key=lambda item: -item[1])
            if cost >= 0.05}


def environment_of(folder, environment=os.environ):
    """Returns `environment`, changed so that the programs in `folder` find the libraries in it."""
    libraries = [str(pathlib.Path(folder, 'lib')), environment.get('LD_LIBRARY_PATH', '')]
    return {**environment, 'LD_LIBRARY_PATH': ':'.join(path for path in libraries if path)}
