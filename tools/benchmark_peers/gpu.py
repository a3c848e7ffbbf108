#!/usr/bin/env python3
"""Measures PyTorch, with mamba-ssm's scan, on one NVIDIA GPU.

  python gpu.py --out gpu.jsonl

Measures whole models at 224x224 pixels. Also measures the scan alone, on the paper's four shapes
and on the models' own shapes. Each figure is appended to the file as a line of JSON when it is
measured. tests/gpu/driver/report.py prints this project's figures beside them. The network is the
one in tools/pytorch, with the mixer as MambaVision writes it. The mixer is channel-major, and its
scan is selective_scan_fn of mamba-ssm. If this package is missing, PyTorch runs without a scan,
which is faster than any PyTorch program with one. README.md says why this is fair.
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

from gpu_timing import captured, measured, replayed, warm_and_cold

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools' / 'pytorch'))

SIZE = 224
COMPILE_SECONDS = 90  # The time limit for torch.compile per model and mode.
SUSTAINED = 3  # The seconds for which a graph is replayed without pauses, so that the GPU warms up.

# Each model has a variant, tokens ("data" is SF-Mamba, "none" is MambaVision), a precision and a
# batch size. The most important models come first. The scans are measured after the first three
# models.
MODELS = [('T', 'data', 'bf16', 128), ('S', 'data', 'bf16', 128), ('B', 'data', 'bf16', 128),
          ('T', 'none', 'bf16', 128), ('T', 'data', 'bf16', 32), ('T', 'data', 'bf16', 1),
          ('B', 'none', 'bf16', 128), ('S', 'none', 'bf16', 128), ('T', 'data', 'fp16', 128)]
# The settings of torch.compile by name. "freezing" folds constants, also those of BatchNorm.
COMPILERS = {'compile': {}, 'compile max-autotune': {
    'mode': 'max-autotune-no-cudagraphs', 'freezing': True}}
# The six models that are also measured with torch.compile, and with graphs that are replayed
# without pauses.
ALL_SIX = [(variant, tokens, 'bf16', 128) for variant in 'TSB' for tokens in ('data', 'none')]
# The batch size, channels and length of each scan: the paper's scans, then the scans of stages 3
# and 4 of T, S and B.
SCANS = {'paper T stage 3': (128, 320, 196), 'paper T stage 4': (128, 640, 49),
         'paper B stage 3': (128, 512, 196), 'paper B stage 4': (128, 1024, 49),
         'T stage 3': (128, 160, 198), 'T stage 4': (128, 320, 51),
         'S stage 3': (128, 192, 198), 'S stage 4': (128, 384, 51),
         'B stage 3': (128, 256, 198), 'B stage 4': (128, 512, 51)}


def mamba_ssm_scan():
    """Returns (mamba-ssm's scan, its version). If it is not available, returns (None, the reason).

    The package itself is not imported, because it would also import its language models and
    everything that these need.
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
    except Exception as error:  # A broken installation may raise anything.
        return None, f'{type(error).__name__}: {error}'


# The mixer as MambaVision writes it. `scan` has the arguments of selective_scan_fn. u and dt have
# the shape [sequences, channels, length], and A has [channels, states]. B and C have [sequences,
# states, length], and D and the bias have [channels].

def without_scan(u, dt, A, B, C, D, bias):
    """Reads all inputs of a scan in one elementwise pass, without scanning."""
    return u * D[:, None] + (dt + bias[:, None]) + (B * C).sum(1, keepdim=True)


def with_mamba_ssm(function):
    def scan(u, dt, A, B, C, D, bias):
        return function(u, dt, A, B, C, D, z=None, delta_bias=bias, delta_softplus=True)
    return scan


def by_definition(u, dt, A, B, C, D, bias):
    """Scans token by token, for the tests."""
    import sf_mamba
    y = sf_mamba.selective_scan_loop(u.transpose(1, 2), dt.transpose(1, 2), A,
                                     B.transpose(1, 2), C.transpose(1, 2), D, bias)
    return y.transpose(1, 2)


def channel_major_forward(scan):
    """Returns a forward() for sf_mamba.MambaMixer, which passes channel-major tensors to `scan`."""
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
    """Returns the scan wrapped as one operator, so that torch.compile does not look into it."""
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


# ---- Measurements, which yield lines ----

def setting_line(version, missing):
    import torch
    return {'benchmark': 'peer_setting', 'device': torch.cuda.get_device_name(),
            'torch': torch.__version__, 'cuda': torch.version.cuda,
            'cudnn': cudnn_version(torch.backends.cudnn.version()),
            'mamba_ssm': version, 'mamba_ssm_missing': missing}


def cudnn_version(number):
    """Converts cuDNN's number of a version, for example 91900 to 9.19.0."""
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
    """Yields a line for each setting. The images are on the GPU before the measurement."""
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
            except RuntimeError as error:  # Out of memory, or it cannot be captured.
                yield model_line(case, setting, note=first_line(error))


def compiled_line(case, setting, scan, seconds):
    """Measures torch.compile, run as a CUDA graph. Returns the line. `setting` is a key of
    COMPILERS.
    """
    import torch
    import torch._inductor.config
    how = dict(COMPILERS[setting])
    torch._inductor.config.freezing = how.pop('freezing', False)
    model, images = model_and_images(case, opaque(scan) if scan is not without_scan else scan)
    model, images = (x.to(memory_format=torch.channels_last) for x in (model, images))
    # torch.compile folds constants only under no_grad().
    with torch.no_grad():
        compiled = torch.compile(model, **how)
        run = lambda: compiled(images)
        run()
        return model_line(case, setting, measured(captured(run), limit=seconds))


def sustained_line(case, setting, scan, seconds):
    """Replays a setting's CUDA graph without pauses. Returns the line with the time, and the GPU's
    clocks meanwhile.
    """
    import torch
    model, images = model_and_images(case, scan)
    if 'channels_last' in setting:
        model, images = (x.to(memory_format=torch.channels_last) for x in (model, images))
    with torch.inference_mode():
        run = lambda: model(images)
        run()
        each, meanwhile = replayed(captured(run), seconds)
    line = model_line(case, setting, {'p10': each, 'median': each, 'p90': each})
    return {**line, 'benchmark': 'peer_sustained', **meanwhile}


def best_setting(lines, case):
    """Returns the setting whose CUDA graph is the fastest for `case`, according to lines of JSON.
    """
    name = model_line(case, '')['variant']
    found = {}
    for text in lines:
        line = json.loads(text) if text.startswith('{') and text.endswith('}') else {}
        if (line.get('benchmark') == 'peer_model' and line['variant'] == name and
                line['batch'] == case[3] and line['precision'] == case[2] and
                line['setting'].startswith('graph') and line['images_per_second']):
            found[line['setting']] = line['images_per_second']
    return max(found, key=found.get, default='graph channels_last')


def scan_lines(name, function):
    """Measures mamba-ssm's kernel on channel-major input. Yields a line for the kernel alone and
    for the kernel with the copies around it.
    """
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


# ---- The order of the measurements, and the time limit ----

def child(arguments, seconds):
    """Runs this program in another process. Returns the error, or '' if there was none."""
    try:
        code = subprocess.run([sys.executable, __file__, *arguments], timeout=seconds).returncode
        return f'exit status {code}' if code else ''
    except subprocess.TimeoutExpired:
        return f'took more than {seconds:.0f} s'


def measure(emit, function, scan, seconds, left):
    """Measures eager PyTorch, CUDA graphs and the scans, as long as there is time."""
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
    parser.add_argument('--compiled', choices=list(COMPILERS),
                        help="torch.compile's figures alone, of each model in this mode")
    parser.add_argument('--one', nargs=2, metavar=('VARIANT', 'SETTING'),
                        help='one of these figures, in this process')
    parser.add_argument('--sustained', action='store_true',
                        help='replays without pauses alone, of the fastest graphs in --out')
    parser.add_argument('--models', default='',
                        help='of --compiled and --sustained: mamba_vision_t,... (all six)')
    return parser.parse_args()


def chosen(names):
    """Returns the models of ALL_SIX whose names are in `names`, or all if `names` is empty."""
    names = [name for name in names.split(',') if name]
    return [case for case in ALL_SIX if not names or model_line(case, '')['variant'] in names]


def measure_compiled(emit, cases, arguments, left):
    """Measures each model in a separate process, as long as there is time. If one of them hangs,
    the others are still measured.
    """
    for case in cases:
        name, setting = model_line(case, '')['variant'], arguments.compiled
        seconds = min(COMPILE_SECONDS, left())
        wrong = 'no time was left' if seconds < 1 else child(
            ['--one', name, setting, '--out', str(arguments.out), '--seconds',
             str(arguments.seconds)], seconds)
        if wrong:
            emit(model_line(case, setting, note=wrong))


def measure_sustained(emit, cases, out, scan, left):
    for case in cases:
        setting = best_setting(out.read_text().splitlines() if out.exists() else [], case)
        if left() < SUSTAINED:
            emit({**model_line(case, setting, note='no time was left'),
                  'benchmark': 'peer_sustained'})
            continue
        emit(sustained_line(case, setting, scan, SUSTAINED))


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
    left = lambda: end - time.monotonic()
    if arguments.one:
        emit(compiled_line(chosen(arguments.one[0])[0], arguments.one[1], scan,
                           arguments.seconds))
    elif arguments.compiled:
        measure_compiled(emit, chosen(arguments.models), arguments, left)
    elif arguments.sustained:
        measure_sustained(emit, chosen(arguments.models), arguments.out, scan, left)
    else:
        emit(setting_line(version if function else '', '' if function else version))
        measure(emit, function, scan, arguments.seconds, left)


if __name__ == '__main__':
    main()
