"""Reads checkpoints of MambaOut, EfficientViM and VMamba v2, and of detectors and segmenters on
VMamba. The names of the tensors may be timm's, Hugging Face's or the authors' own.

    found = read_open_weights('mambaout_femto.in1k')
    found.variant, found.fields, found.network.classes
    found.tensors['stages.0.blocks.0.fc1.weight'].array()
"""

import dataclasses
import re

from checkpoint import hugging_face, textproto, vmamba
from checkpoint.files import Files, read_files
from checkpoint.labels import stored_labels
from checkpoint.network import Network, Shapes, Unclear, read_network, read_vmamba
from checkpoint.open_names import EFFICIENTVIM, MAMBAOUT, VMAMBA, family_of, own_names
from checkpoint.opened import NOUNS
from checkpoint.state_dict import read_state_dict
from checkpoint.tensor import CheckpointError, printable
from checkpoint.variants import MEAN, STD

BACKBONE = 'backbone.'  # The prefix of VMamba's names in detectors and segmenters.


@dataclasses.dataclass(frozen=True)
class Row:
    """One variant in the server's table."""

    fields: dict  # As in OpenWeights.
    size: int     # Pixels per side.
    crop_pct: float


@dataclasses.dataclass(frozen=True)
class OpenWeights:
    family: str       # mambaout, efficientvim or vmamba.
    variant: str  # The server's variant. A VMamba may have another dim and other depths.
    fields: dict      # The arguments of tools/pytorch's network, except the classes.
    network: Network  # Its `backbone` is unused; see `fields`.
    picture: dict     # Fields of config.textproto's "input".
    evidence: str     # A line: what was found, and the evidence for it.
    tensors: dict     # A checkpoint.tensor.Tensor for each name of the network.
    facts: dict       # What the file contains besides tensors.
    files: Files

    @property
    def labels(self):
        """The names of the classes, or None if none are stored. Raises CheckpointError like
        stored_labels()."""
        return stored_labels(self.files, self.facts, self.network.classes)


def _mambaout_row(width, depths, expansion, conv, activation, rw, size=224, crop_pct=1.0):
    widths = tuple(width * times for times in ((1, 2, 3, 4) if width == 16 else (1, 2, 4, 6)))
    return Row(dict(widths=widths, depths=depths, hidden=tuple(int(expansion * w) for w in widths),
                    conv=tuple(int(conv * w) for w in widths), activation=activation, rw=rw),
               size, crop_pct)


def _efficientvim_rows(name, widths, depths, states, size=224):
    return {f'efficientvim_{name}{suffix}': Row(
        dict(widths=widths, depths=depths, states=states, distilled=suffix != ''), size, 0.875)
        for suffix in ('', '_dist')}


_M_STATES = (49, 25, 9)
ROWS = {
    MAMBAOUT: {
        'mambaout_femto': _mambaout_row(48, (3, 3, 9, 3), 8 / 3, 1, 'gelu', False),
        'mambaout_kobe': _mambaout_row(48, (3, 3, 15, 3), 8 / 3, 1, 'gelu', False),
        'mambaout_tiny': _mambaout_row(96, (3, 3, 9, 3), 8 / 3, 1, 'gelu', False),
        'mambaout_small': _mambaout_row(96, (3, 4, 27, 3), 8 / 3, 1, 'gelu', False),
        'mambaout_base': _mambaout_row(128, (3, 4, 27, 3), 8 / 3, 1, 'gelu', False),
        'mambaout_small_rw': _mambaout_row(96, (3, 4, 27, 3), 8 / 3, 1, 'gelu', True),
        'mambaout_base_short_rw': _mambaout_row(128, (3, 3, 25, 3), 3, 1.25, 'gelu', True,
                                                crop_pct=0.95),
        'mambaout_base_tall_rw': _mambaout_row(128, (3, 4, 30, 3), 2.5, 1.25, 'gelu', True,
                                               crop_pct=0.95),
        'mambaout_base_wide_rw': _mambaout_row(128, (3, 4, 27, 3), 3, 1.5, 'silu', True,
                                               crop_pct=0.95),
        'mambaout_base_plus_rw': _mambaout_row(128, (3, 4, 30, 3), 3, 1.5, 'silu', True),
        'test_mambaout': _mambaout_row(16, (1, 1, 3, 1), 3, 1, 'silu', True, 160)},
    EFFICIENTVIM: {
        **_efficientvim_rows('m1', (128, 192, 320), (2, 2, 2), _M_STATES),
        **_efficientvim_rows('m2', (128, 256, 512), (2, 2, 2), _M_STATES),
        **_efficientvim_rows('m3', (224, 320, 512), (2, 2, 2), _M_STATES),
        **_efficientvim_rows('m4', (224, 320, 512), (3, 4, 2), (64, 32, 16), 256)},
    VMAMBA: {name: Row(dict(dim=row.dim, depths=row.depths, ratio=row.ratio), vmamba.INPUT_SIZE,
                       vmamba.CROP_PCT) for name, row in vmamba.ROWS.items()}}
