#!/usr/bin/env python3
"""Measures PyTorch, with mamba-ssm's scan, on one NVIDIA GPU.

    python gpu.py --out gpu.jsonl

Whole models at 224x224 pixels, and the scan alone on the paper's four shapes and the models'
own; each figure is appended to the file as a line of JSON once it is measured.
tests/gpu/driver/report.py puts this project's figures beside them. PyTorch is tools/pytorch's
network with the mixer as MambaVision writes it: channel-major, its scan mamba-ssm's
selective_scan_fn. Where that package is missing PyTorch gets no scan at all, which no PyTorch
program can beat. README.md says what is fair about it.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import pathlib
import subprocess
import sys
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools' / 'pytorch'))

SIZE = 224
LAUNCHES = 10  # Of a graph; this and what follows are those of kernels/cuda/gpu_timer_cuda.cc.
REPEATS, FEWEST_REPEATS, LIMIT = 200, 5, 0.2
FLUSH_BYTES = 256 << 20  # Above any L2 cache's size.
COMPILE_SECONDS = 90  # That torch.compile may take.

# Variant, tokens ("data": SF-Mamba, "none": MambaVision), precision, batch; the most
# valuable first. The scans come behind the first three.
MODELS = [('T', 'data', 'bf16', 128), ('S', 'data', 'bf16', 128), ('B', 'data', 'bf16', 128),
          ('T', 'none', 'bf16', 128), ('T', 'data', 'bf16', 32), ('T', 'data', 'bf16', 1),
          ('B', 'none', 'bf16', 128), ('S', 'none', 'bf16', 128), ('T', 'data', 'fp16', 128)]
COMPILED = MODELS[0]
# Batch, channels, length. The paper's, then stages 3 and 4 of T, S and B.
SCANS = {'paper T stage 3': (128, 320, 196), 'paper T stage 4': (128, 640, 49),
         'paper B stage 3': (128, 512, 196), 'paper B stage 4': (128, 1024, 49),
         'T stage 3': (128, 160, 198), 'T stage 4': (128, 320, 51),
         'S stage 3': (128, 192, 198), 'S stage 4': (128, 384, 51),
         'B stage 3': (128, 256, 198), 'B stage 4': (128, 512, 51)}


def mamba_ssm_scan():
    """mamba-ssm's scan and version, or None and why there is none.

    The package itself is not imported: it would bring its language models and all that those
    need.
    """
    try:
        found = importlib.util.find_spec('mamba_ssm')
        if found is None:
            return None, 'it is not installed'
        package = types.ModuleType('mamba_ssm')
        package.__path__ = list(found.submodule_search_locations)
        sys.modules['mamba_ssm'] = package
        from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
        return selective_scan_fn, importlib.metadata.version('mamba-ssm')
    except Exception as error:  # A broken installation says so in many ways.
        return None, f'{type(error).__name__}: {error}'


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


def opaque(scan):
    """The scan as one operator, which torch.compile does not look into."""
    import torch
    from torch import Tensor

    @torch.library.custom_op('peers::scan', mutates_args=())
    def operator(u: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor,
                 bias: Tensor) -> Tensor:
        return scan(u, dt, A, B, C, D, bias)

    operator.register_fake(lambda u, dt, A, B, C, D, bias: torch.empty_like(dt))
    return operator


def network(variant, tokens, scan):
    import sf_mamba
    sf_mamba.MambaMixer.forward = channel_major_forward(scan)
    return sf_mamba.make(variant, tokens=tokens).eval()


# Timing, on the GPU, as this project's own kernels are timed.

def captured(run, launches=1):
    """`run`, so many times, as a CUDA graph's replay."""
    import torch
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            run()
    return graph.replay


def quantiles(times):
    times = sorted(times)
    at = lambda share: times[round(share * (len(times) - 1))]
    return {'p10': at(0.1), 'median': at(0.5), 'p90': at(0.9)}


def events(run, prepare, repeats):
    """[ms of each run], by events of the device; `prepare` stays out of them."""
    import torch
    pairs = []
    for _ in range(repeats):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        prepare()
        pair[0].record()
        run()
        pair[1].record()
        pairs.append(pair)
    torch.cuda.synchronize()
    return [start.elapsed_time(stop) for start, stop in pairs]


def repeats(milliseconds, limit):
    """How many runs of so many milliseconds there are in `limit` seconds, within bounds."""
    return int(min(max(limit * 1e3 / max(milliseconds, 1e-6), FEWEST_REPEATS), REPEATS))


def measured(run, prepare=lambda: None, limit=LIMIT):
    """Quantiles of the milliseconds of one run."""
    events(run, prepare, 1)
    return quantiles(events(run, prepare, repeats(events(run, prepare, 1)[0], limit)))


def warm_and_cold(run):
    """Median microseconds: of one of ten launches in a graph, and of one after the L2 cache
    was flushed."""
    import torch
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device='cuda')
    warm = measured(captured(run, LAUNCHES))
    cold = measured(captured(run), flush.zero_)
    scaled = {key: value * 1e3 / LAUNCHES for key, value in warm.items()}
    return {'us': scaled['median'], 'us_p10': scaled['p10'], 'us_p90': scaled['p90'],
            'us_cold': cold['median'] * 1e3}


# What is measured.

def setting_line(version, missing):
    import torch
    return {'benchmark': 'peer_setting', 'device': torch.cuda.get_device_name(),
            'torch': torch.__version__, 'cuda': torch.version.cuda,
            'cudnn': cudnn_version(torch.backends.cudnn.version()),
            'mamba_ssm': version, 'mamba_ssm_missing': missing}


def cudnn_version(number):
    """91900 is 9.19.0."""
    return f'{number // 10000}.{number // 100 % 100}.{number % 100}' if number else 'none'


