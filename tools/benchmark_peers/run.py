#!/usr/bin/env python3
"""Measures this project's engine beside PyTorch, ONNX Runtime and OpenVINO.

SF-Mamba on this machine's CPU, all with the same number of threads, in one run: every
contender is a process of its own, they take turns round after round, and the median
over the rounds counts. README.md says what each contender is and why that is fair.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools' / 'pytorch'))

SIZE = 224  # Input pixels a side.
INPUTS, OUTPUTS = ['images'], ['logits']


# Contenders. Each class is one program in one setting. It is constructed in its own
# process with a Job, and then `run()` does the work of one call, of `images` images.

class Job:
    """What to measure: one cell of the table."""

    def __init__(self, variant, batch, dtype, threads, seconds, benchmark, folder):
        self.variant, self.batch, self.dtype, self.threads = variant, batch, dtype, threads
        self.seconds, self.benchmark, self.folder = seconds, benchmark, folder

    def model(self):
        import deterministic
        import sf_mamba
        import torch
        torch.set_num_threads(self.threads)
        return deterministic.fill_deterministic(sf_mamba.make(self.variant)).eval()

    def input(self):
        import deterministic
        return deterministic.deterministic_input(self.batch, 3, SIZE, SIZE)

    def onnx_path(self):
        return os.path.join(self.folder, f'{self.variant}_{self.batch}.onnx')


class Engine:
    """This project: its benchmark binary, started anew each turn.

    Its idle threads sleep as soon as the server's do (server/main.cc).
    """

    name, setting = 'this project', ''
    environment = {**os.environ, 'GOMP_SPINCOUNT': '20000'}

    def __init__(self, job):
        self.command = [
            job.benchmark, f'--variant=sf_mamba_{job.variant.lower()}', f'--batch={job.batch}',
            f'--dtype={job.dtype}', f'--threads={job.threads}', f'--duration={job.seconds}s', '--json']

    def measure(self):
        answer = subprocess.run(self.command, check=True, capture_output=True, text=True,
                                env=self.environment)
        return json.loads(answer.stdout)['images_per_second']


class Contender:
    """A program that lives in this Python process."""

    def __init__(self, job):
        self.images, self.seconds = job.batch, job.seconds

    def measure(self):
        """Images per second by the median call; at least `seconds` and three calls."""
        self.run()
        calls, end = [], time.perf_counter() + self.seconds
        while len(calls) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            self.run()
            calls.append(time.perf_counter() - start)
        return self.images / statistics.median(calls)


class Eager(Contender):
    name, setting = 'PyTorch eager', 'contiguous'
    channels_last = False

    def __init__(self, job):
        super().__init__(job)
        import torch
        self.torch = torch
        self.model, self.input = job.model(), job.input()
        if self.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.input = self.input.to(memory_format=torch.channels_last)
        self.bf16 = job.dtype == 'bf16'

    def run(self):
        torch = self.torch
        with torch.inference_mode(), torch.autocast('cpu', torch.bfloat16, enabled=self.bf16):
            return self.model(self.input)


class EagerChannelsLast(Eager):
    setting, channels_last = 'channels_last', True


class OnnxRuntime(Contender):
    name, setting = 'ONNX Runtime, no scan', 'all optimisations'

    def __init__(self, job):
        super().__init__(job)
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = job.threads
        self.session = onnxruntime.InferenceSession(job.onnx_path(), options,
                                                    providers=['CPUExecutionProvider'])
        self.feed = {INPUTS[0]: job.input().numpy()}
        check(self.run()[0], job)

    def run(self):
        return self.session.run(OUTPUTS, self.feed)


class OpenVino(Contender):
    name, setting = 'OpenVINO, no scan', 'LATENCY hint'
    hint = 'LATENCY'

    def __init__(self, job):
        super().__init__(job)
        import openvino
        # Without the precision hint, OpenVINO would answer fp32 with bf16 where it can.
        self.compiled = openvino.Core().compile_model(job.onnx_path(), 'CPU', {
            'PERFORMANCE_HINT': self.hint, 'INFERENCE_NUM_THREADS': job.threads,
            'INFERENCE_PRECISION_HINT': {'fp32': 'f32', 'bf16': 'bf16'}[job.dtype]})
        self.input = job.input().numpy()
        check(self.compiled([self.input])[0], job)

    def run(self):
        return self.compiled([self.input], share_inputs=True)


class OpenVinoThroughput(OpenVino):
    """As many requests at once as OpenVINO finds best; a call is a round of them all."""

    setting, hint = 'THROUGHPUT hint', 'THROUGHPUT'

    def __init__(self, job):
        super().__init__(job)
        import openvino
        self.queue = openvino.AsyncInferQueue(self.compiled)
        self.calls = 4 * len(self.queue)
        self.images = self.calls * job.batch

    def run(self):
        for _ in range(self.calls):
            self.queue.start_async([self.input], share_inputs=True)
        self.queue.wait_all()


CONTENDERS = [Engine, Eager, EagerChannelsLast, OnnxRuntime, OpenVino, OpenVinoThroughput]
NO_BF16 = {OnnxRuntime}  # Its CPU provider has no bf16 convolutions and products.


# The network for the runtimes. They have no scan: exported as it is, it would become
# thousands of tiny operations, a straw man. It is replaced by something that costs next
# to nothing but reads all that the scan reads, so that nothing before it is cut away.

def scan_stand_in(u, dt, A, B, C, D, bias):
    return u * D + (dt + bias) + (B * C).sum(-1, keepdim=True) + A.sum(-1)


def without_scan(job):
    import sf_mamba
    sf_mamba.selective_scan = scan_stand_in
    return job.model()


def export(job):
    import torch
    with torch.inference_mode():
        torch.onnx.export(without_scan(job), (job.input(),), job.onnx_path(), dynamo=True,
                          opset_version=20, input_names=INPUTS, output_names=OUTPUTS,
                          external_data=False, verbose=False)


def check(logits, job):
    """Stops the run unless a runtime computes what PyTorch does on the same network."""
    import torch
    with torch.inference_mode():
        expected = without_scan(job)(job.input())
    error = (torch.as_tensor(logits) - expected).abs().max() / expected.abs().max()
    limit = {'fp32': 1e-3, 'bf16': 5e-2}[job.dtype]
    if not error < limit:
        raise AssertionError(f'logits differ by {error:.2g} of their maximum, over {limit}')


# The run.

def serve(make, job, pipe):
    """Body of a contender's process: measures once for each message."""
    os.environ['OMP_NUM_THREADS'] = str(job.threads)
    try:
        contender = make(job)
        pipe.send(None)
        while pipe.recv():
            pipe.send(contender.measure())
    except Exception as error:  # Shown by the parent, which then stops.
        pipe.send(error)


