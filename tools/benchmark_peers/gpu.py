#!/usr/bin/env python3
"""Measures this project's engine beside PyTorch on one NVIDIA GPU.

    python gpu.py --suite PATH/suite --json peers.json

Whole models at 224x224 pixels by batch, and the scan alone on the paper's four shapes and
the models' own. PyTorch is tools/pytorch's network with the mixer as MambaVision writes it:
channel-major, its scan mamba-ssm's selective_scan_fn. Where that package is not installed
PyTorch is measured without any scan, which no PyTorch program can beat, and the report says
so. README.md says what is fair about it.
"""

import argparse
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools' / 'pytorch'))

SIZE = 224
SETTINGS = ('eager', 'eager channels_last', 'graph', 'graph channels_last')
OWN_KERNELS = ('lane', 'fold', 'chunk')  # The suite also times the paper's.
# Batch, channels, length. The paper's, then stages 3 and 4 of T, S and B.
SCANS = {'paper T stage 3': (128, 320, 196), 'paper T stage 4': (128, 640, 49),
         'paper B stage 3': (128, 512, 196), 'paper B stage 4': (128, 1024, 49),
         'T stage 3': (128, 160, 198), 'T stage 4': (128, 320, 51),
         'S stage 3': (128, 192, 198), 'S stage 4': (128, 384, 51),
         'B stage 3': (128, 256, 198), 'B stage 4': (128, 512, 51)}


def mamba_ssm_scan():
    """mamba-ssm's scan, or why there is none."""
    try:
        from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
    except Exception as error:  # A broken installation says so in many ways.
        return None, f'{type(error).__name__}: {error}'
    return selective_scan_fn, importlib.metadata.version('mamba-ssm')


# The mixer as MambaVision has it. `scan` takes u, dt [S,D,L], A [D,n], B, C [S,n,L], D and
# the bias, as selective_scan_fn does.

def without_scan(u, dt, A, B, C, D, bias):
    """Reads all that a scan reads, and costs one elementwise pass."""
    return u * D[:, None] + (dt + bias[:, None]) + (B * C).sum(1, keepdim=True)


def with_mamba_ssm(function):
    def scan(u, dt, A, B, C, D, bias):
        return function(u, dt, A, B, C, D, z=None, delta_bias=bias, delta_softplus=True)
    return scan


def by_definition(u, dt, A, B, C, D, bias):
    """Token by token; for the tests."""
    import sf_mamba
    y = sf_mamba.selective_scan_loop(u.transpose(1, 2), dt.transpose(1, 2), A,
                                     B.transpose(1, 2), C.transpose(1, 2), D, bias)
    return y.transpose(1, 2)


def channel_major_forward(scan):
    """A forward() for sf_mamba.MambaMixer that hands `scan` channel-major tensors."""
    import torch
    import torch.nn.functional as F

    def forward(self, x):
        S, L, _ = x.shape
        u, z = self.in_proj(x).transpose(1, 2).chunk(2, dim=1)
        u, z = F.silu(self.conv1d_x(u)), F.silu(self.conv1d_z(z))
        rows = u.transpose(1, 2).reshape(S * L, -1)
        dt, B, C = torch.split(self.x_proj(rows), [self.rank, 8, 8], dim=-1)
        dt = self.dt_proj(dt).view(S, L, -1).transpose(1, 2).contiguous()
        B, C = (t.view(S, L, -1).transpose(1, 2).contiguous() for t in (B, C))
        y = scan(u, dt, -torch.exp(self.A_log.float()), B, C, self.D.float(),
                 self.dt_proj.bias.float())
        return self.out_proj(torch.cat([y.to(z.dtype), z], dim=1).transpose(1, 2))
    return forward


def network(variant, tokens, scan):
    import deterministic
    import sf_mamba
    sf_mamba.MambaMixer.forward = channel_major_forward(scan)
    return deterministic.fill_deterministic(sf_mamba.make(variant, tokens=tokens)).eval()


# Timing, on the GPU.

def milliseconds(run, seconds):
    """[ms of each call], by events of the device; three calls warm up."""
    import time

    import torch
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return times


