"""Reads the models that the training of detectors and segmenters starts from. They are folders and
files of any layout that the converter takes.

    start = open_start('../../models/everyday_detector/1', 'DETECTION')
    model = detector.Detector(start.backbone, dataclasses.replace(start.detector, classes=4))
    load(model, start, ['circle', 'cross', 'square', 'triangle'])
"""

import dataclasses
import math

import numpy as np
import torch

import classifier_files
import detector
from checkpoint import open_names, open_weights, report, textproto
from checkpoint.network import expected_tensors
from checkpoint.opened import open_checkpoint
from checkpoint.tensor import CheckpointError, check_finite, convert
from checkpoint.variants import CUSTOM, MEAN, STD, default_windows, find_row
from configs import CLASSIFIER, DETECTOR, LONG, PHOTOGRAPHS, SEGMENTER_CHANNELS, SHORT
from export import FIELDS

# The layers that have rows for each class, or rows that all classes share.
CLASS_LAYERS = ('fc_cls', 'fc_reg', 'conv_logits', 'conv_seg')


@dataclasses.dataclass(frozen=True)
class Start:
    """A model to start from."""

    backbone: dict     # The arguments of pyramid.make_backbone().
    detector: object   # A detector.Config, or None for a segmenter.
    channels: int      # The channels of a segmenter.
    sides: tuple       # (short, long), the limits of a resized picture's sides.
    mean: tuple        # Of the pictures, RGB in 0..1.
    std: tuple
    labels: list       # The classes that its heads know; empty if its heads are new.
    variant: str
    evidence: str      # A line: what was found, and the evidence for it.
    arrays: dict       # float32 arrays by the model's names.


def _config(opened):
    return textproto.parse(opened.files.own_config or '')


def _numbers(message, name, kind=float):
    try:
        return tuple(kind(text) for text in message.get(name, []))
    except ValueError as error:
        raise CheckpointError(f'config.textproto: {name}: expected numbers') from error


def _heads_of(opened):
    """Returns the detector.Config of an Opened or OpenWeights that is a detector."""
    found, message = opened.network.detector, _config(opened).get('detector', [{}])[0]
    fields = dict(box_stds=tuple(_numbers(s, 'values') for s in message.get('box_stds', []))
                  or detector.Config.box_stds)
    kinds = {field.name: field.type for field in dataclasses.fields(detector.Config)}
    for name, own in FIELDS.items():
        many = kinds[own] is tuple
        values = _numbers(message, name, float if many else kinds[own])
        if values:
            fields[own] = values if many else values[0]
    shapes = {name: getattr(found, name) for name in (
        'channels', 'fc_width', 'box_stages', 'box_convs', 'box_fcs', 'mask_convs')}
    return detector.Config(opened.network.classes, **{**fields, **shapes})


def _sides_of(opened):
    message = _config(opened).get('input', [{}])[0]
    if opened.network.task == 'DETECTION':
        sides = (800, 1333)
    else:
        sides = (640, 2560) if '_l3_' in opened.variant else (512, 2048)
    return tuple((_numbers(message, name, int) or (side,))[0]
                 for name, side in zip(('short_side', 'long_side'), sides))


def _colours(opened):
    """Returns (mean, std) of the pictures."""
    message = _config(opened).get('input', [{}])[0]
    return tuple(opened.choice.picture.get(name) or _numbers(message, name) or usual
                 for name, usual in (('mean', MEAN), ('std', STD)))


def whole_windows(long):
    """Returns the sides of the windows of stages 3 and 4, in tokens. One window holds the whole map
    of a picture whose long side is `long` pixels.
    """
    return math.ceil(long / 16), math.ceil(long / 32)


def _backbone(opened, windows):
    backbone, heads = opened.network.backbone, opened.choice.num_heads
    if heads is None and opened.variant != CUSTOM:
        heads = find_row(opened.variant)[0].num_heads
    for fields in (CLASSIFIER, PHOTOGRAPHS):
        if (fields['lite_trunk'], fields['dim']) == (backbone.trunk, backbone.dim):
            heads = heads or fields['num_heads']
    if heads is None:
        raise CheckpointError('nothing tells the attention heads of stages 3 and 4: convert it by '
                              'tools/convert_checkpoint.py --num_heads first')
    return dict(dim=backbone.dim, in_dim=backbone.in_dim, depths=tuple(backbone.depths),
                num_heads=tuple(heads), windows=windows, layer_scale=backbone.layer_scale,
                tokens='learnable' if backbone.learnable else
                {'swap': 'data'}.get(opened.tokens, 'none'),
                swap=opened.choice.swap is not False, lite_trunk=backbone.trunk)


def _arrays(opened):
    """Returns all weights, as float32 arrays by name."""
    found = report.match(opened.state, expected_tensors(opened.network))
    if not found.loads:
        raise CheckpointError(f'not a {opened.variant}: {"; ".join(report.problems(found.rows))}')
    check_finite(found.tensors)
    return {name: np.array(convert(tensor.array(), tensor.dtype, 'F32'))
            for name, tensor in found.tensors.items()}


