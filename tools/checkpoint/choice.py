"""Decides which network a checkpoint contains. If the shapes of its tensors do not tell this, other
evidence decides. If there is no evidence, raises an error.
"""

import dataclasses

from checkpoint import hugging_face, vmamba
from checkpoint.descriptions import Description, family
from checkpoint.tensor import CheckpointError
from checkpoint.variants import (CUSTOM, FAMILIES, MEAN, STD, default_windows, find_row,
                                 matching_rows)

BOTH = 'give --tokens swap for SF-Mamba or --tokens none for MambaVision'


@dataclasses.dataclass(frozen=True)
class Choice:
    """The decisions about a network. A field is None if the server's default is right."""

    variant: str
    tokens: str  # A value of --tokens: swap or none. None for VMamba.
    windows: tuple      # In stages 3 and 4.
    num_heads: tuple    # In stages 3 and 4.
    picture: dict       # Fields of config.textproto's "input", by name.
    swap: bool          # False: the auxiliary tokens are not swapped.
    why: str            # The evidence that decided, in a line.
    notes: list  # Contradictions that do not matter.
    against: list       # Evidence for another family, which the flags overrule.


def _of_shapes(network):
    """Returns the Descriptions that follow from the tensors alone."""
    if network.backbone.learnable:
        return [Description('the tensors', 'aux_head, which SF-Mamba alone has', 'swap')]
    if network.backbone.trunk:
        return [Description('the tensors', 'EfficientNet-Lite0\'s layers, which tools/pytorch\'s '
                            'models alone have', 'swap')]
    return []


def _other_family(descriptions, tokens):
    return [str(d) for d in descriptions if d.tokens not in (None, tokens)]


def _choose_tokens(network, descriptions, flag):
    """Returns (the value of --tokens, the reason). The value is 'swap' for SF-Mamba and 'none' for
    MambaVision. `flag` is the value that the user gave, or None.
    """
    said = [d for d in descriptions if d.tokens]
    if flag is not None:
        if flag == 'none' and network.backbone.learnable:
            raise CheckpointError('the tensors aux_head are SF-Mamba\'s, --tokens none is '
                                  'MambaVision: leave it out')
        against = _other_family(said, flag)
        return flag, 'as the flags say' + (f', against {" and ".join(against)}' if against else '')
    kinds = {d.tokens for d in said}
    if not kinds:
        raise CheckpointError('nothing in the file tells SF-Mamba from MambaVision, whose tensors '
                              f'are the same: {BOTH}')
    if len(kinds) > 1:
        sides = ', but '.join(f'{" and ".join(str(d) for d in said if d.tokens == tokens)} is '
                              f'{family(tokens)}' for tokens in ('swap', 'none'))
        raise CheckpointError(f'the evidence does not agree: {sides}: {BOTH}')
    return kinds.pop(), f'by {" and ".join(map(str, said))}'


def _narrowed(rows, descriptions):
    """Returns the rows that the descriptions allow. Raises an error if the descriptions do not
    agree.
    """
    reasons = []
    for d in descriptions:
        size = (d.picture or {}).get('size')
        fitting = [row for row in rows if
                   d.row == row.name or d.windows == row.windows or size == row.input_size]
        if not fitting:
            continue  # This description says nothing about these rows.
        for other, names in reasons:
            if not {(row.windows, row.input_size) for row in fitting} & names:
                raise CheckpointError(f'the evidence does not agree: {d} is {fitting[0].name}, '
                                      f'but {other} is not: name yours by --variant')
        reasons.append((d, {(row.windows, row.input_size) for row in fitting}))
    for d, names in reasons:
        rows = [row for row in rows if (row.windows, row.input_size) in names]
    named = [d.row for d in descriptions]
    return sorted(rows, key=lambda row: row.name not in named)


def _row_by_config(rows, config, descriptions, tokens):
    """Returns the row that the server would choose for a config.json."""
    own = [d for d in descriptions if d.source == hugging_face.CONFIG]
    named, _ = _first(own, 'row')
    picture, _ = _first(own, 'picture')
    chosen = hugging_face.choose_row(rows, config, (picture or {}).get('size'), named,
                                     FAMILIES[tokens])
    # All `rows` have the same shapes. Rows that also have the same windows are the same network,
    # for example b and b_21k. If other evidence names such a row, it is used instead of `chosen`.
    names = [d.row for d in descriptions]
    return next((row for row in rows if row.name in names and row.windows == chosen.windows),
                chosen)


