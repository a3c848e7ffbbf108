#!/usr/bin/env python3
"""Measures the paper's sequence of optimisations in PyTorch, as in the paper: MambaVision-T, eager
and with AMP. Each step adds an optimisation. The first step uses mamba-ssm's kernels. The next
steps use this project's scan and short convolution as operators. The scan is first unfolded and
then folded into B1 rows. The last step is SF-Mamba, which also has auxiliary tokens.

  python ladder.py --out gpu.jsonl

All steps are measured in turn, round after round, because a GPU's clock changes within minutes.
Each measurement is appended to the file as a line of JSON.
"""

import argparse
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / 'tools' / 'benchmark_peers'))

import gpu  # Puts tools/pytorch on the path.
import gpu_timing

# B1 is the number of rows into which the sequences of a scan are folded. The step "adaptive"
# chooses among these values. 0 means no folding.
ADAPTIVE = (0, 1, 2, 4, 8, 16)
# Each step is (name, auxiliary tokens, B1). If B1 is None, the step uses mamba-ssm's kernels. If B1
# is "adaptive", the step uses the fastest B1 for each shape.
STEPS = (('mamba-ssm', 'none', None), ('our kernels', 'none', 0), ('B1 = 1', 'none', 1),
         ('B1 = 4', 'none', 4), ('adaptive', 'none', 'adaptive'),
         ('adaptive, tokens', 'data', 'adaptive'))
BATCH = 128
CHECKED = 4  # The number of images whose logits are compared.
MOST_DEVIATION = 0.2  # The largest deviation of AMP's logits from fp32's, in standard deviations.


def parameters(mixer):
    """Returns a mixer's parameters for the operators, in fp32: the weights [3,D] of both
    convolutions, A [n,D], D [D] and the bias [D].
    """
    import torch
    taps = [conv.weight.float().squeeze(1).t().contiguous()
            for conv in (mixer.conv1d_x, mixer.conv1d_z)]
    A = -torch.exp(mixer.A_log.float()).t().contiguous()
    return (*taps, A, mixer.D.float().contiguous(), mixer.dt_proj.bias.float().contiguous())


def token_major_forward(operators, rows_of):
    """Returns a forward() for sf_mamba.MambaMixer that needs no transpositions. `operators` has
    short_convolutions() and selective_scan(). rows_of(S, L, D) returns the scan's B1.
    """
    import torch

    def forward(self, x):
        S, L, _ = x.shape
        if not hasattr(self, 'for_operators'):
            self.for_operators = parameters(self)
        weight_u, weight_z, A, D, bias = self.for_operators
        u, yz = operators.short_convolutions(self.in_proj(x), weight_u, weight_z)
        dt, B, C = torch.split(self.x_proj(u), [self.rank, 8, 8], dim=-1)
        channels = u.shape[-1]
        operators.selective_scan(u, self.dt_proj(dt), A, B, C, D, bias,
                                 rows_of(S, L, channels), yz[..., :channels])
        return self.out_proj(yz)
    return forward


class Adaptive:
    """Chooses the fastest B1 for each shape. Measures when a shape first occurs."""

    def __init__(self, microseconds):
        """microseconds(S, L, D, rows) measures a scan and returns its time."""
        self.microseconds = microseconds
        self.chosen = {}

    def __call__(self, S, L, D):
        if (S, L, D) not in self.chosen:
            times = {rows: self.microseconds(S, L, D, rows) for rows in ADAPTIVE
                     if rows == 0 or S % rows == 0}
            self.chosen[S, L, D] = min(times, key=times.get)
        return self.chosen[S, L, D]


def scan_timer(operators):
    """Returns a function microseconds(S, L, D, rows) that times a scan on the GPU."""
    import torch

    def microseconds(S, L, D, rows):
        options = dict(device='cuda', dtype=torch.bfloat16)
        u, dt, y = (torch.randn(S, L, D, **options) for _ in range(3))
        B, C = (torch.randn(S, L, 8, **options) for _ in range(2))
        A = -torch.rand(8, D, device='cuda') - 0.1
        one = torch.ones(D, device='cuda')
        run = lambda: operators.selective_scan(u, dt, A, B, C, one, -one, rows, y)
        run()
        # Launches the scan directly. gpu_timing.warm_and_cold() would record it in a CUDA graph,
        # but this function runs in the middle of a step, when a shape first occurs.
        return 1e3 * gpu_timing.measured(run)['median']
    return microseconds


