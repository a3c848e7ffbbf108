#!/usr/bin/env python3
"""Times the backends of PyTorch's scaled_dot_product_attention on the models' shapes.

  python sdpa.py --out gpu.jsonl

The engine uses the backend that PyTorch chooses. On an H200 this is cuDNN. For 198 tokens of 40
channels, it reaches a quarter of the speed that memory and tensor cores allow. q, k and v lie in
one tensor, like the result of the engine's matrix product.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / 'tools' / 'benchmark_peers'))

import gpu_timing

# Each shape has sequences, heads, tokens and the channels of a head.
SHAPES = {f'{name} stage {stage}': (128, heads, tokens, width)
          for name, width in (('T', 40), ('S', 48), ('B', 64))
          for stage, heads, tokens in ((3, 8, 196), (4, 16, 49))}
SHAPES['T stage 3, with tokens'] = (128, 8, 198, 40)
SHAPES['T stage 4, with tokens'] = (128, 16, 51, 40)
BACKENDS = ('chosen', 'FLASH_ATTENTION', 'EFFICIENT_ATTENTION', 'CUDNN_ATTENTION', 'MATH')


def heads_of(shape, dtype, device):
    """Returns q, k and v [S,H,L,d]. They are views of one tensor [S,L,3,H,d]."""
    import torch
    S, H, L, d = shape
    return torch.randn(S, L, 3, H, d, dtype=dtype, device=device).permute(2, 0, 3, 1, 4)


def attention(q, k, v, backend):
    import torch.nn.attention
    import torch.nn.functional as F
    if backend == 'chosen':
        return F.scaled_dot_product_attention(q, k, v)
    with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, backend)):
        return F.scaled_dot_product_attention(q, k, v)


def lines(time_of, dtype, device):
    """Yields a line for each shape and backend. `time_of` returns the same values as
    warm_and_cold().
    """
    import torch
    for name, shape in SHAPES.items():
        q, k, v = heads_of(shape, dtype, device)
        for backend in BACKENDS:
            line = {'benchmark': 'sdpa', 'case': name, 'shape': list(shape), 'backend': backend}
            try:
                with torch.inference_mode():
                    yield {**line, 'note': '', **time_of(lambda: attention(q, k, v, backend))}
            except RuntimeError as error:  # The backend does not support this shape.
                yield {**line, 'us': None, 'note': (str(error).splitlines() or ['?'])[0][:200]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    import torch
    if not torch.cuda.is_available():
        print('skipped: no GPU')
        return
    for line in lines(gpu_timing.warm_and_cold, torch.bfloat16, 'cuda'):
        print(json.dumps(line), flush=True)
        with open(arguments.out, 'a', encoding='utf-8') as file:
            file.write(json.dumps(line) + '\n')


if __name__ == '__main__':
    main()
