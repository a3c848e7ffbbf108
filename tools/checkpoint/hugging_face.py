"""Reads config.json and preprocessor_config.json in the same way as the server.

The server's rules are in server/repository/hugging_face_*.h. The cases in
tests/testdata/hugging_face test both readers.
"""

import dataclasses
import json

from checkpoint.tensor import CheckpointError

CONFIG, PREPROCESSOR = 'config.json', 'preprocessor_config.json'
_MAX_PIXELS = 16384
_MAX_COLOUR = 1e6
_SAME = 1e-6  # Values that differ by less are equal.
_LEAST_SQUASHED = 384  # ConvNeXt crops smaller inputs.
_BICUBIC = 3  # Pillow's number of the bicubic filter.
_NAMES = ('model_type', 'architectures', 'architecture', 'arch', 'model', 'model_name', 'auto_map')
_SIZES = ('input_size', 'image_size', 'img_size', 'input_resolution', 'resolution')
_FACTS = ('size', 'crop_pct', 'resize', 'mean', 'std', 'filter')


@dataclasses.dataclass(frozen=True)
class Member:
    label: str     # The name in errors, such as "config.json: pretrained_cfg.mean".
    value: object  # None if it is missing.

    def shown(self):
        return 'none' if self.value is None else json.dumps(
            self.value, separators=(',', ':'), sort_keys=True)[:100]

    def refuse(self, expected):
        return CheckpointError(f'{self.label}: got {self.shown()}, expected {expected}')


@dataclasses.dataclass(frozen=True)
class Level:
    """A JSON object in a file: the root or one of its members."""

    label: str
    fields: dict

    def at(self, name):
        return Member(self.label + name, self.fields.get(name))


def levels_of(config):
    """Returns the Levels of a config.json. If several Levels have a field, the first one is used.
    """
    return [Level(f'{CONFIG}: ', config)] + [
        Level(f'{CONFIG}: {name}.', config[name]) for name in ('model_args', 'pretrained_cfg')
        if isinstance(config.get(name), dict)]


def _first(levels, name):
    members = [level.at(name) for level in levels]
    return next((member for member in members if member.value is not None), members[0])


def _is_number(value):
    return type(value) in (int, float)


def _is_integer(value, most):
    return type(value) is int and 1 <= value <= most


def _side(size):
    """Returns the side of a square, which may be written in several ways. Returns 0 if `size` is
    not a square.
    """
    if isinstance(size, list) and len(size) == 3 and size[0] == 3:
        size = size[1:]
    if isinstance(size, list) and len(size) == 2 and size[0] == size[1]:
        size = size[0]
    elif isinstance(size, dict) and size.keys() == {'height', 'width'} and (
            size['height'] == size['width']):
        size = size['height']
    elif isinstance(size, dict) and size.keys() == {'shortest_edge'}:
        size = size['shortest_edge']
    return size if _is_integer(size, _MAX_PIXELS) else 0


def _read_size(level, stated):
    member = _first([level], next((name for name in _SIZES if level.at(name).value is not None),
                                  _SIZES[0]))
    if member.value is None:
        return
    side = _side(member.value)
    if not side:
        raise member.refuse(f'[3, side, side] of a square input of 1 to {_MAX_PIXELS} pixels')
    stated['size'] = (side,), member


def _read_colours(level, name, least, fact, stated):
    member = level.at(name)
    if member.value is None:
        return
    if not (isinstance(member.value, list) and len(member.value) == 3 and all(
            _is_number(v) and least < v < _MAX_COLOUR for v in member.value)):
        raise member.refuse('3 numbers' + ' above 0' * (least == 0))
    stated[fact] = tuple(member.value), member


def _read_crop_pct(level, stated):
    member = level.at('crop_pct')
    if member.value is None:
        return
    if not _is_number(member.value) or not 0.01 <= member.value <= 1:
        raise member.refuse('a number of 0.01 to 1')
    stated['crop_pct'] = (float(member.value),), member


def _read_level(level):
    stated = {}
    _read_size(level, stated)
    _read_crop_pct(level, stated)
    _read_colours(level, 'mean', -_MAX_COLOUR, 'mean', stated)
    _read_colours(level, 'std', 0, 'std', stated)
    mode = level.at('crop_mode')
    if mode.value is not None:
        modes = {'center': 'CENTER_CROP', 'squash': 'STRETCH'}
        if mode.value not in tuple(modes):
            raise mode.refuse('"center" or "squash"')
        stated['resize'] = (modes[mode.value],), mode
    kernel = level.at('interpolation')
    if kernel.value is not None:
        stated['filter'] = (_BICUBIC if kernel.value == 'bicubic' else -1,), kernel
    return stated


