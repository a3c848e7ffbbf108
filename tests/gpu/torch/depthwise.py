#!/usr/bin/env python3
"""Times PyTorch's depthwise convolutions, which cuDNN computes, on three layers of the default
classifier.

  python depthwise.py --out gpu.jsonl

`suite --benchmark --parts=pass` times the engine's own kernel on the same shapes. PyTorch's
convolutions also add a bias, but apply no activation.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / 'tools' / 'benchmark_peers'))

import gpu_timing

# Each shape is (images, side of the input map, channels, kernel, stride), as in pass_benchmark.cc.
SHAPES = [(128, 112, 96, 3, 2), (128, 28, 240, 5, 1), (128, 14, 672, 5, 1)]


def convolve(shape, dtype, device):
    """Returns a function that convolves random maps of the shape. The maps are channels-last in
    memory.
    """
    import torch
    import torch.nn.functional as F
    N, side, C, kernel, stride = shape
    last = {'memory_format': torch.channels_last}
    x = torch.randn(N, C, side, side, dtype=dtype, device=device).contiguous(**last)
    weight = torch.randn(C, 1, kernel, kernel, dtype=dtype, device=device).contiguous(**last)
    bias = torch.randn(C, dtype=dtype, device=device)
    return lambda: F.conv2d(x, weight, bias, stride=stride, padding=kernel // 2, groups=C)


def line_of(shape, times, copy_bytes_per_s):
    """Returns a line with the same fields as the line that `suite` writes for the engine's kernel.
    If copy_bytes_per_s is 0, the speed of a copy is unknown and the shares of it are 0.
    """
    N, side, C, kernel, stride = shape
    outputs = N * side * side // stride**2
    moved = 2 * C * (N * side * side + outputs)
    share = lambda us: moved / us * 1e6 / copy_bytes_per_s if copy_bytes_per_s else 0
    return {'benchmark': 'pass', 'kernel': f"PyTorch's depthwise {kernel}x{kernel}, stride {stride}",
            'tokens': outputs, 'channels': C, 'mib': round(moved / 2**20, 1),
            'share_of_copy': share(times['us']), 'share_of_copy_cold': share(times['us_cold']),
            **times}


def copy_speed(path):
    """Returns the speed of a copy in bytes per second. It is read from the last line in the file
    `path` that `suite --setting` has written. Returns 0 if there is no such line.
    """
    speed = 0
    for text in path.read_text(encoding='utf-8').splitlines() if path.exists() else ():
        line = json.loads(text)
        if line['benchmark'] == 'setting':
            speed = line['copy_bytes_per_s']
    return speed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    import torch
    if not torch.cuda.is_available():
        print('skipped: no GPU')
        return
    torch.backends.cudnn.benchmark = True
    speed = copy_speed(arguments.out)
    for shape in SHAPES:
        with torch.inference_mode():
            times = gpu_timing.warm_and_cold(convolve(shape, torch.bfloat16, 'cuda'))
        line = line_of(shape, times, speed)
        print(json.dumps(line), flush=True)
        with open(arguments.out, 'a', encoding='utf-8') as file:
            file.write(json.dumps(line) + '\n')


if __name__ == '__main__':
    main()
