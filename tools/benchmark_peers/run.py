#!/usr/bin/env python3
"""Measures this project's engine beside PyTorch, ONNX Runtime and OpenVINO.

    python run.py --networks T,S,B,detector,segmenter

Measures SF-Mamba on this machine's CPU, with the same number of threads for all contenders, in one
run. Every contender is a process of its own. They take turns, round after round, and the median of
the rounds counts. README.md says what each contender is and why that is fair.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import platform
import statistics
import sys
import tempfile

import contenders
import quantize
from contenders import (CONTENDERS, DENSE, INT8, NO_BF16, NO_DENSE, RUNTIMES, WITH_SCAN, Eager,
                        Engine, EngineContexts)

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The functions that run the contenders.

def serve(make, job, pipe):
    """The body of a contender's process. It measures once for each message."""
    os.environ['OMP_NUM_THREADS'] = str(job.threads)
    try:
        contender = make(job)
        contender.verify(job)
        pipe.send(None)
        while pipe.recv():
            pipe.send(contender.measure())
    except Exception as error:  # The parent shows it and stops.
        pipe.send(error)


def answer_photographs(make, threads, folder, pipe):
    """The body of a process that sends back how accurate an int8 contender's answers are."""
    import onnxruntime
    job = contenders.Photographs(threads, folder)
    fp32 = onnxruntime.InferenceSession(job.onnx_path(scan=True),
                                        providers=['CPUExecutionProvider'])
    contender = make(job)
    pipe.send(quantize.accuracy([contender.answer(picture)[0][0] for picture in job.pictures],
                                [fp32.run(None, {'images': picture})[0][0]
                                 for picture in job.pictures]))


def measure_accuracy(threads, left_out):
    """Returns {name: figures} of the int8 contenders. The figures rate their answers to the
    pictures of `photographs`.
    """
    context = multiprocessing.get_context('spawn')
    figures = {}
    for make in INT8:
        if make.name in figures or is_left_out(make, left_out):
            continue
        show(f'photographs: {make.name}')
        with tempfile.TemporaryDirectory() as folder:
            pipe, end = context.Pipe()
            process = context.Process(target=answer_photographs, args=(make, threads, folder, end))
            process.start()
            end.close()
            figures[make.name] = pipe.recv()  # EOFError if the process has failed.
            process.join()
    return figures


def receive(pipe, make):
    answer = pipe.recv()
    if isinstance(answer, Exception):
        raise SystemExit(f'{make.name} ({make.setting}): {type(answer).__name__}: {answer}')
    return answer


def measure_cell(job, rounds, programs):
    """Returns {contender class: [images per second of each round]}."""
    context = multiprocessing.get_context('spawn')
    workers = []
    exporter = context.Process(target=contenders.export, args=(job,))
    exporter.start()
    exporter.join()
    if exporter.exitcode != 0:
        raise SystemExit('the export to ONNX failed')
    for make in programs:
        pipe, end = context.Pipe()
        process = context.Process(target=serve, args=(make, job, end), daemon=True)
        process.start()
        receive(pipe, make)
        workers.append((make, pipe, process))
    figures = {make: [] for make in programs}
    for turn in range(rounds):
        for make, pipe, _ in workers:
            show(f'{job.network} {job.dtype} batch {job.batch}, round {turn + 1} of {rounds}: {make.name} {make.setting}')
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
    """Returns {name: (median, setting, lowest, highest)} of the best setting of each program."""
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
            for package in ('torch', 'onnxruntime', 'openvino', 'nncf')}


def markdown(report):
    names = list(dict.fromkeys(make.name for make in CONTENDERS))
    lines = [f'Images per second (median of {report["rounds"]} rounds), '
             f'{report["threads"]} threads of {report["cpu"]}; '
             + ', '.join(f'{k} {v}' for k, v in report['versions'].items()) + '.', '',
             '| network | dtype | batch | ' + ' | '.join(names)
             + ' | to eager | to best runtime with scan | to best without |',
             '|---|---|---|' + '---|' * (len(names) + 3)]
    for cell in report['cells']:
        medians = {name: figure['images_per_second'] for name, figure in cell['contenders'].items()}
        row = [f'{medians[name]:.3g}' if name in medians else '-' for name in names]
        ours = medians.get(Engine.name)
        best = [max((medians[name] for name in group if name in medians), default=None)
                for group in ([Eager.name], WITH_SCAN, RUNTIMES)]
        ratios = [f'{ours / other:.2f}x' if ours and other else '-' for other in best]
        lines.append(f'| {cell["network"]} | {cell["dtype"]} | {cell["batch"]} | '
                     + ' | '.join(row + ratios) + ' |')
    if report['accuracy']:
        lines += ['', '| int8 | same first class on `photographs` | rms of the logits |',
                  '|---|---|---|']
        lines += [f'| {name} | {100 * figures["same_first_class"]:.1f} % | '
                  f'{100 * figures["logit_rms"]:.2f} % |'
                  for name, figures in report['accuracy'].items()]
    return '\n'.join(lines)


