"""The server's table of variants, as far as shapes can tell its rows apart."""

import dataclasses

from checkpoint.network import Backbone
from checkpoint.tensor import CheckpointError

FAMILIES = {'swap': 'sf_mamba_', 'none': 'mamba_vision_'}  # By --tokens.
CUSTOM = 'custom'


@dataclasses.dataclass(frozen=True)
class Row:
    name: str         # Behind the family's prefix.
    backbone: Backbone
    input_size: int   # Pixels a side; no shape depends on it.


def _row(name, dim, in_dim, depths, layer_scale, input_size=224):
    return Row(name, Backbone(dim, in_dim, depths, layer_scale), input_size)


ROWS = [
    _row('t', 80, 32, (1, 3, 8, 4), False),
    _row('t2', 80, 32, (1, 3, 11, 4), False),
    _row('s', 96, 64, (3, 3, 7, 5), False),
    _row('b', 128, 64, (3, 3, 10, 5), True),
    _row('b_21k', 128, 64, (3, 3, 10, 5), True),
    _row('l', 196, 64, (3, 3, 10, 5), True),
    _row('l_21k', 196, 64, (3, 3, 10, 5), True),
    _row('l2', 196, 64, (3, 3, 12, 5), True),
    _row('l2_512_21k', 196, 64, (3, 3, 12, 5), True, 512),
    _row('l3_256_21k', 256, 64, (3, 3, 20, 10), True, 256),
    _row('l3_512_21k', 256, 64, (3, 3, 20, 10), True, 512),
]
NAMES = [prefix + row.name for prefix in FAMILIES.values() for row in ROWS] + [CUSTOM]


def find_row(variant):
    """The row called `variant`, with its family's --tokens; NAMES has it."""
    for tokens, prefix in FAMILIES.items():
        for row in ROWS:
            if variant == prefix + row.name:
                return row, tokens
    raise KeyError(variant)


def matching_variants(backbone, tokens):
    """The names of the rows with this backbone's shapes."""
    plain = dataclasses.replace(backbone, attention=True, learnable=False)
    return [FAMILIES[tokens] + row.name for row in ROWS if row.backbone == plain]


def choose_variant(network, tokens):
    """(the variant's name, the names of all rows with these shapes; none: custom).

    Where rows with the same shapes want different pictures there is no telling, which
    is an error. Detectors and segmenters take the same pictures in all of them.
    """
    names = matching_variants(network.backbone, tokens)
    if not names:
        return CUSTOM, []
    sizes = {find_row(name)[0].input_size for name in names}
    if len(sizes) > 1 and network.task == 'CLASSIFICATION':
        choices = ', '.join(f'{name} ({find_row(name)[0].input_size} pixels)' for name in names)
        raise CheckpointError(f'the shapes fit several variants: {choices}; name yours by --variant')
    return names[0], names