def _read_normalization(level, stated):
    """Reads mean and standard deviation. The server applies them to colours that were divided by
    255.
    """
    normalize = level.at('do_normalize')
    if normalize.value is False:
        stated['mean'], stated['std'] = ((0, 0, 0), normalize), ((1, 1, 1), normalize)
    else:
        _read_colours(level, 'image_mean', -_MAX_COLOUR, 'mean', stated)
        _read_colours(level, 'image_std', 0, 'std', stated)
    factor = level.at('rescale_factor')
    if factor.value is not None and not (_is_number(factor.value) and 0 < factor.value <= 1):
        raise factor.refuse('a number above 0, at most 1')
    scale = 1 if factor.value is None else 255 * factor.value
    if level.at('do_rescale').value is False:
        scale = 255
    if abs(scale - 1) >= _SAME:
        for fact in ('mean', 'std'):
            if fact in stated:
                values, member = stated[fact]
                stated[fact] = tuple(value / scale for value in values), member


def _read_geometry(level, stated, warnings):
    """Reads the size to which pictures are resized, and the size of the crop."""
    size, crop, crop_pct = level.at('size'), level.at('crop_size'), level.at('crop_pct')
    do_crop = level.at('do_center_crop')
    if level.at('do_resize').value is False:
        warnings.append(f'{level.at("do_resize").label} is false, but the server resizes')
        return
    if size.value is None:
        return
    side = _side(size.value)
    if not side:
        raise size.refuse(f'a square of 1 to {_MAX_PIXELS} pixels')
    is_object = isinstance(size.value, dict)
    is_edge = is_object and 'shortest_edge' in size.value
    crops = crop.value is not None and (
        is_edge if do_crop.value is None else do_crop.value is True)
    squashed = not is_edge if is_object else not crops
    if crops:
        cut, of_crop = _side(crop.value), crop if do_crop.value is None else do_crop
        if not 0 < cut <= side:
            raise crop.refuse(f'a square of 1 to {side} pixels')
        resize = 'STRETCH' if squashed else 'CENTER_CROP'
        stated.update(size=((cut,), crop), crop_pct=((cut / side,), of_crop),
                      resize=((resize,), of_crop))
        return
    _read_crop_pct(level, stated)
    is_cut = is_edge and crop_pct.value is not None and side < _LEAST_SQUASHED
    if is_edge and crop_pct.value is None:
        warnings.append(f'{size.label} is {size.shown()} without a crop, but the server cuts the '
                        'square centre out')
    of_crop = crop_pct if is_cut else size if do_crop.value is None else do_crop
    resize = 'STRETCH' if squashed or (crop_pct.value is not None and not is_cut) else 'CENTER_CROP'
    stated.update(size=((side,), size), resize=((resize,), of_crop),
                  crop_pct=((float(crop_pct.value) if is_cut else 1.0,), of_crop))


def _read_preprocessor(fields, warnings):
    level, stated = Level(f'{PREPROCESSOR}: ', fields), {}
    _read_normalization(level, stated)
    _read_geometry(level, stated, warnings)
    kernel = level.at('resample')
    if kernel.value is not None:
        if type(kernel.value) is not int or not 0 <= kernel.value <= 5:
            raise kernel.refuse('a filter of 0 to 5')
        stated['filter'] = (kernel.value,), kernel
    return stated


def _is_same(a, b):
    return all(x == y if isinstance(x, str) else abs(x - y) < _SAME for x, y in zip(a, b))


def read_picture(config, preprocessor):
    """Returns (fields of config.textproto's "input" by name, warnings). If several places state a
    fact, the first one is used. If a later one differs, adds a warning.
    """
    warnings = []
    statements = [_read_level(level) for level in levels_of(config)]
    if preprocessor is not None:
        statements.append(_read_preprocessor(preprocessor, warnings))
    taken = {}
    for fact in _FACTS:
        stated = [statement[fact] for statement in statements if fact in statement]
        if stated:
            taken[fact] = values, member = stated[0]
            warnings += [f'{other.label} is {other.shown()}, but {member.label} is '
                         f'{member.shown()}, which is taken'
                         for different, other in stated[1:] if not _is_same(values, different)]
    kernel, = taken['filter'][0] if 'filter' in taken else (_BICUBIC,)
    if kernel == -1:
        raise taken['filter'][1].refuse('"bicubic"')
    if kernel != _BICUBIC:
        member = taken['filter'][1]
        warnings.append(f'{member.label} is {member.shown()}, but the server resizes by bicubic '
                        f'({_BICUBIC})')
    return {fact: values if fact in ('mean', 'std') else values[0]
            for fact, (values, _) in taken.items() if fact != 'filter'}, warnings