def cells(arguments):
    """Yields (network, precision, images per batch) for each cell of the table."""
    for network in arguments.networks.split(','):
        for dtype in arguments.dtypes.split(','):
            for batch in map(int, arguments.batches.split(',')):
                if network not in DENSE or (batch == 1 and dtype != 'int8'):
                    yield network, dtype, batch


def contestants(network, dtype, left_out):
    """Returns the contenders of a cell. Leaves out contenders whose names contain one of
    `left_out`.
    """
    others = [make for make in CONTENDERS if make not in INT8]
    return [make for make in ([Engine, EngineContexts, *INT8] if dtype == 'int8' else others)
            if not (dtype == 'bf16' and make in NO_BF16)
            and not (network in DENSE and make in NO_DENSE)
            and not is_left_out(make, left_out)]


def is_left_out(make, names):
    return any(name in make.name for name in names)


def parse_arguments(flags):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', default=ROOT / 'bazel-bin/tests/model', type=pathlib.Path,
                        help='the folder of the engine\'s benchmarks')
    parser.add_argument('--networks', default='T', help='T, T2, S, B, L, L2, L3, and the backbones '
                        'of dense models: detector, segmenter; comma separated')
    parser.add_argument('--batches', default='1,8', help='batch sizes; dense backbones take 1 only')
    has_bf16 = bool({'amx_bf16', 'avx512_bf16'} & set(flags))
    has_int8 = bool({'avx512_vnni', 'avx_vnni', 'amx_int8'} & set(flags))
    parser.add_argument('--dtypes', default='fp32' + ',bf16' * has_bf16 + ',int8' * has_int8,
                        help='fp32, bf16, int8 (classifiers only); default: those that the '
                        'processor computes')
    parser.add_argument('--accuracy', type=pathlib.Path, metavar='FILE',
                        help='what `sfmamba eval --model=X --against=Y --json` wrote for the '
                        'pictures of photographs, X being the model in INT8 and Y in FP32')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--seconds', type=float, default=2, help='of each measurement, at least')
    parser.add_argument('--json', type=pathlib.Path, help='write all figures here as well')
    parser.add_argument('--without', default='', help='contenders to leave out, by parts of their '
                        'names: "this project", "eager", "compile", "ONNX", "OpenVINO"')
    arguments = parser.parse_args()
    arguments.without = [name for name in arguments.without.split(',') if name]
    if 'this project' not in arguments.without and not arguments.binaries.is_dir():
        parser.error(f'{arguments.binaries} does not exist; bazel build //tests/model:backbone_benchmark '
                     '//tests/model:detector_benchmark //tests/model:segmenter_benchmark makes it')
    return arguments


def main():
    model_name, flags = cpu_flags()
    arguments = parse_arguments(flags)
    os.environ['OMP_NUM_THREADS'] = str(arguments.threads)  # The processes inherit it.

    report = {'threads': arguments.threads, 'cpu': model_name, 'machine': platform.machine(),
              'versions': versions(), 'rounds': arguments.rounds, 'cells': [], 'accuracy': {}}
    for network, dtype, batch in cells(arguments):
        with tempfile.TemporaryDirectory() as folder:  # For the exported network.
            job = contenders.Job(network, batch, dtype, arguments.threads, arguments.seconds,
                                 str(arguments.binaries), folder)
            figures = measure_cell(job, arguments.rounds,
                                   contestants(network, dtype, arguments.without))
        show('')
        report['cells'].append({
            'network': network, 'dtype': dtype, 'batch': batch,
            'contenders': {name: {'images_per_second': median, 'setting': setting,
                                  'lowest': lowest, 'highest': highest}
                           for name, (median, setting, lowest, highest)
                           in best_settings(figures).items()},
            'rounds': {f'{make.name} {make.setting}'.strip(): values
                       for make, values in figures.items()}})
        if arguments.json:  # Written after each cell, so that no figure is lost.
            arguments.json.write_text(json.dumps(report, indent=2) + '\n')
    if arguments.accuracy:
        report['accuracy'][Engine.name] = json.loads(arguments.accuracy.read_text())
    if 'int8' in arguments.dtypes.split(','):
        report['accuracy'].update(measure_accuracy(arguments.threads, arguments.without))
        show('')
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + '\n')
    print(markdown(report))


if __name__ == '__main__':
    main()
