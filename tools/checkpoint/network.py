"""Derives a model's structure from the shapes of its tensors, and lists the tensors that it must
have.
"""

import dataclasses
import re

from checkpoint import trunk, vmamba
from checkpoint.tensor import printable

STATES = 8  # Hidden states per channel of a scan.
POOLED_SCALES = 4  # Scales of UperNet's pyramid pooling.
ANCHORS = 3  # Anchors per position.
BOX_ROI_SIZE = 7
MAX_DEPTH = 256  # The largest number of blocks in a stage.
# Names of tensors that VMamba v2 does not have. Other models by the same authors have them, namely
# VMamba v1 and ablations.
_NOT_VMAMBA_V2 = re.compile(r'.*\.downsample\.reduction\.|.*\.op\.conv2d\.bias|'
                            r'.*\.op\.out_norm\.[01]\.|(backbone\.)?patch_embed\.(proj|norm)\.')


class Unclear(Exception):
    """Raised if the structure does not follow from the tensors. The message says what is missing.
    """


@dataclasses.dataclass(frozen=True)
class Backbone:
    dim: int                 # Channels of stage 1; each stage doubles them.
    in_dim: int              # Channels of the stem's first convolution.
    depths: tuple            # Blocks of each of the four stages.
    layer_scale: bool
    attention: bool = True   # False: all blocks are Mamba blocks.
    learnable: bool = False  # Whether the auxiliary tokens are parameters.
    trunk: int = 0  # The stride of EfficientNet-Lite0's last map, or 0 if it has no such layers.

    def width(self, stage):
        """Returns the number of channels of a stage's map."""
        if stage < trunk.STAGES.get(self.trunk, 0):
            return trunk.WIDTHS[stage]
        return self.dim << stage


@dataclasses.dataclass(frozen=True)
class Detector:
    box_stages: int  # More than 1 for a cascade.
    box_convs: int
    box_fcs: int
    mask_convs: int  # 0 if there are no masks.
    channels: int
    fc_width: int
    agnostic_boxes: bool = False
    agnostic_masks: bool = False


@dataclasses.dataclass(frozen=True)
class Network:
    task: str                # CLASSIFICATION, DETECTION or SEGMENTATION.
    backbone: Backbone       # Or a vmamba.Backbone, for VMamba.
    classes: int             # Without the background.
    detector: Detector = None
    segmenter_channels: int = 0
    neck: tuple = ()  # A classifier's (channels, features), or empty.


class Shapes:
    """The shapes of tensors by name. Looking up a missing name raises Unclear."""

    def __init__(self, shapes):
        self.names = shapes.keys()
        self._shapes = shapes

    def at(self, name, axis):
        shape = self._shapes.get(name, ())
        if len(shape) <= axis:
            raise Unclear(f'{name}: missing or of too few dimensions')
        return shape[axis]

    def count(self, prefix):
        """Returns how many parts are numbered after `prefix`. This is the largest number plus one.
        """
        numbers = [match[1] for match in map(re.compile(
            re.escape(prefix) + r'([0-9]{1,3})\.').match, self.names) if match]
        return max(map(int, numbers), default=-1) + 1

    def any(self, pattern):
        return any(re.match(pattern, name) for name in self.names)


def _read_trunk(shapes, prefix):
    """Reads the backbone of a model with a trunk. A trunk is EfficientNet-Lite0's layers in place
    of the first stages.
    """
    blocks = shapes.count(f'{prefix}trunk.blocks.')
    strides = [stride for stride, depth in trunk.DEPTHS.items() if depth == blocks]
    if not strides:
        expected = ' or '.join(map(str, trunk.DEPTHS.values()))
        raise Unclear(f'trunk has {blocks} blocks, expected {expected}')
    first = trunk.STAGES[strides[0]]
    depths = tuple(shapes.count(f'{prefix}levels.{i}.blocks.') for i in range(4))
    _check_depths(depths, prefix, first)
    if any(depths[:first]):
        raise Unclear(f'levels of {list(depths)} blocks, expected none in the first {first}, '
                      'which the trunk replaces')
    stages = re.escape(prefix) + r'levels\.[23]\.'
    norm = f'{prefix}outnorm3.weight' if prefix else 'norm.weight'
    return Backbone(dim=shapes.at(norm, 0) >> 3, in_dim=0, depths=depths,
                    layer_scale=shapes.any(stages + r'blocks\.\d+\.gamma_1$'),
                    attention=shapes.any(stages + r'blocks\.\d+\.mixer\.qkv\.'),
                    learnable=shapes.any(stages + 'aux_head$'), trunk=strides[0])


