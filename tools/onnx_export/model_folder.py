"""Reads a model: its weights, its labels, and the settings in its config.textproto. The settings
decide what the network computes and how a picture becomes its input."""

import dataclasses
import pathlib

from checkpoint import textproto
from checkpoint.files import read_files
from checkpoint.labels import parse_labels
from checkpoint.state_dict import read_state_dict
from checkpoint.tensor import CheckpointError, check_finite, convert
from checkpoint.variants import CUSTOM, MEAN, NAMES, STD, default_windows, find_row

# The auxiliary tokens of Vim's variants. Vim resizes to 256 pixels and crops to 224.
_VIM = {'vim_t': 'NONE', 'vim_s': 'NONE', 'vim_s_uni': 'NONE', 'vim_s_uni_swap': 'DATA'}
_VIM_CROP = 0.875
_CUSTOM = dict(num_heads=(8, 16), windows=(14, 7), tokens='DATA')


@dataclasses.dataclass(frozen=True)
class Config:
    task: str = 'CLASSIFICATION'
    vim: bool = False
    num_heads: tuple = _CUSTOM['num_heads']   # Of stages 3 and 4, as are the next two.
    windows: tuple = _CUSTOM['windows']
    attention_windows: tuple = (0, 0)         # 0: none.
    full: bool = False                        # The whole map is one window.
    tokens: str = 'DATA'
    swap: bool = True
    discard: str = 'AFTER_FIRST_ATTN'
    scan: str = 'UNI'
    family: str = ''                          # A family of checkpoint.open_weights, or ''.
    activation: str = ''                      # A MambaOut's; '' for others.
    picture: dict = dataclasses.field(default_factory=dict)  # Preprocessing, by the field's name.


@dataclasses.dataclass(frozen=True)
class Model:
    config: Config
    tensors: dict  # float32 arrays by name.
    labels: list


def _numbers(message, name, kind=int):
    return tuple(map(kind, message.get(name, ())))


def _picture(message, task, variant, row, vim):
    """Returns how a picture becomes the input, as {name: value}. Sizes are in pixels."""
    def one(name, default, kind=int):
        return kind(message.get(name, [default])[0])
    largest = '_l3_' in variant
    picture = {'mean': list(_numbers(message, 'mean', float) or MEAN),
               'std': list(_numbers(message, 'std', float) or STD)}
    if task == 'CLASSIFICATION':
        crop = _VIM_CROP if vim else row.crop_pct if row else 1.0
        return {'resize': one('resize', row.resize if row else 'CENTER_CROP', str),
                'size': one('size', row.input_size if row else 224),
                'crop_pct': one('crop_pct', crop, float), **picture}
    short, long = (800, 1333) if task == 'DETECTION' else (640, 2560) if largest else (512, 2048)
    return {'resize': 'KEEP_RATIO', 'short_side': one('short_side', short),
            'long_side': one('long_side', long),
            'pad_multiple': 32 if task == 'DETECTION' else 1, **picture}


def read_config(text):
    """Returns the Config that a config.textproto states. If a field is wrong, raises
    CheckpointError with the field's name.
    """
    fields = textproto.parse(text)
    task = fields.get('task', ['CLASSIFICATION'])[0]
    backbone, picture = (fields.get(name, [{}])[0] for name in ('backbone', 'input'))
    variant = backbone.get('variant', [''])[0]
    vim = variant in _VIM
    if not vim and variant not in NAMES:
        raise CheckpointError(f'config.textproto: backbone.variant: got "{variant}", expected one '
                              f'of {", ".join([*NAMES, *_VIM])}')
    row, values = None, dict(_CUSTOM)
    if task != 'CLASSIFICATION':
        values['windows'] = default_windows('sf_mamba_t', task)
    if vim:
        values['tokens'] = _VIM[variant]
    elif variant != CUSTOM:
        row, tokens = find_row(variant)
        values = dict(num_heads=row.num_heads, windows=default_windows(variant, task),
                      tokens='DATA' if tokens == 'swap' else 'NONE')
    values['num_heads'] = _numbers(backbone, 'num_heads')[2:] or values['num_heads']
    for name in ('windows', 'attention_windows'):
        if name in backbone:
            values[name] = _numbers(backbone, name)
    for name in ('tokens', 'discard', 'scan'):
        if name in backbone:
            values[name] = backbone[name][0]
    return Config(task=task, vim=vim, full=backbone.get('window_mode') == ['FULL'],
                  swap=backbone.get('swap') != ['false'],
                  picture=_picture(picture, task, variant, row, vim), **values)


def read_model(folder):
    """Returns the Model in a model directory. If the directory is wrong, raises CheckpointError
    with the reason.
    """
    files = read_files(pathlib.Path(folder))
    if files.own_config is None:
        raise CheckpointError(f'{folder}: has no config.textproto')
    tensors = read_state_dict(files.value).tensors
    check_finite(tensors)
    labels = parse_labels(files.own_labels, 'labels.txt') if files.own_labels else []
    return Model(read_config(files.own_config),
                 {name: convert(tensor.array(), tensor.dtype, 'F32')
                  for name, tensor in tensors.items()}, labels)


def open_model(found):
    """Returns the Model of an OpenWeights."""
    check_finite(found.tensors)
    config = Config(task=found.network.task, family=found.family,
                    activation=found.fields.get('activation', ''),
                    picture={name: list(value) if isinstance(value, tuple) else value
                             for name, value in found.picture.items()})
    return Model(config, {name: convert(tensor.array(), tensor.dtype, 'F32')
                          for name, tensor in found.tensors.items()}, found.labels or [])
