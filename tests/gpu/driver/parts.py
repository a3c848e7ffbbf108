"""Defines what run.py runs on a GPU. The most valuable parts come first.

This module starts no process. Parts are plain values, and the functions only choose among them.
"""

import dataclasses

# The names of tests of whole models contain "Gpu". These tests mostly run kernels of other
# libraries.
GRAPH_TESTS, MODEL_TESTS, KERNEL_TESTS = '*GpuPixels*', '*Gpu*-*GpuPixels*', '-*Gpu*'
MODELS = ('sf_mamba_t', 'sf_mamba_s', 'sf_mamba_b')
BASELINES = ('mamba_vision_t', 'mamba_vision_s', 'mamba_vision_b')
# Each of these tests takes many seconds under racecheck. Smaller tests run the same kernels.
LONG_TESTS = '*AgreesWithFp64/Fold*:*DetectorsSize:*RealSizes'
# Tests of kernels that are new or have changed since they last ran on a GPU.
CHANGED_TESTS = ('*DepthwiseConvolutionCuda*:*ImageNormalizeCuda*:*PixelConvolutionCuda*:'
                 '*ChannelScan*Cuda*:*CausalConv1dCuda*')
METRICS = 'gpu__time_duration.sum,dram__bytes.sum'


@dataclasses.dataclass(frozen=True)
class Step:
    """One process. Its arguments may contain fields that run.py replaces, such as {lines} and
    {seconds}.
    """
    name: str  # The name of its log.
    program: str  # 'suite', 'tests', 'sanitizer', 'ncu', or 'python' for a script.
    arguments: tuple
    # The seconds that earlier steps must leave for this step. A step gets the part's remaining time
    # without what later steps reserve.
    reserve: int = 0
    tuned: bool = False  # Whether to load the fold table if there is one.


@dataclasses.dataclass(frozen=True)
class Part:
    """Steps that share a time limit. If a step fails, the next one still runs."""
    name: str
    title: str
    seconds: int
    steps: tuple


def figures(name, *arguments, **more):
    return Step(name, 'suite', ('--benchmark', '--out={lines}', *arguments), **more)


def engines(name, *arguments, models=MODELS, groups='batch', **more):
    return figures(name, '--parts=engine', f'--groups={groups}', f'--variants={",".join(models)}',
                   *arguments, **more)


def slots(count, *arguments, **more):
    return engines(f'slots_{count}', '--batches=128', '--precisions=bf16', f'--slots={count}',
                   '--duration=700ms', *arguments, **more)


def peers(name, *arguments, **more):
    return Step(name, 'python', ('tools/benchmark_peers/gpu.py', '--out', '{lines}',
                                 '--budget', '{seconds}', *arguments), **more)


def server(name, title, steps, seconds=300):
    step = Step(name, 'python', ('tests/gpu/server/measure.py', '--out', '{lines}', '--work',
                                 '{work}', '--seconds', '{seconds}', f'--steps={steps}'))
    return Part(name, title, seconds, (step,))


def headline_round(number):
    """Returns the steps that measure the paper's ratio: SF-Mamba here, and MambaVision in PyTorch.
    The second step runs directly after the first one. Both models are replayed without pauses.
    """
    return (engines(f'headline_{number}', '--batches=128', '--precisions=bf16', '--slots=2',
                    '--duration=300ms', '--sustained=3s', reserve=45),
            peers(f'headline_peers_{number}', '--sustained', f'--models={",".join(BASELINES)}',
                  reserve=30))


def tests(name, filter, **more):
    return Step(name, 'tests', (f'--gtest_filter={filter}',), **more)


def sanitized(tool, filter, name, **more):
    return Step(name, 'sanitizer', (f'--tool={tool}', f'--gtest_filter={filter}'), **more)


def sanitizer(tool, title, seconds, filter=KERNEL_TESTS):
    return Part(tool, title, seconds, (sanitized(tool, filter, tool),))


def profile(variant):
    return Step(f'ncu_{variant}', 'ncu', (
        '--clock-control', 'none', '--cache-control', 'none', '--profile-from-start', 'off',
        '--metrics', METRICS,
        '--csv', '--print-units', 'base', '--log-file', '{csv}',
        '{suite}', f'--once={variant},bf16,128'), reserve=55)


