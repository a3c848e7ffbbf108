#!/usr/bin/env python3
"""Measures how a server's caller is affected by other programs and by other callers.

    tools/benchmark_neighbours.py process client/samples/scene_01.jpg
    tools/benchmark_neighbours.py flood client/samples/scene_01.jpg

`process`: sends requests one by one to SF-Mamba-T with random weights. In turn, it does so alone
and beside a process that keeps one CPU core busy. Prints the speed alone, the speed beside the
process, and the ratio of the second to the first.

`flood`: sends requests one by one with priority HIGH to a classifier. It does so alone, and while
the classifier, a detector and a segmenter each get more requests with priority NORMAL than they
can answer. Prints the 99th percentiles of the latency, alone and beside the others, and the largest
allowed value. It is three times the percentile measured alone, plus the longest time of one batch
of the three models.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from benchmark_load import MODEL, ROOT, Server, write_model

BUSY = 'while True: pass'
FLOODED = {'everyday': 'classify', 'everyday_detector': 'detect', 'everyday_segmenter': 'segment'}


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('part', choices=('process', 'flood'))
    parser.add_argument('pictures', nargs='+')
    parser.add_argument('--server_bin', default=str(ROOT / 'bazel-bin/server/sfmamba_server'))
    parser.add_argument('--client_bin', default=str(ROOT / 'bazel-bin/client/sfmamba'))
    parser.add_argument('--server_flag', action='append', default=[], help='repeat for several')
    parser.add_argument('--model_repository', default=str(ROOT / 'models'),
                        help='of the models that are flooded')
    parser.add_argument('--port', type=int, default=9401)
    parser.add_argument('--duration', type=float, default=8, help='seconds of each measurement')
    parser.add_argument('--warmup', type=float, default=1)
    parser.add_argument('--rounds', type=int, default=3, help='of `process`')
    args = parser.parse_args(argv)
    args.variant, args.max_batch_size = 'sf_mamba_t', 8
    return args


def one_by_one(server, model, *more):
    return server.bench('--concurrency=1', f'--duration={server.args.duration}s', *more,
                        model=model)


def medians(rounds):
    """Returns the medians of both figures and of the ratio beside / alone. Each round is a pair
    (alone, beside others).
    """
    alone, beside = zip(*rounds)
    return {'alone': statistics.median(alone), 'beside': statistics.median(beside),
            'part': statistics.median(b / a for a, b in rounds)}


def measure_process(args):
    rounds = []
    with tempfile.TemporaryDirectory() as repository:
        write_model(args, repository)
        server = Server(args, repository)
        try:
            for _ in range(args.rounds):
                alone = one_by_one(server, MODEL)['images_per_s']
                busy = subprocess.Popen([sys.executable, '-c', BUSY])
                try:
                    beside = one_by_one(server, MODEL)['images_per_s']
                finally:
                    busy.kill()
                    busy.wait()
                rounds.append((alone, beside))
                print(json.dumps({'alone_per_s': alone, 'beside_per_s': beside}), flush=True)
        finally:
            server.stop()
    return medians(rounds)


def allowed(alone_p99, batches):
    """Returns the largest allowed p99 in milliseconds. `batches` lists the batch times of the
    models in FLOODED.
    """
    return 3 * alone_p99 + max(batches)


def longest_batch(profile):
    """Returns the time of the largest batch in milliseconds, from the output of `sfmamba profile
    --json`.
    """
    return max((1000 * float(time['p95'].rstrip('s')) for size in profile['size_classes']
                for time in size['times']), default=0)


def measure_flood(args):
    server = Server(args, args.model_repository)
    floods = []
    try:
        alone = one_by_one(server, 'everyday', '--priority=high')['latency_ms']['p99']
        seconds = args.duration + 3 * args.warmup + 2
        for model, method in FLOODED.items():
            floods.append(subprocess.Popen(
                server.client('bench', '--model', model, '--method', method, '--concurrency=32',
                              '--json', '--deadline=20s', f'--duration={seconds}s',
                              *args.pictures), stdout=subprocess.PIPE))
        beside = one_by_one(server, 'everyday', '--priority=high')['latency_ms']
        batches = []
        for model in FLOODED:
            run = subprocess.run(server.client('profile', model, '--json'), capture_output=True,
                                 text=True, check=True)
            batches.append(longest_batch(json.loads(run.stdout)))
        for flood in floods:
            flood.wait()
    finally:
        for flood in floods:
            flood.kill()
        server.stop()
    return {'alone_p99_ms': alone, 'beside_p99_ms': beside['p99'], 'beside_ms': beside,
            'batches_ms': dict(zip(FLOODED, batches)), 'allowed_ms': allowed(alone, batches)}


def main():
    args = parse_args()
    measure = {'process': measure_process, 'flood': measure_flood}[args.part]
    print(json.dumps(measure(args)))


if __name__ == '__main__':
    main()