def _check_depths(depths, prefix, first=0, stages='levels'):
    for stage, depth in list(enumerate(depths))[first:]:
        if not 1 <= depth <= MAX_DEPTH:
            raise Unclear(f'{prefix}{stages}.{stage} has {depth} blocks, expected 1 to '
                          f'{MAX_DEPTH}')


def read_vmamba(shapes, prefix):
    """Reads the backbone of a VMamba. Raises Unclear if it is not of the second version."""
    other = next(filter(_NOT_VMAMBA_V2.match, shapes.names), None)
    if other is not None:
        raise Unclear(f'{printable(other)}: VMamba v2 has none; an older model or an ablation of '
                      'it is not supported')
    first = prefix + 'patch_embed.0.weight'
    if shapes.at(first, 2) != 3:
        raise Unclear(f'{first} is {shapes.at(first, 2)} pixels a side, expected 3')
    mixer = prefix + 'layers.0.blocks.0.op.'
    states = shapes.at(mixer + 'A_logs', 1)
    if states != 1:
        raise Unclear(f'{mixer}A_logs has {states} states, expected 1')
    dim = shapes.at(prefix + 'patch_embed.5.weight', 0)
    inner, rows = shapes.at(mixer + 'conv2d.weight', 0), shapes.at(mixer + 'in_proj.weight', 0)
    if rows != inner:
        gate = ', which is one with a gate' if rows == 2 * inner else ''
        raise Unclear(f'{mixer}in_proj.weight has {rows} rows, expected {inner}{gate}')
    if inner not in (dim, 2 * dim):
        raise Unclear(f'{mixer}conv2d.weight has {inner} channels, expected {dim} or {2 * dim}')
    depths = tuple(shapes.count(f'{prefix}layers.{i}.blocks.') for i in range(4))
    _check_depths(depths, prefix, stages='layers')
    return vmamba.Backbone(dim, inner // dim, depths)


def _read_backbone(shapes, prefix):
    if vmamba.is_vmamba(shapes.names):
        return read_vmamba(shapes, prefix)
    if shapes.any(re.escape(prefix) + 'trunk\\.'):
        return _read_trunk(shapes, prefix)
    stem = prefix + 'patch_embed.conv_down.'
    stages = re.escape(prefix) + r'levels\.[23]\.'
    depths = tuple(shapes.count(f'{prefix}levels.{i}.blocks.') for i in range(4))
    _check_depths(depths, prefix)
    return Backbone(
        dim=shapes.at(stem + '3.weight', 0), in_dim=shapes.at(stem + '0.weight', 0),
        depths=depths,
        layer_scale=shapes.any(stages + r'blocks\.\d+\.gamma_1$'),
        attention=shapes.any(stages + r'blocks\.\d+\.mixer\.qkv\.'),
        learnable=shapes.any(stages + 'aux_head$'))


def _read_detector(shapes):
    stages = shapes.count('roi_head.bbox_head.')
    box = 'roi_head.bbox_head.' + ('0.' if stages else '')
    mask = 'roi_head.mask_head.' + ('0.' if stages else '')
    mask_convs = shapes.count(mask + 'convs.')
    classes = shapes.at(box + 'fc_cls.weight', 0) - 1
    return classes, Detector(
        box_stages=max(stages, 1), box_convs=shapes.count(box + 'shared_convs.'),
        box_fcs=shapes.count(box + 'shared_fcs.'), mask_convs=mask_convs,
        channels=shapes.at('rpn_head.rpn_conv.weight', 0),
        fc_width=shapes.at(box + 'fc_cls.weight', 1),
        agnostic_boxes=classes > 1 and shapes.at(box + 'fc_reg.weight', 0) == 4,
        agnostic_masks=(mask_convs > 0 and classes > 1 and
                        shapes.at(mask + 'conv_logits.weight', 0) == 1))


def read_network(shapes, read_backbone=_read_backbone):
    """Returns the Network whose tensors have the shapes {name: shape}. Raises Unclear if the
    structure does not follow from them. read_backbone(Shapes, prefix) reads the backbone.
    """
    shapes = Shapes(shapes)
    if shapes.any('(roi_head|rpn_head|neck\\.(lateral|fpn)_convs)\\.'):
        classes, detector = _read_detector(shapes)
        return Network('DETECTION', read_backbone(shapes, 'backbone.'), classes, detector)
    if shapes.any('decode_head\\.'):
        return Network('SEGMENTATION', read_backbone(shapes, 'backbone.'),
                       shapes.at('decode_head.conv_seg.weight', 0), None,
                       shapes.at('decode_head.conv_seg.weight', 1))
    head = 'classifier.head' if vmamba.is_vmamba(shapes.names) else 'head'
    classes = shapes.at(f'{head}.weight', 0)
    backbone, neck = read_backbone(shapes, ''), ()
    if backbone.trunk and shapes.any('neck\\.'):
        neck = (shapes.at('neck.project.weight', 0), shapes.at('neck.expand.conv.weight', 0))
    return Network('CLASSIFICATION', backbone, classes, neck=neck)


# Each of the following functions returns the tensors of one part of a model, as {name: shape}.

def _linear(name, out, width, bias=True):
    return {f'{name}.weight': (out, width), **({f'{name}.bias': (out,)} if bias else {})}


def _conv(name, out, width, side, bias=True):
    return {f'{name}.weight': (out, width, side, side), **({f'{name}.bias': (out,)} if bias else {})}


def _layer_norm(name, width):
    return {f'{name}.weight': (width,), f'{name}.bias': (width,)}


def _batch_norm(name, width):
    return {**_layer_norm(name, width), f'{name}.running_mean': (width,),
            f'{name}.running_var': (width,)}


def _conv_norm(name, out, width, side):
    return {**_conv(f'{name}.conv', out, width, side, bias=False), **_batch_norm(f'{name}.bn', out)}


def _conv_block(name, width):
    return {**_conv(f'{name}.conv1', width, width, 3), **_batch_norm(f'{name}.norm1', width),
            **_conv(f'{name}.conv2', width, width, 3), **_batch_norm(f'{name}.norm2', width)}


def _mamba_mixer(name, width):
    half, rank = width // 2, (width + 15) // 16
    return {f'{name}.A_log': (half, STATES), f'{name}.D': (half,),
            **_linear(f'{name}.in_proj', width, width, bias=False),
            **_linear(f'{name}.x_proj', rank + 2 * STATES, half, bias=False),
            **_linear(f'{name}.dt_proj', half, rank),
            **_linear(f'{name}.out_proj', width, width, bias=False),
            f'{name}.conv1d_x.weight': (half, 1, 3), f'{name}.conv1d_z.weight': (half, 1, 3)}


def _attention(name, width):
    return {**_linear(f'{name}.qkv', 3 * width, width), **_linear(f'{name}.proj', width, width)}


def _token_block(name, width, mixer, layer_scale):
    gammas = {f'{name}.gamma_{i}': (width,) for i in (1, 2)} if layer_scale else {}
    return {**_layer_norm(f'{name}.norm1', width), **_layer_norm(f'{name}.norm2', width),
            **mixer(f'{name}.mixer', width), **gammas,
            **_linear(f'{name}.mlp.fc1', 4 * width, width),
            **_linear(f'{name}.mlp.fc2', width, 4 * width)}


def _stem(prefix, backbone):
    if backbone.trunk:
        return trunk.tensors(backbone.trunk, prefix)
    stem = f'{prefix}patch_embed.conv_down.'
    return {**_conv(f'{stem}0', backbone.in_dim, 3, 3, bias=False),
            **_batch_norm(f'{stem}1', backbone.in_dim),
            **_conv(f'{stem}3', backbone.dim, backbone.in_dim, 3, bias=False),
            **_batch_norm(f'{stem}4', backbone.dim)}


def _backbone(prefix, backbone):
    if isinstance(backbone, vmamba.Backbone):
        return vmamba.backbone_tensors(prefix, backbone)
    tensors = _stem(prefix, backbone)
    first = trunk.STAGES.get(backbone.trunk, 0)
    for stage, depth in list(enumerate(backbone.depths))[first:]:
        level, width = f'{prefix}levels.{stage}', backbone.width(stage)
        mamba = (depth + 1) // 2 if backbone.attention else depth
        for block in range(depth):
            name = f'{level}.blocks.{block}'
            if stage < 2:
                tensors.update(_conv_block(name, width))
            else:
                mixer = _mamba_mixer if block < mamba else _attention
                tensors.update(_token_block(name, width, mixer, backbone.layer_scale))
        if stage >= 2 and backbone.learnable:
            tensors.update({f'{level}.aux_head': (1, 1, width), f'{level}.aux_tail': (1, 1, width)})
        if stage < 3:
            tensors.update(_conv(f'{level}.downsample.reduction.0', 2 * width, width, 3, bias=False))
    return tensors


def _pyramid(backbone):
    tensors = _backbone('backbone.', backbone)
    for stage in range(4):
        tensors.update(_layer_norm(f'backbone.outnorm{stage}', backbone.width(stage)))
    return tensors


def _classifier(network):
    if isinstance(network.backbone, vmamba.Backbone):
        return vmamba.classifier_tensors(network.backbone, network.classes)
    width = network.backbone.width(3)
    tensors = {**_backbone('', network.backbone), **_batch_norm('norm', width)}
    if network.neck:
        channels, features = network.neck
        tensors.update(_conv('neck.project', channels, width, 1))
        tensors.update(_conv_norm('neck.expand', features, channels, 1))
        width = features
    return {**tensors, **_linear('head', network.classes, width)}


def _box_head(prefix, network):
    detector, tensors = network.detector, {}
    for i in range(detector.box_convs):
        tensors.update(
            _conv_norm(f'{prefix}shared_convs.{i}', detector.channels, detector.channels, 3))
    for i in range(detector.box_fcs):
        width = detector.channels * BOX_ROI_SIZE**2 if i == 0 else detector.fc_width
        tensors.update(_linear(f'{prefix}shared_fcs.{i}', detector.fc_width, width))
    boxes = 1 if detector.agnostic_boxes else network.classes
    return {**tensors, **_linear(f'{prefix}fc_cls', network.classes + 1, detector.fc_width),
            **_linear(f'{prefix}fc_reg', 4 * boxes, detector.fc_width)}


def _mask_head(prefix, network):
    width, tensors = network.detector.channels, {}
    for i in range(network.detector.mask_convs):
        tensors.update(_conv(f'{prefix}convs.{i}.conv', width, width, 3))
    masks = 1 if network.detector.agnostic_masks else network.classes
    return {**tensors, **_conv(f'{prefix}upsample', width, width, 2),
            **_conv(f'{prefix}conv_logits', masks, width, 1)}


def _detector(network):
    detector = network.detector
    width = detector.channels
    tensors = {**_pyramid(network.backbone), **_conv('rpn_head.rpn_conv', width, width, 3),
               **_conv('rpn_head.rpn_cls', ANCHORS, width, 1),
               **_conv('rpn_head.rpn_reg', 4 * ANCHORS, width, 1)}
    for stage in range(4):
        tensors.update(_conv(f'neck.lateral_convs.{stage}.conv', width,
                             network.backbone.width(stage), 1))
        tensors.update(_conv(f'neck.fpn_convs.{stage}.conv', width, width, 3))
    for stage in range(detector.box_stages):
        number = f'{stage}.' if detector.box_stages > 1 else ''
        tensors.update(_box_head(f'roi_head.bbox_head.{number}', network))
        if detector.mask_convs > 0:
            tensors.update(_mask_head(f'roi_head.mask_head.{number}', network))
    return tensors


def _segmenter(network):
    width, last = network.segmenter_channels, network.backbone.width(3)
    tensors = _pyramid(network.backbone)
    for i in range(POOLED_SCALES):
        tensors.update(_conv_norm(f'decode_head.psp_modules.{i}.1', width, last, 1))
    for i in range(3):
        tensors.update(_conv_norm(f'decode_head.lateral_convs.{i}', width,
                                  network.backbone.width(i), 1))
        tensors.update(_conv_norm(f'decode_head.fpn_convs.{i}', width, width, 3))
    return {**tensors,
            **_conv_norm('decode_head.bottleneck', width, last + POOLED_SCALES * width, 3),
            **_conv_norm('decode_head.fpn_bottleneck', width, 4 * width, 3),
            **_conv('decode_head.conv_seg', network.classes, width, 1)}


def expected_tensors(network):
    """Returns the shapes of all tensors of the model by name, without num_batches_tracked."""
    return {'CLASSIFICATION': _classifier, 'DETECTION': _detector,
            'SEGMENTATION': _segmenter}[network.task](network)