def receive(pipe, make):
    answer = pipe.recv()
    if isinstance(answer, Exception):
        raise SystemExit(f'{make.name} ({make.setting}): {type(answer).__name__}: {answer}')
    return answer


def measure_cell(job, rounds, contenders):
    """Returns {contender class: [images per second of each round]}."""
    context = multiprocessing.get_context('spawn')
    workers = []
    exporter = context.Process(target=export, args=(job,))
    exporter.start()
    exporter.join()
    if exporter.exitcode != 0:
        raise SystemExit('the export to ONNX failed')
    for make in contenders:
        pipe, end = context.Pipe()
        process = context.Process(target=serve, args=(make, job, end), daemon=True)
        process.start()
        receive(pipe, make)
        workers.append((make, pipe, process))
    figures = {make: [] for make in contenders}
    for turn in range(rounds):
        for make, pipe, _ in workers:
            show(f'{job.dtype} batch {job.batch}, round {turn + 1} of {rounds}: {make.name} {make.setting}')
            pipe.send(True)
            figures[make].append(receive(pipe, make))
    for _, pipe, process in workers:
        pipe.send(False)
        process.join()
    return figures


def show(text):
    if sys.stderr.isatty():
        print(f'\r\033[K{text}', end='', file=sys.stderr, flush=True)


def best_settings(figures):
    """Of each program its best setting: {name: (median, setting, lowest, highest)}."""
    best = {}
    for make, values in figures.items():
        median = statistics.median(values)
        if make.name not in best or median > best[make.name][0]:
            best[make.name] = (median, make.setting, min(values), max(values))
    return best


