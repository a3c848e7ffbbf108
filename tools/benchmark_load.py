#!/usr/bin/env python3
"""Measures a server's goodput at and beyond its capacity.

  tools/benchmark_load.py --loads 1 2 --out figures.jsonl client/samples/*.jpg
  tools/benchmark_load.py --loads 4 10 --out figures.jsonl client/samples/*.jpg
  tools/benchmark_load.py --table figures.jsonl

Starts a server and finds its peak, that is, the throughput of clients that each wait for their
answer. Then it sends requests at multiples of the peak, without waiting for answers. They arrive at
random (Poisson) or in bursts, with deadlines of 2 and of 10 batch times. It prints a line of JSON
for each load, appends the line to --out, and ends with a table. Each run finds the peak itself, and
measures only the loads of its flags. A long list of loads can therefore be measured in several
runs, and --table prints one table of all of them. These columns need an explanation:

  goodput     requests answered in time, divided by the peak
  at most     a limit that no server can exceed: see most()
  late        images that were computed but answered too late, divided by all computed images
  p99         of the requests answered in time, divided by the deadline

A batch time is max_batch_size / peak. A burst lasts one batch time and has four times the load.
Three batch times without requests follow. The client runs on the same machine. The higher the load,
the more CPU time the client takes.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = 'model'  # The model's name on the server.
BURST = 4  # A burst has four times the load. It begins every four batch times.


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('pictures', nargs='*')
    parser.add_argument('--table', nargs='+', metavar='FILE',
                        help='measure nothing, print the table of what --out wrote')
    parser.add_argument('--out', help='append the lines of JSON to this file')
    parser.add_argument('--server_bin', default=str(ROOT / 'bazel-bin/server/sfmamba_server'))
    parser.add_argument('--client_bin', default=str(ROOT / 'bazel-bin/client/sfmamba'))
    parser.add_argument('--server_flag', action='append', default=[], help='repeat for several')
    parser.add_argument('--model', default=str(ROOT / 'models/everyday/1'),
                        help='directory of a version of a classifier')
    parser.add_argument('--variant',
                        help='random weights of it, such as sf_mamba_t, in place of --model')
    parser.add_argument('--port', type=int, default=9401)
    parser.add_argument('--max_batch_size', type=int, default=8)
    parser.add_argument('--duration', type=float, default=8, help='seconds a load')
    parser.add_argument('--warmup', type=float, default=1, help='seconds before each')
    parser.add_argument('--loads', type=float, nargs='+', default=(1, 2, 4, 10))
    parser.add_argument('--deadlines', type=float, nargs='+', default=(10, 2),
                        help='in batch times')
    parser.add_argument('--arrivals', nargs='+', choices=('poisson', 'bursts'),
                        default=('poisson', 'bursts'))
    args = parser.parse_args(argv)
    if not args.table and not args.pictures:
        parser.error('expected pictures to send, or --table')
    return args


def most(arrivals, load, deadline_batch_times):
    """Returns the largest possible goodput, divided by the peak. It cannot exceed the load. If
    requests arrive in bursts, they can be computed only from the first arrival of a burst to its
    last deadline, unless the next burst comes sooner.
    """
    if arrivals == 'poisson':
        return min(1, load)
    return min(1, load, (1 + deadline_batch_times) / BURST)


def write_model(args, repository):
    """Writes the model that is served under the name MODEL."""
    version = pathlib.Path(repository) / MODEL / '1'
    if args.variant:
        version.mkdir(parents=True)
        text = ('task: CLASSIFICATION\nnum_classes: 1000\n'
                f'backbone {{ variant: "{args.variant}" }}\n')
    else:
        version.parent.mkdir(parents=True)
        shutil.copytree(args.model, version)
        text = (version / 'config.textproto').read_text()
        if re.search(r'^batching\b', text, re.MULTILINE):
            sys.exit(f'{args.model}/config.textproto: expected no field batching, got one')
    text += f'batching {{ max_batch_size: {args.max_batch_size} }}\n'
    (version / 'config.textproto').write_text(text)


class Server:
    def __init__(self, args, repository):
        self.args = args
        self.process = subprocess.Popen(
            [args.server_bin, f'--model_repository={repository}', '--random_init',
             f'--port={args.port}', f'--metrics_port={args.port + 1}', '--http_port=-1',
             '--drain_delay=0s', '--log_level=error', *args.server_flag])
        while subprocess.run(self.client('health'), capture_output=True).returncode != 0:
            if self.process.poll() is not None:
                sys.exit(f'the server ended with {self.process.returncode}')
            time.sleep(0.1)

    def client(self, verb, *more):
        return [self.args.client_bin, verb, '--server', f'127.0.0.1:{self.args.port}', *more]

    def bench(self, *more, model=MODEL):
        run = subprocess.run(
            self.client('bench', '--model', model, '--json', '--threads=1', '--channels=4',
                        f'--warmup={self.args.warmup}s', *more, *self.args.pictures),
            capture_output=True, text=True)
        if not run.stdout.strip():
            sys.exit(f'bench failed: {run.stderr}')
        return json.loads(run.stdout)

    def peak(self):
        seconds = self.args.duration / 2
        return self.bench('--concurrency=32', f'--duration={seconds}s')['images_per_s']

    def metrics(self):
        url = f'http://127.0.0.1:{self.args.port + 1}/metrics'
        return urllib.request.urlopen(url).read().decode()

    def stop(self):
        self.process.terminate()
        return self.process.wait()


def total(text, name, **labels):
    """Returns the sum of a metric over the series that have these labels. `text` is in Prometheus'
    format.
    """
    found = re.findall(r'^sfmamba_%s\{(.*)\} (\S+)$' % name, text, re.MULTILINE)
    return sum(float(value) for series, value in found
               if all(f'{label}="{wanted}"' in series for label, wanted in labels.items()))


def change(before, after, name, **labels):
    return total(after, name, **labels) - total(before, name, **labels)


def measure(server, arrivals, load, deadline_batch_times, peak):
    """Measures one load and returns its row."""
    args = server.args
    batch_time = args.max_batch_size / peak
    deadline = deadline_batch_times * batch_time
    flags = [f'--rate={load * peak:.2f}', f'--deadline={deadline:.4f}s',
             f'--duration={args.duration}s']
    if arrivals == 'bursts':
        flags += [f'--burst_factor={BURST}', f'--burst_period={BURST * batch_time:.3f}s']
    before = server.metrics()
    report = server.bench(*flags)
    time.sleep(0.5)
    after = server.metrics()
    batches = change(before, after, 'batch_items_count', model=MODEL)
    computed = change(before, after, 'batch_items_sum', model=MODEL)
    answered = change(before, after, 'items_total', model=MODEL, outcome='ok')
    late = report['late'] / max(1, report['late'] + report['in_time'])
    return {
        'deadline_batch_times': deadline_batch_times, 'arrivals': arrivals,
        'load': load, 'peak_per_s': peak,
        'goodput_per_s': report['goodput_per_s'], 'goodput': report['goodput_per_s'] / peak,
        # The server drops some computed images, and some answers reach the client too late.
        'late': 1 - answered / computed * (1 - late) if computed else 0,
        'p99_of_deadline': report['latency_ms']['p99'] / (1000 * deadline),
        'images_a_batch': computed / batches if batches else 0,
        'expired': {stage: count for stage in ('decode', 'queue', 'inference', 'postprocess')
                    if (count := change(before, after, 'deadline_misses_total', model=MODEL,
                                        stage=stage))},
        'not_sent': report['not_sent'], 'codes': report['codes'],
        'stages_ms': report.get('stages_ms')}


def keep(row, out):
    """Prints the row. If the file `out` is given, also appends the row to it."""
    line = json.dumps(row)
    print(line, flush=True)
    if out:
        with open(out, 'a', encoding='utf-8') as file:
            file.write(line + '\n')


def run(args):
    rows = []
    with tempfile.TemporaryDirectory() as repository:
        write_model(args, repository)
        server = Server(args, repository)
        try:
            peak = max(server.peak(), server.peak())
            for times in args.deadlines:
                for arrivals in args.arrivals:
                    for load in args.loads:
                        rows.append(measure(server, arrivals, load, times, peak))
                        keep(rows[-1], args.out)
            # The peak is measured again. If other programs used the machine, the two peaks differ.
            print(json.dumps({'peak_per_s': peak,
                              'peak_per_s_at_the_end': server.peak()}), flush=True)
        finally:
            server.stop()
    return rows


def table(rows):
    """Returns the lines of a Markdown table with a row for each load. If `rows` has several rows
    for a load, the last one is used.
    """
    by_load = {(row['deadline_batch_times'], row['arrivals'], row['load']): row for row in rows}
    lines = ['| deadline, batch times | arrivals | load | at most | goodput | late | p99 |',
             '|---' * 7 + '|']
    order = sorted(by_load, key=lambda key: (-key[0], key[1] != 'poisson', key[2]))
    for times, arrivals, load in order:
        row = by_load[times, arrivals, load]
        lines.append('| ' + ' | '.join(
            (f'{times:g}', arrivals, f'{load:g}x', f'{most(arrivals, load, times):.2f}',
             f"{row['goodput']:.2f}", f"{100 * row['late']:.1f} %",
             f"{row['p99_of_deadline']:.2f}")) + ' |')
    return lines


def main():
    args = parse_args()
    if args.table:
        rows = [json.loads(line) for file in args.table for line in open(file, encoding='utf-8')]
    else:
        rows = run(args)
    print('\n'.join(table(rows)))


if __name__ == '__main__':
    main()