def model_line(case, setting, times=None, note=''):
    variant, tokens, precision, batch = case
    name = ('mamba_vision_' if tokens == 'none' else 'sf_mamba_') + variant.lower()
    times = times or {'p10': None, 'median': None, 'p90': None}
    return {'benchmark': 'peer_model', 'variant': name, 'precision': precision, 'batch': batch,
            'setting': setting, 'ms': times['median'], 'ms_p10': times['p10'],
            'ms_p90': times['p90'], 'note': note,
            'images_per_second': batch / times['median'] * 1e3 if times['median'] else None}


def model_and_images(case, scan):
    import torch
    variant, tokens, precision, batch = case
    kind = {'bf16': torch.bfloat16, 'fp16': torch.float16}[precision]
    with torch.device('cuda'):
        model = network(variant, tokens, scan).to(kind)
        return model, torch.randn(batch, 3, SIZE, SIZE, dtype=kind)


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def model_lines(case, scan, seconds):
    """A line for each setting; the images are on the GPU already."""
    import torch
    model, images = model_and_images(case, scan)
    for layout in (torch.contiguous_format, torch.channels_last):
        model, images = (x.to(memory_format=layout) for x in (model, images))
        for kind in ('eager', 'graph'):
            setting = kind + (' channels_last' if layout == torch.channels_last else '')
            try:
                with torch.inference_mode():
                    run = lambda: model(images)
                    run()  # cuDNN chooses its algorithms.
                    times = measured(captured(run) if kind == 'graph' else run, limit=seconds)
                yield model_line(case, setting, times)
            except RuntimeError as error:  # Out of memory, or not to be captured.
                yield model_line(case, setting, note=first_line(error))


def compiled_line(case, scan, seconds):
    """torch.compile's line, as a graph."""
    import torch
    model, images = model_and_images(case, opaque(scan) if scan is not without_scan else scan)
    model, images = (x.to(memory_format=torch.channels_last) for x in (model, images))
    with torch.inference_mode():
        compiled = torch.compile(model)
        run = lambda: compiled(images)
        run()
        return model_line(case, 'compile', measured(captured(run), limit=seconds))


def scan_lines(name, function):
    """mamba-ssm's kernel alone on channel-major input, and with the copies around it."""
    import torch
    batch, channels, length = SCANS[name]
    options = dict(device='cuda', dtype=torch.bfloat16)
    rows = torch.randn(batch, length, 2 * channels + 16, **options)
    A = -torch.arange(1.0, 9, device='cuda') * torch.exp(
        0.3 * torch.randn(channels, 8, device='cuda'))
    D = torch.randn(channels, device='cuda')
    bias = torch.randn(channels, device='cuda') - 4.6
    scan = with_mamba_ssm(function)
    rows[:, :, channels:2 * channels] *= 0.5

    def parts():
        return (x.transpose(1, 2).contiguous()
                for x in rows.split([channels, channels, 8, 8], dim=2))

    u, dt, B, C = parts()

    def with_copies():
        u, dt, B, C = parts()
        return scan(u, dt, A, B, C, D, bias).transpose(1, 2).contiguous()

    with torch.inference_mode():
        for what, run in (('alone', lambda: scan(u, dt, A, B, C, D, bias)),
                          ('with copies', with_copies)):
            yield {'benchmark': 'peer_scan', 'case': name, 'what': what,
                   'shape': [batch, channels, length], **warm_and_cold(run)}


# The order, and what there is time for.

def child(arguments, seconds):
    """Runs this program; what went wrong, or ''."""
    try:
        code = subprocess.run([sys.executable, __file__, *arguments], timeout=seconds).returncode
        return f'exit status {code}' if code else ''
    except subprocess.TimeoutExpired:
        return f'took more than {seconds:.0f} s'


def measure(emit, function, scan, seconds, left):
    """All figures but the compiled one, as long as there is time."""
    def models(cases):
        for case in cases:
            if left() <= 0:
                emit(model_line(case, 'none', note='no time was left'))
                continue
            for line in model_lines(case, scan, seconds):
                emit(line)

    models(MODELS[:3])
    for name in SCANS if function else ():
        if left() > 0:
            for line in scan_lines(name, function):
                emit(line)
    models(MODELS[3:])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True,
                        help='file that lines of JSON are appended to')
    parser.add_argument('--budget', type=float, default=600, help='seconds for all figures')
    parser.add_argument('--seconds', type=float, default=0.5, help='of a measurement of a model')
    parser.add_argument('--compiled', action='store_true', help="torch.compile's figure alone")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    end = time.monotonic() + arguments.budget

    import torch
    if not torch.cuda.is_available():
        print('skipped: no GPU')
        return

    def emit(line):
        print(json.dumps(line), flush=True)
        with open(arguments.out, 'a', encoding='utf-8') as file:
            file.write(json.dumps(line) + '\n')

    torch.backends.cudnn.benchmark = True
    function, version = mamba_ssm_scan()
    scan = with_mamba_ssm(function) if function else without_scan
    if arguments.compiled:
        emit(compiled_line(COMPILED, scan, arguments.seconds))
        return
    emit(setting_line(version if function else '', '' if function else version))
    reserve = min(COMPILE_SECONDS, arguments.budget / 2)
    measure(emit, function, scan, arguments.seconds,
            lambda: end - reserve - time.monotonic())
    torch.cuda.empty_cache()
    wrong = child(['--compiled', '--out', str(arguments.out), '--seconds',
                   str(arguments.seconds)], min(COMPILE_SECONDS, end - time.monotonic()))
    if wrong:
        emit(model_line(COMPILED, 'compile', note=wrong))


if __name__ == '__main__':
    main()