def read_names(config, read_name):
    """Returns a pair. The first value is a list of (key, text, tokens). It has an entry for each
    name in the JSON object that tells the family. The second value is the first row that a name
    tells, or None. read_name(text) returns (tokens, row) of a name, or None.
    """
    type_ = config.get('model_type')
    # The wrapper for timm's models in Transformers has its own model_type, which does not show the
    # network.
    is_typed = isinstance(type_, str) and type_ != 'timm_wrapper'
    evidence, named = [], None
    for name in _NAMES:
        value = config.get(name)
        values = value.values() if isinstance(value, dict) else value if isinstance(
            value, list) else [value]
        for text in values:
            known = read_name(text) if isinstance(text, str) else None
            if known:
                named = named or known[1]
                if not is_typed or value == type_:
                    evidence.append((name, text, known[0]))
    return evidence, named


def read_numbers(config):
    """Returns the windows and the heads of all stages. Each is None if the file does not have it.
    """
    members = [_first(levels_of(config), name) for name in ('window_size', 'num_heads')]
    for member in members:
        if member.value is not None and not (
                isinstance(member.value, list) and len(member.value) == 4 and all(
                    _is_integer(v, _MAX_PIXELS) for v in member.value)):
            raise member.refuse('4 numbers')
    return [member.value for member in members]


def check_shapes(config, backbone):
    """Raises an error if the file contradicts the shapes of the weights."""
    for name, expected in (('dim', backbone.dim), ('in_dim', backbone.in_dim),
                           ('depths', list(backbone.depths))):
        for level in levels_of(config):
            got = level.at(name)
            if got.value not in (None, expected):
                raise got.refuse(f'{json.dumps(expected, separators=(",", ":"))}, as the weights '
                                 'have it')


def check_vmamba(config, dim, depths):
    """Raises an error if the file contradicts the weights of a VMamba."""
    level, shapes = levels_of(config)[0], ', as the weights have it'
    for name, expected, reason in (
            ('model_type', ['vmamba'], ', as the weights are VMamba\'s'),
            ('depths', [list(depths)], shapes),
            ('dims', [[dim << stage for stage in range(4)], dim], shapes),
            ('embed_dim', [dim], shapes), ('patch_size', [4], '')):
        got = level.at(name)
        if got.value not in (None, *expected):
            raise got.refuse(json.dumps(expected[0], separators=(',', ':')) + reason)


def choose_row(rows, config, size, named, prefix):
    """Chooses one of the rows. They have the same shapes, but differ in their windows and in fields
    that depend on the windows. The windows decide. If the file has no windows, a name decides. If
    it has no name either, the size of the input decides.
    """
    windows = _first(levels_of(config), 'window_size')

    def choice(row):
        return f'{prefix}{row.name} ({row.windows[0]}, {row.windows[1]})'

    def same():
        return len({row.windows for row in rows}) == 1

    def has_windows(row):
        return row.windows == tuple(windows.value[2:])

    def keep(fits):
        return [row for row in rows if fits(row)] or rows

    refusal = windows.refuse(f'windows of {" or ".join(map(choice, rows))}')
    if not same() and windows.value is not None:
        other = next((row for row in rows if row.name == named and not has_windows(row)), None)
        if other is not None:
            raise windows.refuse(f'windows of {choice(other)}, as {CONFIG} names it')
        rows = keep(has_windows)
        if not same():
            raise refusal
    rows = keep(lambda row: row.name == named)
    if not same():
        rows = keep(lambda row: row.input_size == size)
    if not same():
        raise refusal
    return rows[0]


def read_labels(config, classes):
    """Returns the names of all classes, from id2label or timm's label_names. Returns None if the
    file has neither.
    """
    levels = levels_of(config)
    names = next((member for member in (_first(levels, name) for name in (
        'id2label', 'label_names', 'labels')) if member.value is not None), None)
    if names is None:
        return None
    # timm writes a list of labels, or an object that maps class numbers to labels. id2label is
    # always such an object.
    kind = list if isinstance(names.value, list) and not names.label.endswith('id2label') else dict
    if not isinstance(names.value, kind) or len(names.value) != classes:
        if isinstance(names.value, (dict, list)):
            names = Member(names.label, f'{len(names.value)} labels')
        raise names.refuse(f'one for each of the {classes} rows of head.weight; a labels.txt beside '
                           'it replaces them')
    labels = []
    for number in range(classes):
        label = Member(f'{names.label}.{number}', names.value.get(str(number)) if kind is dict
                       else names.value[number])
        text = label.value.strip(' \t\n\v\f\r') if isinstance(label.value, str) else ''
        if not text or any(ord(c) < 32 or ord(c) == 127 for c in text):
            raise label.refuse('a label')
        labels.append(text)
    return labels
