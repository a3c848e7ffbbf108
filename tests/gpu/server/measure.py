#!/usr/bin/env python3
"""Measures the server on a machine with a GPU. Measures the time until it is READY, its rates for
each kind of input, its threads' CPU time, latencies at given rates, overload, loading under load,
and stopping. Also checks that it answers like a CPU.

  measure.py --out gpu.jsonl [--steps NAME,...] [--seconds N]

Each step has a time limit and is recorded when it ends. If a step fails or hangs, the next one
still runs. The server is started again if necessary.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time

import loads
from server_process import NoGpu, Server, ServerError, environment_of, write_model

ROOT = pathlib.Path(__file__).absolute().parents[3]
# The steps with their time limits in seconds, in the order in which they run. The most valuable
# steps come first.
STEPS = {'ready': 150, 'answers': 90, 'uint8': 30, 'jpeg': 30, 'fp32': 30, 'rates': 60,
         'requests': 40, 'overload': 30, 'reload': 60, 'sigterm': 60, 'models': 90,
         'ceiling': 90}
NEEDS_NO_SERVER = ('models', 'ceiling')


class Session:
    """One run of this program: the server that the steps share, and the lines that they write."""

    def __init__(self, options, emit):
        self.options = options
        self.emit = emit
        self.folder = pathlib.Path(options.server)
        self.work = pathlib.Path(options.work)
        self.models = self.work / 'models'
        self.server = None
        self.end = 0  # The end of the current step.
        self.peak = options.peak  # The rate of uint8 tensors in images/s.
        self.environment = environment_of(self.folder)
        write_model(self.models, 't', 't', tiny=options.tiny)
        write_model(self.models, 's', 's', tiny=options.tiny)

    def left(self):
        return max(self.end - time.monotonic(), 0.1)

    def start(self):
        self.server = Server(self.folder, self.models, self.work / 'server.log',
                             f'--device={self.options.device}', '--slots_per_gpu=3',
                             '--startup_models=t', '--drain_delay=0s')
        self.server.start(self.left())

    def client(self, *arguments, server=None):
        """Starts the client with these arguments."""
        address = (server or self.server).address
        return subprocess.Popen([str(self.folder / 'sfmamba'), *arguments, '--server', address],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.environment)

    def output(self, client):
        """Waits until the client has ended, and returns its JSON. Raises ServerError if it fails or
        takes too long.
        """
        try:
            out, error = client.communicate(timeout=self.left())
        except subprocess.TimeoutExpired:
            client.kill()
            client.communicate()
            raise ServerError('the client took too long') from None
        try:
            return json.loads(out)
        except ValueError:
            raise ServerError(f'the client ended with {client.returncode}: '
                          f'{(error or out).strip()[-300:]}') from None

    def run(self, name):
        """Runs one step within its limit. Returns what went wrong, or ''."""
        self.end = time.monotonic() + min(STEPS[name] * self.options.time_scale,
                                          self.options.deadline - time.monotonic())
        if name not in NEEDS_NO_SERVER and not (self.server and self.server.alive()):
            self.start()
        loads.STEPS[name](self)

    def close(self):
        if self.server is not None:
            self.server.kill()


def run_steps(session, names):
    """Runs the steps. Returns the number of failed steps."""
    failed = 0
    for name in names:
        begin, status = time.monotonic(), 'passed'
        if time.monotonic() > session.options.deadline:
            status = 'no time was left'
        else:
            try:
                session.run(name)
            except NoGpu:
                raise
            except Exception as error:
                status = f'{type(error).__name__}: {error}'
                session.close()  # The server may hang, so the next step starts a new one.
        failed += status != 'passed'
        session.emit({'benchmark': 'server_step', 'step': name, 'status': status,
                      'seconds': round(time.monotonic() - begin, 1)})
    return failed


def unpack(folder):
    """Unpacks the archive of pack_server.sh, if the folder does not exist yet."""
    archive = pathlib.Path(f'{folder}.tar.xz')
    if not pathlib.Path(folder).exists() and archive.exists():
        with tarfile.open(archive) as packed:
            packed.extractall(pathlib.Path(folder).parent)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--server', default=os.environ.get('SERVER', str(ROOT / '.gpu/server')),
                        help='folder of pack_server.sh (.gpu/server)')
    parser.add_argument('--work', default=str(ROOT / '.gpu/results/server'),
                        help='folder for models and logs')
    parser.add_argument('--steps', default=','.join(STEPS))
    parser.add_argument('--seconds', type=float, default=540, help='for all steps')
    parser.add_argument('--device', default='cuda', choices=('cuda', 'cpu'))
    parser.add_argument('--tiny', action='store_true', help='a rehearsal: a tiny model')
    parser.add_argument('--time_scale', type=float, default=1, help='of all limits')
    parser.add_argument('--peak', type=float, default=0,
                        help='images a second at which rates aim, if the step uint8 is left out')
    options = parser.parse_args(arguments)
    options.steps = [name for name in options.steps.split(',') if name]
    unknown = [name for name in options.steps if name not in STEPS]
    if unknown:
        parser.error(f'no step {", ".join(unknown)}; expected some of {", ".join(STEPS)}')
    options.deadline = time.monotonic() + options.seconds
    return options


def main(arguments=None):
    options = parse_arguments(arguments)
    os.chdir(ROOT)
    pathlib.Path(options.work).mkdir(parents=True, exist_ok=True)
    unpack(options.server)

    def emit(line):
        print(json.dumps(line), flush=True)
        with open(options.out, 'a', encoding='utf-8') as file:
            file.write(json.dumps(line) + '\n')

    os.environ.update(environment_of(options.server))
    session = Session(options, emit)
    try:
        return 1 if run_steps(session, options.steps) else 0
    except NoGpu:
        print('skipped: no GPU')
        return 0
    finally:
        session.close()


if __name__ == '__main__':
    sys.exit(main())