def _open_vmamba(found, task, sides):
    """Like open_start(), but for an OpenWeights."""
    if found.family != open_names.VMAMBA:
        raise CheckpointError(f'a {found.variant}: detectors and segmenters are not made of it')
    network, picture = found.network, found.picture
    same = network.task == task
    check_finite(found.tensors)
    arrays = {name: np.array(convert(tensor.array(), tensor.dtype, 'F32'))
              for name, tensor in found.tensors.items()}
    if network.task == 'CLASSIFICATION':
        arrays = {f'{open_weights.BACKBONE}{name}': array for name, array in arrays.items()
                  if not name.startswith('classifier.')}
    heads = None
    if task == 'DETECTION':
        heads = _heads_of(found) if same else detector.Config(**DETECTOR)
    own = (picture['short_side'], picture['long_side']) if same else (SHORT, LONG)
    return Start(dict(family=found.family, **found.fields), heads,
                 network.segmenter_channels if same else SEGMENTER_CHANNELS,
                 tuple(sides or own), picture['mean'], picture['std'],
                 _labels(found) if same else [], found.variant, found.evidence,
                 arrays if same else _of_backbone(arrays))


def _labels(opened):
    return opened.labels or [f'class_{k}' for k in range(opened.network.classes)]


def _of_backbone(arrays):
    return {name: array for name, array in arrays.items()
            if name.startswith(open_weights.BACKBONE)}


def open_start(path, task, sides=None):
    """Returns the Start of a model to train for `task`, DETECTION or SEGMENTATION. If the model is
    for another task, only its backbone is used, and the heads are new, as in the default models.
    `sides`, (short, long), replace the model's.
    """
    found = open_weights.read_open_weights(path)
    if found:
        return _open_vmamba(found, task, sides)
    opened = open_checkpoint(path)
    network, arrays = opened.network, _arrays(opened)
    classifier_files.check_backbone(opened)
    same = network.task == task
    if same and network.backbone.trunk and not opened.files.own_config:
        raise CheckpointError('nothing tells its anchors and sizes of pictures: start from the '
                              'folder that was exported')
    windows = opened.choice.windows
    if same and not windows:
        windows = default_windows(opened.variant, task) if opened.variant != CUSTOM else None
    if not same or sides or not windows:
        sides = sides or (_sides_of(opened) if same else (SHORT, LONG))
        windows = whole_windows(sides[1])
    mean, std = _colours(opened)
    if network.task == 'CLASSIFICATION':
        arrays = {f'backbone.{name}': array for name, array in arrays.items()
                  if not name.startswith(('norm.', 'neck.', 'head.'))}
    if not same:
        arrays = _of_backbone(arrays)
    heads = None
    if task == 'DETECTION':
        heads = _heads_of(opened) if same else detector.Config(**DETECTOR)
    return Start(_backbone(opened, tuple(windows)), heads,
                 network.segmenter_channels if same else SEGMENTER_CHANNELS,
                 sides or _sides_of(opened), mean, std,
                 _labels(opened) if same else [],
                 opened.variant, opened.evidence, arrays)


def _class_rows(array, wanted, known, each):
    """Returns the rows of a layer for the classes `wanted`. A class that is known keeps its rows,
    and any other class gets the mean of the rows of all known classes. `array` has `each` rows for
    every class of `known`, or only `each` rows that all classes share. Rows after these are kept,
    for example the background's row.
    """
    classes = array[:len(known) * each].reshape(len(known), each, *array.shape[1:]) \
        if len(array) >= len(known) * each else array.reshape(1, each, *array.shape[1:])
    mean = classes.mean(axis=0)
    rows = [classes[known.index(label)] if label in known and len(classes) > 1 else mean
            for label in wanted]
    rest = array[len(classes) * each:]
    return np.concatenate([np.concatenate(rows), rest])


def load(model, start, labels):
    """Sets the model, whose classes have these labels, to the start's weights. Layers that the
    start lacks stay new. Returns the labels that the start's heads do not know."""
    tensors, own = {}, model.state_dict()
    for name, array in start.arrays.items():
        layer = name.split('.')[-2]
        if layer in CLASS_LAYERS:
            array = _class_rows(array, labels, start.labels, 4 if layer == 'fc_reg' else 1)
        if name in own:
            tensors[name] = torch.from_numpy(array)
    missing, _ = model.load_state_dict(tensors, strict=False)
    missing = [name for name in missing if not name.endswith('num_batches_tracked') and (
        start.labels or name.startswith('backbone.') and 'outnorm' not in name)]
    if missing:
        raise CheckpointError(f'missing {", ".join(missing[:3])}')
    return [label for label in labels if label not in start.labels]