NAMES = [name for rows in ROWS.values() for name in rows]


def _mambaout_fields(shapes):
    def each(part, axis):
        return tuple(shapes.at(f'stages.{k}.blocks.0.{part}', axis) for k in range(4))
    return dict(widths=each('norm.weight', 0),
                depths=tuple(shapes.count(f'stages.{k}.blocks.') for k in range(4)),
                hidden=each('fc2.weight', 1), conv=each('conv.weight', 0),
                rw=shapes.any(r'stages\.0\.blocks\.0\.ls\.gamma$'))


def _efficientvim_fields(shapes):
    def each(part):
        return tuple(shapes.at(f'stages.{i}.blocks.0.{part}', 0) for i in range(3))
    return dict(widths=each('norm.weight'),
                depths=tuple(shapes.count(f'stages.{i}.blocks.') for i in range(3)),
                states=tuple(n // 3 for n in each('mixer.BCdt_proj.conv.weight')),
                distilled=shapes.any('weights_dist$'))


def _vmamba_fields(shapes):
    backbone = read_vmamba(shapes, '')
    return dict(dim=backbone.dim, depths=backbone.depths, ratio=backbone.ratio)


_FIELDS = {MAMBAOUT: _mambaout_fields, EFFICIENTVIM: _efficientvim_fields, VMAMBA: _vmamba_fields}
_LAST = {MAMBAOUT: 'head.fc', EFFICIENTVIM: 'heads.0', VMAMBA: 'classifier.head'}


def fields_of(family, shapes):
    """Returns the arguments for tools/pytorch's network whose tensors have these shapes. The
    arguments do not include the number of classes or MambaOut's activation. `shapes` is
    {name: shape} with the names that own_names() gives, without the prefix BACKBONE.
    """
    try:
        return _FIELDS[family](Shapes(shapes))
    except Unclear as error:
        raise CheckpointError(f'not a whole {family}: {error}') from error


def network_of(family, shapes):
    """Returns the Network whose tensors have these shapes. `shapes` is {name: shape} with the names
    that own_names() gives. The field `backbone` of the Network is None.
    """
    try:
        if any(name.startswith(BACKBONE) for name in shapes):
            return read_network(shapes, lambda *_: None)
        classes = Shapes(shapes).at(f'{_LAST[family]}.weight', 0)
        return Network('CLASSIFICATION', None, classes)
    except Unclear as error:
        raise CheckpointError(f'not a whole {family}: {error}') from error


def _own_facts(facts):
    """Returns the description of the network that tools/pytorch writes into its checkpoints, or {}.
    """
    own = facts.get('facts')
    network = own.get('network') if isinstance(own, dict) else None
    return network if isinstance(network, dict) else {}


def _names(family, files, facts, flag):
    """Returns [(source, name)] for all places that name the variant. For VMamba, only the flag is
    used, because the variant follows from the shapes.
    """
    found = [('--variant', flag)]
    if family != VMAMBA:
        backbone = textproto.parse(files.own_config or '').get('backbone', [{}])[0]
        found += [('config.json architecture', (files.config or {}).get('architecture')),
                  ('config.textproto', backbone.get('variant', [None])[0]),
                  ('tools/pytorch', _own_facts(facts).get('variant'))]
    return [(source, name.split('.')[0]) for source, name in found if isinstance(name, str)]


def _differing(row, fields, free=()):
    """Returns the names of the fields in which a network differs from the row. Ignores the fields
    in `free`.
    """
    return [name for name in fields if name not in free and
            fields[name] != row.fields.get(name, fields[name])]


def variant_of(family, fields):
    """Returns the variant with these fields. For VMamba, a row with the same `ratio` is enough,
    because a config.textproto may replace `dim` and `depths`. Raises CheckpointError if there is no
    such variant.
    """
    free = ('dim', 'depths') if family == VMAMBA else ()
    for name, row in sorted(ROWS[family].items(), key=lambda item: len(_differing(
            item[1], fields))):
        if not _differing(row, fields, free):
            return name
    raise CheckpointError(f'no variant of {family} has ' + ', '.join(
        f'{name} {value}' for name, value in fields.items()))


def _choose_variant(family, fields, names):
    """Returns (the variant, the reason). Raises CheckpointError if the variant is not known or if
    names contradict each other.
    """
    rows = ROWS[family]
    if not names:
        fitting = variant_of(family, fields)
        if family != MAMBAOUT:
            return fitting, 'by the shapes'
        fitting = [name for name, row in rows.items() if not _differing(row, fields)]
        raise CheckpointError('nothing tells the activation: give --variant, '
                              f'{" or ".join(fitting)} by the shapes')
    (source, name), *others = names
    for other, second in others:
        if second != name:
            raise CheckpointError(f'the evidence does not agree: {source} is {printable(name)}, '
                                  f'but {other} is {printable(second)}')
    if name not in rows:
        raise CheckpointError(f'{source}: {printable(name)}, expected one of {", ".join(rows)}')
    # A MambaOut may have more or fewer blocks per stage than its variant.
    for field in _differing(rows[name], fields, ('depths',) if family == MAMBAOUT else ()):
        raise CheckpointError(f'{source}: {name} has {field} {rows[name].fields[field]}, but the '
                              f'weights have {fields[field]}')
    return name, f'by {source}'


_DENSE = {'DETECTION': dict(short_side=800, long_side=1333, pad_multiple=32),
          'SEGMENTATION': dict(short_side=512, long_side=2048, pad_multiple=1)}


def _picture(task, row, files, facts):
    picture = dict(resize='CENTER_CROP', size=row.size, crop_pct=row.crop_pct, mean=MEAN, std=STD)
    if task in _DENSE:
        picture = dict(resize='KEEP_RATIO', **_DENSE[task], mean=MEAN, std=STD)
    own = _own_facts(facts)
    if 'input_size' in own:
        picture.update(size=own['input_size'], crop_pct=1.0, mean=tuple(own['mean']),
                       std=tuple(own['std']))
    if files.config is not None:
        picture.update(hugging_face.read_picture(files.config, files.preprocessor)[0])
    stated = textproto.parse(files.own_config or '').get('input', [{}])[0]
    for name, value in picture.items():
        if name in stated:
            kind = float if isinstance(value, tuple) else type(value)
            values = tuple(map(kind, stated[name]))
            picture[name] = values if isinstance(value, tuple) else values[0]
    return picture


def read_open_weights(path, variant=None, weights=None, prefix=None):
    """Returns the OpenWeights of a file or folder. Returns None if its network is not a MambaOut,
    an EfficientViM or a VMamba.

    `variant` names the network if the checkpoint does not name it. `weights` and `prefix` are
    explained in open_checkpoint(). Raises CheckpointError if something is wrong or unclear.
    """
    files = read_files(path)
    state = read_state_dict(files.value, weights, prefix)
    family = family_of(state.tensors.keys())
    if family is None:
        return None
    tensors = own_names(family, state.tensors)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    network = network_of(family, shapes)
    prefix = '' if network.task == 'CLASSIFICATION' else BACKBONE
    fields = fields_of(family, {name.removeprefix(prefix): s for name, s in shapes.items()})
    if family == VMAMBA and files.config is not None:
        hugging_face.check_vmamba(files.config, fields['dim'], fields['depths'])
    chosen, why = _choose_variant(family, fields, _names(family, files, state.facts, variant))
    row = ROWS[family][chosen]
    if family == MAMBAOUT:
        fields['activation'] = row.fields['activation']
    evidence = f'{chosen}, a {NOUNS[network.task]} of {network.classes} classes: {why}'
    if state.origin:
        evidence += f'; weights: {state.origin}'
    return OpenWeights(family, chosen, fields, network,
                       _picture(network.task, row, files, state.facts), evidence, tensors,
                       state.facts, files)