def cpu_flags():
    with open('/proc/cpuinfo') as cpuinfo:
        lines = [line.split(':', 1) for line in cpuinfo if ':' in line]
    facts = {key.strip(): value.strip() for key, value in lines}
    return facts['model name'], set(facts['flags'].split())


def versions():
    import importlib.metadata
    return {package: importlib.metadata.version(package)
            for package in ('torch', 'onnxruntime', 'openvino')}


def markdown(report):
    names = [name for name in dict.fromkeys(make.name for make in CONTENDERS)]
    lines = [f'Images per second (median of {report["rounds"]} rounds), SF-Mamba-{report["variant"]}, '
             f'{SIZE}x{SIZE}, {report["threads"]} threads of {report["cpu"]}; '
             + ', '.join(f'{k} {v}' for k, v in report['versions'].items()) + '.', '',
             '| dtype | batch | ' + ' | '.join(names) + ' | to eager | to best runtime |',
             '|---|---|' + '---|' * (len(names) + 2)]
    for cell in report['cells']:
        medians = {name: figure['images_per_second'] for name, figure in cell['contenders'].items()}
        row = [f'{medians[name]:.1f}' if name in medians else '-' for name in names]
        ours = medians.get(Engine.name)
        runtimes = [medians[make.name] for make in (OnnxRuntime, OpenVino) if make.name in medians]
        ratios = [f'{ours / other:.2f}x' if ours and other else '-'
                  for other in (medians.get(Eager.name), max(runtimes, default=None))]
        lines.append(f'| {cell["dtype"]} | {cell["batch"]} | ' + ' | '.join(row + ratios) + ' |')
    return '\n'.join(lines)


def main():
    model_name, flags = cpu_flags()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--benchmark', default=ROOT / 'bazel-bin/tests/model/backbone_benchmark',
                        type=pathlib.Path, help='the engine\'s benchmark binary')
    parser.add_argument('--variant', default='T', help='T, T2, S, B, L, L2 or L3')
    parser.add_argument('--batches', default='1,8', help='batch sizes, comma separated')
    has_bf16 = bool({'amx_bf16', 'avx512_bf16'} & set(flags))
    parser.add_argument('--dtypes', default='fp32,bf16' if has_bf16 else 'fp32',
                        help='fp32, bf16; default: bf16 too where the processor computes it')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--seconds', type=float, default=2, help='of each measurement, at least')
    parser.add_argument('--json', type=pathlib.Path, help='write all figures here as well')
    parser.add_argument('--without_engine', action='store_true', help='measure the peers alone')
    arguments = parser.parse_args()
    if not arguments.without_engine and not arguments.benchmark.exists():
        parser.error(f'{arguments.benchmark} does not exist; '
                     'bazel build //tests/model:backbone_benchmark makes it')
    os.environ['OMP_NUM_THREADS'] = str(arguments.threads)  # The processes inherit it.

    report = {'variant': arguments.variant, 'size': SIZE, 'threads': arguments.threads,
              'cpu': model_name, 'machine': platform.machine(), 'versions': versions(),
              'rounds': arguments.rounds, 'cells': []}
    for dtype in arguments.dtypes.split(','):
        for batch in map(int, arguments.batches.split(',')):
            contenders = [make for make in CONTENDERS
                          if not (dtype == 'bf16' and make in NO_BF16)
                          and not (make is Engine and arguments.without_engine)]
            with tempfile.TemporaryDirectory() as folder:  # For the exported network.
                job = Job(arguments.variant, batch, dtype, arguments.threads,
                          arguments.seconds, str(arguments.benchmark), folder)
                figures = measure_cell(job, arguments.rounds, contenders)
            show('')
            report['cells'].append({
                'dtype': dtype, 'batch': batch,
                'contenders': {name: {'images_per_second': median, 'setting': setting,
                                      'lowest': lowest, 'highest': highest}
                               for name, (median, setting, lowest, highest)
                               in best_settings(figures).items()},
                'rounds': {f'{make.name} {make.setting}'.strip(): values
                           for make, values in figures.items()}})
            if arguments.json:  # After each cell: what is measured is kept.
                arguments.json.write_text(json.dumps(report, indent=2) + '\n')
    print(markdown(report))


if __name__ == '__main__':
    main()
