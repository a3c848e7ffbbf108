"""The server's table of variants."""

import dataclasses

from checkpoint.network import Backbone

FAMILIES = {'swap': 'sf_mamba_', 'none': 'mamba_vision_'}  # Prefixes by --tokens.
CUSTOM = 'custom'
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclasses.dataclass(frozen=True)
class Row:
    name: str           # Without the family's prefix.
    backbone: Backbone  # What the shapes of the tensors tell.
    num_heads: tuple    # Of stages 3 and 4, as are `windows`.
    windows: tuple
    input_size: int     # Pixels per side.
    crop_pct: float
    resize: str         # CENTER_CROP or STRETCH.


def _row(name, dim, in_dim, depths, layer_scale, num_heads=(8, 16), windows=(14, 7),
         input_size=224, crop_pct=1.0, resize='CENTER_CROP'):
    return Row(name, Backbone(dim, in_dim, depths, layer_scale), num_heads, windows, input_size,
               crop_pct, resize)


_BASE = (128, 64, (3, 3, 10, 5), True)
_LARGE = (196, 64, (3, 3, 10, 5), True, (16, 32))
_LARGE2 = (196, 64, (3, 3, 12, 5), True, (16, 32))
_LARGE3 = (256, 64, (3, 3, 20, 10), True, (16, 32))
_OF_512 = ((32, 16), 512, 0.93, 'STRETCH')
ROWS = [
    _row('t', 80, 32, (1, 3, 8, 4), False),
    _row('t2', 80, 32, (1, 3, 11, 4), False, crop_pct=0.98),
    _row('s', 96, 64, (3, 3, 7, 5), False, crop_pct=0.93),
    _row('b', *_BASE),
    _row('b_21k', *_BASE),
    _row('l', *_LARGE),
    _row('l_21k', *_LARGE),
    _row('l2', *_LARGE2),
    _row('l2_512_21k', *_LARGE2, *_OF_512),
    _row('l3_256_21k', *_LARGE3, (16, 8), 256),
    _row('l3_512_21k', *_LARGE3, *_OF_512),
]
NAMES = [prefix + row.name for prefix in FAMILIES.values() for row in ROWS] + [CUSTOM]


def find_row(variant):
    """Returns (the row of `variant`, the --tokens of its family). `variant` must be in NAMES."""
    for tokens, prefix in FAMILIES.items():
        for row in ROWS:
            if variant == prefix + row.name:
                return row, tokens
    raise KeyError(variant)


def matching_rows(backbone):
    """Returns the rows whose backbone has the shapes of this backbone."""
    plain = dataclasses.replace(backbone, attention=True, learnable=False)
    return [row for row in ROWS if row.backbone == plain]


def default_windows(variant, task):
    """Returns the windows that the server uses in stages 3 and 4 of a variant of the table."""
    row, tokens = find_row(variant)
    if task == 'DETECTION':
        return (84, 42) if tokens == 'swap' else (112, 56)
    if task == 'SEGMENTATION':
        return (160, 56) if variant == 'mamba_vision_s' else (64, 32)
    return row.windows
