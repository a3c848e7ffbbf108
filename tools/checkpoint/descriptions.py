"""Reads what a checkpoint says about itself. This is evidence for facts that do not follow from the
shapes of its tensors.
"""

import ast
import dataclasses
import re

from checkpoint import hugging_face, textproto
from checkpoint.tensor import CheckpointError, printable
from checkpoint.variants import CUSTOM, NAMES, ROWS, find_row

_FAMILY = re.compile(r'(?P<swap>sf[-_ ]?mamba)|(?P<none>mamba[-_ ]?vision)', re.IGNORECASE)
_SIZES = {'tiny': 't', 'tiny2': 't2', 'small': 's', 'base': 'b', 'large': 'l', 'large2': 'l2',
          'large3': 'l3', **{size: size for size in ('t', 't2', 's', 'b', 'l', 'l2', 'l3')}}
_NAME_KEYS = ('model_type', 'architectures', 'architecture', 'arch', 'model', 'model_name')
_CROP_MODES = {'center': 'CENTER_CROP', 'squash': 'STRETCH'}
_MAX_COLOUR = 1e6
_SIZE_KEYS = ('input_size', 'img_size', 'image_size', 'input_resolution')
_TOKENS = {'NONE': 'none', 'DATA': 'swap', 'LEARNABLE': 'swap'}


@dataclasses.dataclass(frozen=True)
class Description:
    """The statements of one source in a checkpoint. A field is None if the source says nothing
    about it.
    """

    source: str  # The source, such as config.json.
    says: str  # The text that was read, for messages.
    tokens: str = None  # A value of the flag --tokens.
    row: str = None           # A variant's name without its family's prefix.
    windows: tuple = None  # Those of stages 3 and 4.
    num_heads: tuple = None  # Those of stages 3 and 4.
    shapes: tuple = None      # (dim, depths)
    picture: dict = None      # Fields of config.textproto's "input", by name.
    swap: bool = None         # False: the auxiliary tokens are not swapped.
    note: str = None          # A warning that the server does something else.

    def __str__(self):
        return f'{self.source} {self.says}'


def read_name(text):
    """Returns (tokens, row or None) for the name of a model or a file. Returns None if the name is
    not known. Examples of names are mamba_vision_L3_512_21k, MambaVision-T-1K, mambavision_tiny_1k
    and MM_mamba_vision.
    """
    found = list(_FAMILY.finditer(text))
    if len({match.lastgroup for match in found}) != 1:
        return None
    parts = re.split(r'[^a-z0-9]+', text[found[-1].end():].lower())
    size = next((_SIZES[part] for part in parts if part in _SIZES), None)
    pixels = next((f'_{part}' for part in parts if part in ('256', '512')), '')
    of_21k = '_21k' if '21k' in parts else ''
    names = [row.name for row in ROWS]
    row = next((name for name in (f'{size}{pixels}_21k' if pixels else '', f'{size}{of_21k}', size)
                if name in names), None)
    return found[0].lastgroup, row


def _named(source, key, value):
    """Returns a list with the Description that follows from a name. The list is empty if the name
    is not known.
    """
    texts = [value] if isinstance(value, str) else value if isinstance(value, (list, tuple)) else []
    for text in texts:
        known = read_name(text) if isinstance(text, str) else None
        if known:
            return [Description(source, f'{key} {printable(text)}'.lstrip(), *known)]
    return []


def _last_two(value):
    """Returns the last two numbers, for stages 3 and 4, of a list of two or four numbers. Returns
    None for anything else.
    """
    if isinstance(value, (list, tuple)) and len(value) in (2, 4) and all(
            type(v) is int and 0 < v <= 16384 for v in value):
        return tuple(value[-2:])
    return None


