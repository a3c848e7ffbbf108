#!/usr/bin/env python3
"""Measures a server's goodput at and beyond its capacity.

    tools/benchmark_load.py --model everyday client/samples/*.jpg

Starts the server, finds its closed-loop peak, then sends an open loop at 1, 2, 4 and 10 times the
peak, with Poisson arrivals and in bursts, with deadlines of 2 and of 10 batch times. Prints a line
of JSON for each load, and at the end a table:

  goodput     requests answered in time, as a part of the peak
  wasted      images computed whose answer came too late, as a part of all computed
  p99         of the requests answered in time, as a part of the deadline

A batch time is max_batch_size / peak. A burst is one batch time long, at four times the load, and
three batch times without requests follow. The client runs on the same machine and takes its part
of the processor, the more the higher the load.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOADS = (1, 2, 4, 10)
BATCH_TIMES = (10, 2)
BURSTS = {'poisson': [], 'bursts': ['--burst_factor=4']}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('pictures', nargs='+')
    parser.add_argument('--server_bin', default=str(ROOT / 'bazel-bin/server/sfmamba_server'))
    parser.add_argument('--client_bin', default=str(ROOT / 'bazel-bin/client/sfmamba'))
    parser.add_argument('--server_flag', action='append', default=[], help='repeat for several')
    parser.add_argument('--model_repository', default=str(ROOT / 'models'))
    parser.add_argument('--model', default='everyday')
    parser.add_argument('--port', type=int, default=9401)
    parser.add_argument('--max_batch_size', type=int, default=8, help="the model's")
    parser.add_argument('--duration', type=float, default=10, help='seconds a load')
    parser.add_argument('--loads', type=float, nargs='+', default=LOADS)
    return parser.parse_args()


class Server:
    def __init__(self, args):
        self.args = args
        self.process = subprocess.Popen(
            [args.server_bin, f'--model_repository={args.model_repository}',
             f'--port={args.port}', f'--metrics_port={args.port + 1}', '--http_port=-1',
             '--drain_delay=0s',
             *args.server_flag], stderr=subprocess.DEVNULL)
        while subprocess.run(self.client('health'), capture_output=True).returncode != 0:
            if self.process.poll() is not None:
                sys.exit(f'the server ended with {self.process.returncode}')
            time.sleep(0.1)

    def client(self, verb, *more):
        return [self.args.client_bin, verb, '--server', f'127.0.0.1:{self.args.port}', *more]

    def bench(self, *more):
        run = subprocess.run(
            self.client('bench', '--model', self.args.model, '--json', '--threads=1',
                        '--channels=4', *more, *self.args.pictures),
            capture_output=True, text=True)
        if not run.stdout.strip():
            sys.exit(f'bench failed: {run.stderr}')
        return json.loads(run.stdout)

    def images(self):
        """How many images batches have computed, and how many were answered."""
        url = f'http://127.0.0.1:{self.args.port + 1}/metrics'
        text = urllib.request.urlopen(url).read().decode()
        def total(name, label=''):
            found = re.findall(r'^sfmamba_%s\{([^}]*model="%s"[^}]*)\} (\S+)$' %
                               (name, re.escape(self.args.model)), text, re.MULTILINE)
            return sum(float(value) for labels, value in found if label in labels)

        return total('batch_items_sum'), total('items_total', 'outcome="ok"')

    def stop(self):
        self.process.terminate()
        return self.process.wait()


def main():
    args = parse_args()
    server = Server(args)
    rows = []
    try:
        def measure_peak():
            return server.bench('--concurrency=32', f'--duration={args.duration}s')['images_per_s']

        peak = max(measure_peak(), measure_peak())
        batch_time = args.max_batch_size / peak
        print(json.dumps({'peak_per_s': peak, 'batch_time_s': batch_time}), flush=True)
        for times in BATCH_TIMES:
            for arrivals, flags in BURSTS.items():
                for load in args.loads:
                    deadline = times * batch_time
                    flags_of_load = [f'--rate={load * peak:.2f}', f'--deadline={deadline:.4f}s',
                                     f'--duration={args.duration}s']
                    if flags:
                        flags_of_load += flags + [f'--burst_period={4 * batch_time:.3f}s']
                    before = server.images()
                    report = server.bench(*flags_of_load)
                    time.sleep(0.5)
                    computed, answered = (now - then for now, then in
                                          zip(server.images(), before))
                    row = {
                        'deadline_batch_times': times, 'arrivals': arrivals, 'load': load,
                        'goodput_per_s': report['goodput_per_s'],
                        'goodput': report['goodput_per_s'] / peak,
                        'wasted': 1 - answered / computed if computed else 0,
                        'p99_of_deadline': report['latency_ms']['p99'] / (1000 * deadline),
                        'codes': report['codes']}
                    rows.append(row)
                    print(json.dumps(row), flush=True)
        # Others may have used the machine: what is much above or below was noise.
        print(json.dumps({'peak_per_s_at_the_end': measure_peak()}), flush=True)
    finally:
        server.stop()
    print('| deadline, batch times | arrivals | load | goodput | wasted | p99 |')
    print('|---|---|---|---|---|---|')
    for row in rows:
        print('| %d | %s | %gx | %.2f | %.1f %% | %.2f |' % (
            row['deadline_batch_times'], row['arrivals'], row['load'], row['goodput'],
            100 * row['wasted'], row['p99_of_deadline']))


if __name__ == '__main__':
    main()