def _choose_row(network, descriptions, tokens, config):
    """Returns the network's row of the table, or None if the network is custom."""
    rows = matching_rows(network.backbone)
    if rows and config is not None and network.task == 'CLASSIFICATION':
        return _row_by_config(rows, config, descriptions, tokens)
    if len({row.input_size for row in rows}) > 1 and network.task == 'CLASSIFICATION':
        rows = _narrowed(rows, descriptions)
        if len({row.input_size for row in rows}) > 1:
            choices = ', '.join(f'{FAMILIES[tokens]}{row.name} ({row.input_size} pixels)'
                                for row in rows)
            raise CheckpointError(f'the shapes fit several variants: {choices}; name yours by '
                                  '--variant')
    named = [d.row for d in descriptions]
    return next((row for row in rows if row.name in named), rows[0] if rows else None)


def _first(descriptions, field):
    """Returns (the first value of `field`, the Description that contains it), or (None, None)."""
    return next(((getattr(d, field), d) for d in descriptions if getattr(d, field)), (None, None))


def _differing(network, row, descriptions):
    """Returns notes on descriptions that contradict the tensors."""
    backbone, fitting = network.backbone, matching_rows(network.backbone)
    names = [fit.name for fit in fitting]
    shapes = (backbone.dim, tuple(backbone.depths))
    others = [str(d) for d in descriptions
              if d.row and d.row not in names or d.shapes not in (None, shapes)]
    if row is not None and row not in fitting:
        others.append(f'the flags: variant {row.name}')
    return [f'{other}; but the tensors have dim {backbone.dim}, depths {list(backbone.depths)}, '
            f'as {" and ".join(names) or "no variant of the table"}' for other in others]


def _without_defaults(picture, **own):
    """Returns the fields of `picture` that differ from the server's defaults. `own` contains the
    variant's defaults, for example its size. Without a `mean` or `std` in `own`, the default is
    ImageNet's.
    """
    own = {'mean': MEAN, 'std': STD, **own}
    return {key: value for key, value in picture.items() if own.get(key) != value}


def _choose_vmamba(network, descriptions, flags, config):
    if any(flag is not None for flag in flags):
        raise CheckpointError('a VMamba, of which the shapes tell all: leave out --variant and '
                              '--tokens')
    if config is not None:
        hugging_face.check_vmamba(config, network.backbone.dim, network.backbone.depths)
    picture, _ = _first(descriptions, 'picture')
    if network.task != 'CLASSIFICATION':
        picture = None
    picture = _without_defaults(picture or {}, size=vmamba.INPUT_SIZE, crop_pct=vmamba.CROP_PCT,
                                resize='CENTER_CROP')
    return Choice(vmamba.variant_of(network.backbone), None, None, None, picture, None,
                  'by the tensors', [d.note for d in descriptions if d.note], [])


def choose(network, descriptions, variant=None, tokens=None, config=None):
    """Returns the Choice for a Network. `descriptions` is the evidence, including the evidence of
    config.json. `config` is the content of config.json, or None. `variant` and `tokens` are the
    values of the flags --variant and --tokens. Each is None if the user did not give the flag.
    """
    if isinstance(network.backbone, vmamba.Backbone):
        return _choose_vmamba(network, descriptions, (variant, tokens), config)
    if config is not None and network.task == 'CLASSIFICATION':
        hugging_face.check_shapes(config, network.backbone)
    descriptions = _of_shapes(network) + descriptions
    if variant not in (None, CUSTOM):
        tokens = find_row(variant)[1]
    tokens, why = _choose_tokens(network, descriptions, tokens)
    if variant is None:
        row = _choose_row(network, descriptions, tokens, config)
        variant = FAMILIES[tokens] + row.name if row else CUSTOM
    else:
        row = None if variant == CUSTOM else find_row(variant)[0]
    windows, by = _first(descriptions, 'windows')
    num_heads, _ = _first(descriptions, 'num_heads')
    default = default_windows(variant, network.task) if row else None
    if windows or default:
        why += f'; windows {"{},{}".format(*(windows or default))} ' + (
            f'by {by.source}' if windows else 'by default')
    picture, _ = _first(descriptions, 'picture')
    if network.task != 'CLASSIFICATION':
        picture = None
    own = dict(size=row.input_size, crop_pct=row.crop_pct, resize=row.resize) if row else {}
    swap = next((d.swap for d in descriptions if d.swap is not None), None)
    return Choice(variant, tokens, None if windows == default else windows,
                  None if row and num_heads == row.num_heads else num_heads,
                  _without_defaults(picture or {}, **own), swap, why,
                  _differing(network, row, descriptions) +
                  [d.note for d in descriptions if d.note],
                  _other_family(descriptions, tokens))
