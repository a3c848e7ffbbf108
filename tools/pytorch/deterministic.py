"""Parameters and inputs whose values follow from their names. They are for tests, and for
benchmarks without released weights. The C++ tests have the same values
(tests/testing/deterministic.h)."""

import math

import numpy as np
import torch


def unit_noise(key, shape):
    """Pseudo-random values in [-1, 1), float64: SplitMix64 seeded with FNV-1a of `key`."""
    mask = (1 << 64) - 1
    seed = 0xcbf29ce484222325
    for byte in key.encode():
        seed = ((seed ^ byte) * 0x100000001b3) & mask
    with np.errstate(over='ignore'):
        z = np.arange(1, math.prod(shape) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return torch.from_numpy((z >> np.uint64(40)).astype(np.float64) / 2**23 - 1).view(shape)


def deterministic_value(key, shape):
    """Returns the test value of the tensor `key`; the first matching rule counts."""
    if key.endswith('num_batches_tracked'):
        return torch.zeros(shape, dtype=torch.int64)
    u = unit_noise(key, shape)
    if key.endswith('running_var'):
        return (1 + 0.25 * u).float()
    if key.endswith('running_mean'):
        return (0.1 * u).float()
    if key.endswith(('A_log', 'A_logs')):
        return (torch.log(torch.arange(1, shape[1] + 1, dtype=torch.float64)) + 0.1 * u).float()
    if key.endswith(('.D', '.Ds')):
        return (1 + 0.1 * u).float()
    if key.endswith('.mixer.A'):
        return (8.5 + 7.5 * u).float()
    if key.endswith(('dt_proj.bias', 'dt_projs_bias')):
        return (-2 + u).float()
    if key.endswith(('gamma_1', 'gamma_2', '.ls.gamma')):
        return (0.5 + 0.1 * u).float()
    if key.endswith('.alpha') or key in ('weights', 'weights_dist'):
        return u.float()
    if key.endswith(('x_proj_weight', 'dt_projs_weight')):
        return (u * math.sqrt(3 / shape[-1])).float()
    if len(shape) == 1:
        return ((1 if key.endswith('weight') else 0) + 0.1 * u).float()
    return (u * math.sqrt(3 / math.prod(shape[1:]))).float()


def fill_deterministic(model):
    """Overwrites every parameter and buffer with its deterministic value. Returns the model."""
    model.load_state_dict({key: deterministic_value(key, tuple(value.shape))
                           for key, value in model.state_dict().items()})
    return model


def deterministic_input(*shape):
    return unit_noise('input', shape).float()
