"""Makes deterministic parameters. The C++ tests make the same values for a key and a shape."""

import math

import numpy as np


def _noise(key, count):
    """Returns `count` numbers in [-1, 1) from splitmix64, whose seed is the key's FNV-1a hash."""
    seed = 0xcbf29ce484222325
    for byte in key.encode():
        seed = ((seed ^ byte) * 0x100000001b3) % 2**64
    with np.errstate(over='ignore'):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
            0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) / (1 << 23) - 1


def parameter(key, shape):
    """Returns the float32 parameter with this key and shape."""
    u = _noise(key, math.prod(shape)).reshape(shape)
    if key.endswith('running_var'):
        values = 1 + 0.25 * u
    elif key.endswith(('A_log', 'A_b_log', 'A_logs')):
        values = np.log(np.arange(1, shape[-1] + 1)) + 0.1 * u
    elif key.endswith(('dt_proj.bias', 'dt_proj_b.bias', 'dt_projs_bias')):
        values = -2 + u
    elif key.endswith(('gamma_1', 'gamma_2')):
        values = 0.5 + 0.1 * u
    elif key.endswith(('x_proj_weight', 'dt_projs_weight')):
        values = u * math.sqrt(3 / shape[-1])
    elif key.endswith(('.D', '.D_b', '.Ds')) or len(shape) == 1 and key.endswith('weight'):
        values = 1 + 0.1 * u
    elif len(shape) == 1:
        values = 0.1 * u
    else:
        values = u * math.sqrt(3 / math.prod(shape[1:]))
    return values.astype(np.float32)


def parameters(shapes):
    return {key: parameter(key, shape) for key, shape in shapes.items()}