PARTS = (
    Part('smoke', 'setting, clocks; graphs and whole models beside their references', 180, (
        Step('setting', 'suite', ('--setting', '--out={lines}')),
        tests('graphs', GRAPH_TESTS, reserve=60), tests('models', MODEL_TESTS, reserve=90))),
    Part('changes', 'kernels that no card has run yet: results, memory accesses, races', 150, (
        tests('changed', CHANGED_TESTS),
        sanitized('memcheck', CHANGED_TESTS, 'changed_memcheck', reserve=60),
        sanitized('racecheck', CHANGED_TESTS, 'changed_racecheck', reserve=45))),
    Part('operators', 'the package sfmamba_scan, built here, beside itself on the CPU', 100, (
        Step('operators', 'python', ('tests/kernels/python/cuda_test.py',)),)),
    Part('device', "cuDNN's description of the card, from which plans are made without it", 30, (
        Step('device_properties', 'python', ('tests/gpu/torch/device_properties.py', '--out',
                                             '{properties}')),)),
    Part('engines', 'T, S, B in bf16, batch 128, with 2, 3 and 4 slots', 150, (
        slots(3, '--sustained=3s'), slots(2, reserve=40), slots(4, reserve=40))),
    Part('headline', 'SF-Mamba here and MambaVision in PyTorch in turn, without pauses', 300, (
        *headline_round(1), *headline_round(2), *headline_round(3))),
    Part('rounds', 'SF-Mamba and MambaVision on equal kernels in turn, five rounds', 300, (
        engines('rounds', '--batches=128', '--precisions=bf16', '--slots=2', '--rounds=5',
                '--duration=300ms', '--sustained=1s', models=MODELS + BASELINES),)),
    Part('attention', "PyTorch's backends of attention on the models' shapes", 60, (
        Step('sdpa', 'python', ('tests/gpu/torch/sdpa.py', '--out', '{lines}')),)),
    server('server', 'the server: READY, answers, rates by input, latencies',
           'ready,answers,uint8,jpeg,fp32,rates,requests'),
    server('server_stress', 'the server: overload, loading and SIGTERM under load, its ceiling',
           'ready,uint8,overload,reload,sigterm,models,ceiling'),
    Part('kernels', 'each kernel of one pass of T, S, B', 180,
         tuple(profile(variant) for variant in MODELS)),
    Part('batches', 'batches 1, 8, 32, 256; MambaVision; fp16; T in fp32', 240, (
        engines('mamba_vision', '--batches=128', '--precisions=bf16', '--duration=500ms',
                models=BASELINES, reserve=40),
        engines('bf16', '--batches=1,8,32,256', '--precisions=bf16', '--duration=500ms',
                reserve=90),
        engines('fp16', '--batches=128', '--precisions=fp16', '--duration=500ms', reserve=40),
        engines('fp32', '--batches=128', '--precisions=fp32', '--duration=500ms',
                models=('sf_mamba_t',), reserve=20),
        engines('mamba_vision_batches', '--batches=1,32,256', '--precisions=bf16',
                '--duration=300ms', models=('mamba_vision_t', 'mamba_vision_b'), reserve=30))),
    Part('scan', "the scan: the paper's shapes by B1, the models'; the fold table", 180, (
        figures('scan_paper', '--parts=scan', '--groups=paper', reserve=70),
        figures('scan_models', '--parts=scan', '--groups=model', '--batches=128', reserve=30),
        Step('tune', 'suite', ('--tune={table}', '--tune_budget=60s', '--out={lines}'),
             reserve=75))),
    Part('peers', 'PyTorch and mamba-ssm beside them', 180, (peers('peers'),)),
    Part('ladder', "the paper's ladder in PyTorch, with our kernels as operators", 180, (
        Step('ladder', 'python', ('tests/gpu/torch/ladder.py', '--out', '{lines}', '--operators',
                                  '{operators}', '--budget', '{seconds}')),)),
    Part('compiled', 'torch.compile of all six models', 300, (
        peers('compiled', '--compiled', 'compile'),)),
    Part('autotuned', 'torch.compile of all six models, autotuned, with constants folded', 300, (
        peers('autotuned', '--compiled', 'compile max-autotune'),)),
    sanitizer('memcheck', 'kernels: memory accesses', 120),
    # The following parts run only if there is time left.
    Part('tests', 'kernels beside their references', 120, (tests('kernels', KERNEL_TESTS),)),
    Part('tuned', 'T, S, B in bf16, batch 128, with the fold table', 60, (
        engines('tuned', '--batches=128', '--precisions=bf16', '--duration=700ms', tuned=True),)),
    sanitizer('racecheck', 'kernels: races in shared memory', 240,
              f'{KERNEL_TESTS}:{LONG_TESTS}'),
    sanitizer('initcheck', 'kernels: memory read before it is written', 240),
    sanitizer('synccheck', 'kernels: barriers', 180),
    Part('resolution', 'T from 224 to 3584 pixels a side', 240, (
        engines('resolution', '--duration=300ms', groups='resolution', models=('sf_mamba_t',),
                tuned=True),)),
    Part('folds', 'MambaVision-T by B1', 60, (
        engines('folds', '--duration=700ms', groups='fold', models=('mamba_vision_t',),
                tuned=True),)),
    Part('passes', 'the kernels between matrix products', 50, (
        figures('passes', '--parts=pass'),
        Step('depthwise', 'python', ('tests/gpu/torch/depthwise.py', '--out', '{lines}'),
             reserve=25))),
    server('server_first', 'the server in short: default models and T READY, answers, a rate',
           'models,ready,answers,uint8', 240),
    Part('scans', 'the scan: other batches, long and ragged sequences', 150, (
        figures('scans', '--parts=scan', '--groups=model,long,mixed'),)),
)


# Each preset names the parts of one call of run.py. The limits of the parts add up to at most 8
# minutes for 'changes', and to at most 4 minutes for 'server'. Both calls together fit into 15
# minutes, including the start of a machine for each call.
PRESETS = {'changes': ('smoke', 'changes', 'operators', 'passes'), 'server': ('server_first',)}


def chosen(names, done, again):
    """Returns the parts to run, in order. These are the parts in `names`, or all parts if it is
    empty. Parts in `done` are included only if `again`.
    """
    known = [part.name for part in PARTS]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f'no part {", ".join(unknown)}; expected some of {", ".join(known)}')
    return [part for part in PARTS
            if (not names or part.name in names) and (again or part.name not in done)]


def limit(part, scale):
    """Returns the seconds that the part may take. In a rehearsal, `scale` is below 1."""
    return part.seconds * scale


def step_limit(part, index, left, scale):
    """Returns the seconds for one step. `left` is the part's remaining time, of which later steps
    reserve some.
    """
    return max(left - scale * sum(step.reserve for step in part.steps[index + 1:]), 0)