def network(tokens, rows, scan, operators, adaptive):
    """Returns MambaVision-T if `tokens` is "none", or SF-Mamba-T if it is "data". `rows` is the
    step's B1 and selects the kernels. The weights are the same in each call.
    """
    import sf_mamba
    if rows is None:
        forward = gpu.channel_major_forward(scan)
    else:
        forward = token_major_forward(operators,
                                      adaptive if rows == 'adaptive' else lambda *_: rows)
    import torch
    torch.manual_seed(1)
    model = sf_mamba.make('T', tokens=tokens).eval()
    for module in model.modules():
        if isinstance(module, sf_mamba.MambaMixer):
            module.forward = forward.__get__(module)
    return model


def deviation(logits, expected):
    """Returns the largest difference between `logits` and `expected`, in standard deviations of an
    image's expected logits.
    """
    spread = expected.float().std(dim=1, keepdim=True)
    return ((logits.float() - expected.float()).abs() / spread).max().item()


def line(step, how, round, times, note='', **more):
    ms = times['median'] if times else None
    return {'benchmark': 'ladder', 'step': step, 'setting': how, 'round': round, 'batch': BATCH,
            'ms': ms, 'images_per_second': BATCH / ms * 1e3 if ms else None, 'note': note, **more}


def measure(emit, runs, rounds, seconds, left):
    """Measures each of `runs` once per round, in their order. A run is (step, how, function). `how`
    is "eager" or "graph". Stops when left(), the remaining seconds, is negative.
    """
    for round in range(1, rounds + 1):
        for step, how, run in runs:
            if left() < 0:
                return
            times = gpu_timing.measured(run, limit=seconds)
            emit(line(step, how, round, times, **gpu_timing.clocks()))


def made(emit, scan, operators):
    """Returns (step, how, function) for all steps that can be run, with "eager" and "graph" as
    `how`. Emits the deviation of each step's logits and, for a step that fails, the error.
    """
    import torch
    images = torch.randn(BATCH, 3, gpu.SIZE, gpu.SIZE, device='cuda')
    adaptive = Adaptive(scan_timer(operators))
    runs, expected = [], {}
    for step, tokens, rows in STEPS:
        model = network(tokens, rows, scan, operators, adaptive).cuda()
        if tokens not in expected:
            with torch.inference_mode():
                expected[tokens] = network(tokens, None, gpu.by_definition, None, None).cuda()(
                    images[:CHECKED])

        def run(model=model):
            with torch.inference_mode(), torch.autocast('cuda', torch.bfloat16):
                return model(images)
        try:
            off = deviation(run()[:CHECKED], expected[tokens])
            emit({'benchmark': 'ladder_check', 'step': step, 'deviation': off})
            if not off <= MOST_DEVIATION and (rows is not None or scan is not gpu.without_scan):
                raise RuntimeError(f'its logits deviate by {off:.3f} standard deviations')
            runs.append((step, 'eager', run))
            runs.append((step, 'graph', gpu_timing.captured(run)))
        except RuntimeError as error:
            emit(line(step, 'eager', 0, None, note=gpu.first_line(error)))
    emit({'benchmark': 'ladder_rows', 'rows': {
        f'{S} x {L}, {D} channels': rows for (S, L, D), rows in adaptive.chosen.items()}})
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--operators', type=pathlib.Path,
                        default=ROOT / '.gpu' / 'operators' / 'sfmamba_operators.so')
    parser.add_argument('--budget', type=float, default=300, help='seconds')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.5, help='of a measurement')
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.budget

    import torch
    if not torch.cuda.is_available():
        print('skipped: no GPU')
        return 0
    if not arguments.operators.exists():
        print(f'ladder: no {arguments.operators}: tests/gpu/torch/build_operators.sh makes it')
        return 1

    def emit(what):
        print(json.dumps(what), flush=True)
        with open(arguments.out, 'a', encoding='utf-8') as file:
            file.write(json.dumps(what) + '\n')

    torch.backends.cudnn.benchmark = True
    torch.ops.load_library(arguments.operators)
    function, version = gpu.mamba_ssm_scan()
    if function is None:
        print(f'ladder: no mamba-ssm: {version}; its step has no scan at all')
    scan = gpu.with_mamba_ssm(function) if function else gpu.without_scan
    emit({'benchmark': 'ladder_setting', 'mamba_ssm': version if function else '',
          'device': torch.cuda.get_device_name()})
    runs = made(emit, scan, torch.ops.sfmamba_gpu)
    measure(emit, runs, arguments.rounds, arguments.seconds, lambda: end - time.monotonic())
    return 0


if __name__ == '__main__':
    sys.exit(main())