def captured(run):
    """`run` as a CUDA graph's replay."""
    import torch
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def quantiles(times):
    times = sorted(times)
    at = lambda share: times[round(share * (len(times) - 1))]
    return {'p10': at(0.1), 'median': at(0.5), 'p90': at(0.9)}


def pytorch_model(variant, tokens, batch, dtype, scan, setting, seconds):
    """Quantiles of a batch's milliseconds; the images are on the GPU already."""
    import torch
    kind = {'bf16': torch.bfloat16, 'fp16': torch.float16}[dtype]
    model = network(variant, tokens, scan).to('cuda', kind)
    images = torch.randn(batch, 3, SIZE, SIZE, device='cuda', dtype=kind)
    if 'channels_last' in setting:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    with torch.inference_mode():
        run = lambda: model(images)
        return quantiles(milliseconds(captured(run) if 'graph' in setting else run, seconds))


def pytorch_scan(function, batch, channels, length, seconds):
    """Microseconds of mamba-ssm's kernel alone, and with the copies around it."""
    import torch
    options = dict(device='cuda', dtype=torch.bfloat16)
    rows = torch.randn(batch, length, 2 * channels + 16, **options)
    A = -torch.arange(1.0, 9, device='cuda') * torch.exp(
        0.3 * torch.randn(channels, 8, device='cuda'))
    D = torch.randn(channels, device='cuda')
    bias = torch.randn(channels, device='cuda') - 4.6
    scan = with_mamba_ssm(function)

    def major(x):
        return x.transpose(1, 2).contiguous()

    u, dt, B, C = (major(x) for x in rows.split([channels, channels, 8, 8], dim=2))

    def with_copies():
        parts = (major(x) for x in rows.split([channels, channels, 8, 8], dim=2))
        u, dt, B, C = parts
        return scan(u, dt, A, B, C, D, bias).transpose(1, 2).contiguous()

    with torch.inference_mode():
        alone = captured(lambda: scan(u, dt, A, B, C, D, bias))
        copied = captured(with_copies)
        return {name: {key: value * 1e3 for key, value in
                       quantiles(milliseconds(run, seconds)).items()}
                for name, run in (('alone', alone), ('with copies', copied))}


# This project's side.