def _numbers(source, fields):
    """Returns a list with the Description that follows from a backbone's arguments. The list is
    empty if nothing follows.
    """
    windows = next(filter(None, (_last_two(fields.get(key))
                                 for key in ('window_size', 'windows'))), None)
    num_heads = _last_two(fields.get('num_heads'))
    depths, dim = fields.get('depths'), fields.get('dim')
    shapes = (dim, tuple(depths)) if isinstance(depths, (list, tuple)) and dim else None
    says = [f'{key} {list(value)}' for key, value in (
        ('windows', windows), ('num_heads', num_heads)) if value]
    if shapes:
        says.insert(0, f'dim {dim}, depths {list(depths)}')
    if not says:
        return []
    return [Description(source, ', '.join(says), windows=windows, num_heads=num_heads,
                        shapes=shapes)]


def _colours(source, fields, key, least):
    values = fields.get(key)
    if values is None:
        return None
    if not isinstance(values, (list, tuple)) or len(values) != 3 or not all(
            isinstance(v, (int, float)) and least < v < _MAX_COLOUR for v in values):
        raise CheckpointError(f'{source}: {key}: expected three numbers')
    return tuple(values)


def _picture(source, fields):
    """Returns the Description of the pictures that a model expects. `fields` have config.json's
    names.
    """
    size = next((fields[key] for key in _SIZE_KEYS if fields.get(key) is not None), None)
    if isinstance(size, (list, tuple)):
        if len(size) not in (2, 3) or size[-1] != size[-2]:
            raise CheckpointError(f'{source}: the input size: expected a square')
        size = size[-1]
    if size is not None and (type(size) is not int or not 0 < size <= 16384):
        raise CheckpointError(f'{source}: the input size: expected 1 to 16384')
    crop, mode = fields.get('crop_pct'), fields.get('crop_mode')
    if crop is not None and (not isinstance(crop, (int, float)) or not 0.01 <= crop <= 1):
        raise CheckpointError(f'{source}: crop_pct: expected 0.01 to 1')
    if mode is not None and mode not in tuple(_CROP_MODES):
        raise CheckpointError(f'{source}: crop_mode {printable(str(mode))}: expected '
                              f'{" or ".join(_CROP_MODES)}')
    found = {'size': size, 'crop_pct': crop and float(crop), 'resize': _CROP_MODES.get(mode),
             'mean': _colours(source, fields, 'mean', -_MAX_COLOUR),
             'std': _colours(source, fields, 'std', 0)}
    picture = {key: value for key, value in found.items() if value is not None}
    kernel = fields.get('interpolation')
    note = f'{source} interpolation {printable(str(kernel))}; the server resizes by bicubic' \
        if kernel not in (None, 'bicubic') else None
    if not picture and note is None:
        return []
    return [Description(source, ', '.join(picture), picture=picture, note=note)]


def _of_config(config, preprocessor):
    """Returns the Descriptions from the files of a folder in Hugging Face's layout."""
    source = hugging_face.CONFIG
    evidence, row = hugging_face.read_names(config, read_name)
    found = [Description(source, f'{key} {printable(text)}', tokens, row)
             for key, text, tokens in evidence]
    windows, num_heads = hugging_face.read_numbers(config)
    found.append(Description(
        source, f'windows {windows}, num_heads {num_heads}', row=row,
        windows=windows and tuple(windows[-2:]), num_heads=num_heads and tuple(num_heads[-2:])))
    picture, warnings = hugging_face.read_picture(config, preprocessor)
    found += [Description(source, 'warning', note=warning) for warning in warnings]
    return found + [Description(source, ', '.join(picture), picture=picture)] * bool(picture)


def _arguments(node):
    """Returns the arguments of a call dict(...) or the items of {...}. Includes only literals."""
    if isinstance(node, ast.Call):
        items = [(keyword.arg, keyword.value) for keyword in node.keywords]
    elif isinstance(node, ast.Dict):
        items = [(key.value, value) for key, value in zip(node.keys, node.values)
                 if isinstance(key, ast.Constant)]
    else:
        items = []
    fields = {}
    for key, value in items:
        try:
            fields[key] = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue  # Not a literal.
    return fields


