"""Times the scan against plain PyTorch: python kernels/python/benchmark.py [--rounds 10] [--threads 2]

Every round runs each implementation once. The printed ratio compares the shortest times,
which other programs disturb least. If --threads is 1, the benchmark measures the CPU time of
its process, which other processes do not lengthen. Otherwise it measures the elapsed time.
"""

import argparse
import time

import torch
import torch.nn.functional as F

from sfmamba_scan import causal_conv1d_fn, selective_scan_fn, selective_scan_ref

BATCH, STATES = 8, 8
SHAPES = [(160, 196), (320, 49)]  # Channels and tokens of MambaVision-T's scans.


def scan_arguments(channels, tokens):
    torch.manual_seed(0)
    return dict(u=torch.randn(BATCH, channels, tokens), delta=torch.randn(BATCH, channels, tokens),
                A=-torch.rand(channels, STATES) * 4, B=torch.randn(BATCH, STATES, tokens),
                C=torch.randn(BATCH, STATES, tokens), D=torch.randn(channels),
                delta_bias=torch.randn(channels))


def mambapy_scan(pscan, u, delta, A, B, C, D, delta_bias):
    """Computes the scan with mamba.py's parallel scan, called as in its Mamba block."""
    u, delta, B, C = (x.transpose(1, 2) for x in (u, delta, B, C))
    delta = F.softplus(delta + delta_bias).unsqueeze(-1)
    h = pscan(torch.exp(delta * A), delta * B.unsqueeze(2) * u.unsqueeze(-1))
    return ((h @ C.unsqueeze(-1)).squeeze(3) + D * u).transpose(1, 2)


def conv_reference(x, weight):
    """Computes the convolution as Mamba does if causal-conv1d is not installed."""
    taps = weight.shape[1]
    y = F.conv1d(x, weight.unsqueeze(1), padding=taps - 1, groups=len(weight))
    return F.silu(y[..., :x.shape[2]])


def seconds(function, args, backward):
    args = {name: x.detach().requires_grad_(backward) for name, x in args.items()}
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    y = function(**args)
    if backward:
        y.sum().backward()
    return clock() - start


def compare(title, forms, args, rounds):
    """Prints the time of the first form, and how many times as long the other forms take."""
    for backward in (False, True):
        times = {name: [] for name in forms}
        for turn in range(rounds + 1):  # The first round warms up.
            for name, function in forms.items():
                took = seconds(function, args, backward)
                if turn:
                    times[name].append(took)
        ours, *others = (min(values) for values in times.values())
        what = 'forward and backward' if backward else 'forward'
        ratios = ''.join(f', {name} {other / ours:.1f} times'
                         for name, other in zip(list(forms)[1:], others))
        print(f'{title}, {what}: {ours * 1e3:.2f} ms{ratios}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--threads', type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    forms = {
        'sfmamba_scan': lambda **x: selective_scan_fn(**x, delta_softplus=True),
        'loop': lambda **x: selective_scan_ref(**x, delta_softplus=True),
    }
    try:
        from mambapy.pscan import pscan
        forms['mamba.py'] = lambda **x: mambapy_scan(pscan, **x)
    except ImportError:
        print('mamba.py is left out: pip install mambapy')
    print(f'PyTorch {torch.__version__}, {args.threads} threads, batch {BATCH}')
    for channels, tokens in SHAPES:
        compare(f'scan, {channels} channels, {tokens} tokens', forms,
                scan_arguments(channels, tokens), args.rounds)
    conv = {'sfmamba_scan': lambda **x: causal_conv1d_fn(**x, activation='silu'),
            'conv1d': conv_reference}
    for channels, tokens in SHAPES:
        compare(f'convolution, {channels} channels, {tokens} tokens', conv,
                dict(x=torch.randn(BATCH, channels, tokens), weight=torch.randn(channels, 4)),
                args.rounds)


if __name__ == '__main__':
    main()