def engine_lines(suite, parts, variants, seconds):
    """The lines of JSON that the suite's benchmark writes."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([suite, '--benchmark', f'--parts={parts}', f'--variants={variants}',
                        f'--duration={seconds}s', f'--out={folder}'],
                       check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        path = pathlib.Path(folder, 'gpu.jsonl')
        if not path.exists():
            raise SystemExit(f'{suite}: measured nothing; is there a GPU?')
        return [json.loads(line) for line in path.read_text().splitlines()]


def engine_model(lines, variant, dtype, batch):
    """Images per second; None if the suite has no such figure."""
    for line in lines:
        if (line['benchmark'] == 'engine' and line['variant'] == variant and
                line['precision'] == dtype and line['batch'] == batch and
                line['side'] == SIZE and not line['full_windows'] and
                not line['fold_rows'] and not line['note']):
            return line['images_per_second']
    return None


def engine_scan(lines, name, batch):
    """The fastest plan of the scan: microseconds and what it is; None without one."""
    fits = [line for line in lines
            if line['benchmark'] == 'scan' and line['case'] == name and
            line['kernel'] in OWN_KERNELS and f' {batch} x ' in line['shape']]
    best = min(fits, key=lambda line: line['us'], default=None)
    return best and (best['us'], f"{best['kernel']}, {best['plan']}")


# The report.

def markdown(report):
    scan = report['mamba_ssm']
    peer = (f'mamba-ssm {scan}' if report['has_mamba_ssm']
            else f'no scan at all (mamba-ssm is missing: {scan})')
    lines = [f'{report["device"]}, torch {report["torch"]}; PyTorch with {peer}.', '',
             '| model | dtype | batch | PyTorch, images/s | setting | this project | ratio |',
             '|---|---|---|---|---|---|---|']
    for row in report['models']:
        own, peer = row['engine'], row['pytorch']
        ratio = f'{own / peer:.2f}x' if own and peer else '-'
        figures = [f'{figure:.0f}' if figure else '-' for figure in (peer, own)]
        lines.append(f'| {row["variant"]} | {row["dtype"]} | {row["batch"]} | {figures[0]} | '
                     f'{row["setting"]} | {figures[1]} | {ratio} |')
    if report['scans']:
        lines += ['', '| scan | batch x channels x tokens | mamba-ssm alone, us | with copies, us '
                  '| this project, us | plan | ratio alone | with copies |',
                  '|---|---|---|---|---|---|---|---|']
    for row in report['scans']:
        own, alone, copies = row['engine'], row['alone'], row['with copies']
        right = (f'{own:.2f} | {row["plan"]} | {alone / own:.2f}x | {copies / own:.2f}x'
                 if own else '- | - | - | -')
        lines.append(f'| {row["name"]} | {" x ".join(map(str, row["shape"]))} | {alone:.2f} | '
                     f'{copies:.2f} | {right} |')
    return '\n'.join(lines) + '\n'


def engine_name(variant, tokens):
    return ('mamba_vision_' if tokens == 'none' else 'sf_mamba_') + variant.lower()


def best_setting(variant, tokens, batch, dtype, scan, seconds):
    """PyTorch's fastest setting: its name, images per second and all settings' times."""
    settings = {}
    for setting in SETTINGS:
        try:
            settings[setting] = pytorch_model(variant, tokens, batch, dtype, scan, setting, seconds)
        except RuntimeError as error:  # Out of memory, or not to be captured.
            settings[setting] = {'error': str(error).splitlines()[0]}
    fits = [key for key, times in settings.items() if 'median' in times]
    if not fits:
        return 'none fits', None, settings
    name = min(fits, key=lambda key: settings[key]['median'])
    return name, batch / settings[name]['median'] * 1e3, settings


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--suite', type=pathlib.Path, help="the binary of //tests/gpu:suite; "
                        'without it PyTorch alone is measured')
    parser.add_argument('--variants', default='T,S,B')
    parser.add_argument('--tokens', default='data,none', help='data: SF-Mamba; none: MambaVision')
    parser.add_argument('--batches', default='1,32,128')
    parser.add_argument('--dtypes', default='bf16')
    parser.add_argument('--seconds', type=float, default=1, help='of each measurement')
    parser.add_argument('--json', type=pathlib.Path, help='write all figures here as well')
    arguments = parser.parse_args()

    import torch
    if not torch.cuda.is_available():
        print('skipped: no GPU')
        return
    function, version = mamba_ssm_scan()
    scan = with_mamba_ssm(function) if function else without_scan
    runs = [(variant, tokens) for variant in arguments.variants.split(',')
            for tokens in arguments.tokens.split(',')]
    names = ','.join(engine_name(*run) for run in runs)
    lines = engine_lines(arguments.suite.resolve(), 'scan,engine', names,
                         arguments.seconds) if arguments.suite else []
    report = {'device': torch.cuda.get_device_name(), 'torch': torch.__version__,
              'has_mamba_ssm': function is not None, 'mamba_ssm': version,
              'models': [], 'scans': []}
    for variant, tokens in runs:
        for dtype in arguments.dtypes.split(','):
            for batch in map(int, arguments.batches.split(',')):
                setting, figure, settings = best_setting(variant, tokens, batch, dtype, scan,
                                                         arguments.seconds)
                name = engine_name(variant, tokens)
                report['models'].append({
                    'variant': name, 'dtype': dtype, 'batch': batch, 'pytorch': figure,
                    'setting': setting, 'settings': settings,
                    'engine': engine_model(lines, name, dtype, batch)})
    for name, shape in SCANS.items() if function else ():
        times = pytorch_scan(function, *shape, arguments.seconds)
        own = engine_scan(lines, name, shape[0])
        report['scans'].append({
            'name': name, 'shape': shape, 'alone': times['alone']['median'],
            'with copies': times['with copies']['median'], 'times': times,
            'engine': own and own[0], 'plan': own and own[1]})
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + '\n')
    print(markdown(report))


if __name__ == '__main__':
    main()