def _backbone_in(text):
    """Returns the backbone's arguments in a configuration of mmengine. Parses the configuration,
    but does not execute it.
    """
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return {}
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg == 'backbone':
            return _arguments(node.value)
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant) and key.value == 'backbone':
                    return _arguments(value)
    return {}


def _of_meta(meta):
    for key in ('cfg', 'config'):  # The names in mmengine and in mmcv.
        if isinstance(meta.get(key), str):
            fields, source = _backbone_in(meta[key]), f'meta.{key}'
            return _named(source, 'backbone', fields.get('type')) + _numbers(source, fields)
    return []


def _first(fields, name, default=None):
    return fields.get(name, [default])[0]


def _numbers_of(texts):
    return [int(text) for text in texts if isinstance(text, str) and text.isdigit()]


def _of_own_input(fields):
    if not isinstance(fields, dict):
        return []
    modes = {resize: mode for mode, resize in _CROP_MODES.items()}
    try:
        crop, mean, std = ([float(text) for text in fields.get(name, [])] or None
                           for name in ('crop_pct', 'mean', 'std'))
    except (TypeError, ValueError) as error:
        raise CheckpointError('config.textproto: input: expected numbers') from error
    return _picture('config.textproto', {
        'image_size': next(iter(_numbers_of(fields.get('size', []))), None),
        'crop_pct': crop and crop[0], 'crop_mode': modes.get(str(_first(fields, 'resize'))),
        'mean': mean, 'std': std})


def _of_own_config(text):
    config = textproto.parse(text)
    backbone = _first(config, 'backbone', {})
    if not isinstance(backbone, dict):
        raise CheckpointError('config.textproto: backbone: expected a message')
    variant, tokens = _first(backbone, 'variant'), _TOKENS.get(str(_first(backbone, 'tokens')))
    if variant not in NAMES:
        raise CheckpointError(f'config.textproto: variant {printable(str(variant))}: expected one '
                              f'of {", ".join(NAMES)}')
    row = None
    if variant != CUSTOM:
        row, of_family = find_row(variant)
        row, tokens = row.name, tokens or of_family
    return [Description('config.textproto', f'variant {variant}'
                        f'{f" with --tokens {tokens}" if tokens else ""}', tokens, row,
                        _last_two(_numbers_of(backbone.get('windows', []))),
                        _last_two(_numbers_of(backbone.get('num_heads', []))),
                        swap=False if _first(backbone, 'swap') in ('false', 'False', 'f', '0')
                        else None)] + _of_own_input(_first(config, 'input'))


def _of_facts(facts):
    if not isinstance(facts.get('labels'), (list, tuple)) and 'depth' not in facts:
        return []
    network = facts['network'] if isinstance(facts.get('network'), dict) else facts
    tokens = _TOKENS.get(str(network.get('tokens', 'data')).upper())
    swap = network.get('swap') if isinstance(network.get('swap'), bool) else None
    return [Description('facts', 'written by tools/pytorch', tokens, swap=swap),
            *_named('facts', 'variant', network.get('variant')), *_numbers('facts', network),
            *_picture('facts', network)]


def describe(files, facts):
    """Returns all Descriptions, the most trusted first. `files` is a Files. `facts` are the facts
    of a StateDict.
    """
    def inner(key):
        return facts[key] if isinstance(facts.get(key), dict) else {}
    found = _of_own_config(files.own_config) if files.own_config else []
    if files.config is not None:
        found += _of_config(files.config, files.preprocessor)
    found += _of_meta(inner('meta')) + _named('arch', '', facts.get('arch'))
    for holder in ('args', 'hyper_parameters'):
        for key in _NAME_KEYS:
            found += _named(f'{holder}.{key}', '', inner(holder).get(key))
    found += _of_facts(inner('facts'))
    by_name = read_name(files.name)
    if by_name and by_name[1]:
        found.append(Description('the name', printable(files.name), row=by_name[1]))
    return found


def family(tokens):
    """Returns the name of a family, for messages."""
    return {'swap': 'SF-Mamba', 'none': 'MambaVision'}[tokens] + f' (--tokens {tokens})'
