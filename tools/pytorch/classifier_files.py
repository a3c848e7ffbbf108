"""Reads and writes the files of classifiers without PyTorch. These are the start and the result of
training.

    start = open_start('MambaVision-T-1K')
    model = sf_mamba.make('custom', num_classes=start.classes, **start.fields)
    arrays = start.arrays()
"""

import dataclasses
import json
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1]))

from checkpoint import open_names, open_weights, report, textproto  # noqa: E402
from checkpoint.model_directory import Options, write_model  # noqa: E402
from checkpoint.network import Backbone, Network, expected_tensors  # noqa: E402
from checkpoint.opened import open_checkpoint  # noqa: E402
from checkpoint.safetensors_file import stored_type, write_safetensors  # noqa: E402
from checkpoint.tensor import (CheckpointError, Storage, check_finite,  # noqa: E402
                               checked_tensor, convert)
from checkpoint.variants import CUSTOM, MEAN, NAMES, STD, find_row  # noqa: E402
from checkpoint.vmamba import hugging_face_names  # noqa: E402

VARIANTS = [name for name in NAMES if name != CUSTOM] + open_weights.NAMES
NECK = (320, 1280)  # Channels of EfficientNet-Lite0's last layers.
_TOKENS = {'none': 'none', 'data': 'swap', 'learnable': 'swap'}  # To the converter's names.
_SIZE = 224  # The size of pictures if nothing tells it.
# The fields of config.textproto's backbone that sf_mamba.py supports.
_KNOWN = {'variant', 'stem', 'dim', 'in_dim', 'depths', 'num_heads', 'windows', 'layer_scale',
          'tokens', 'swap', 'attention'}


@dataclasses.dataclass(frozen=True)
class Start:
    """A classifier to start from."""

    variant: str    # mamba_vision_t, ..., or custom.
    fields: dict    # The network's arguments without the classes, as for sf_mamba.make('custom').
    classes: int
    size: int       # Pixels per side of the pictures.
    mean: tuple     # Of the pictures, RGB in 0..1.
    std: tuple
    evidence: str   # A line: what was found, and the evidence for it.
    tensors: dict   # A checkpoint.tensor.Tensor for each name of the model.
    family: str = ''  # mambaout, efficientvim or vmamba; empty: a network of sf_mamba.py.

    def arrays(self):
        """Returns the weights as float32 arrays by name. Raises an error if one is not finite."""
        check_finite(self.tensors)
        return {name: np.array(convert(tensor.array(), tensor.dtype, 'F32'))
                for name, tensor in self.tensors.items()}


def _open(path, variant):
    """Returns the Opened of `path`. Raises an error if it has another network than `variant`."""
    if variant is None:
        return open_checkpoint(path)
    opened = open_checkpoint(path, variant=variant)
    if opened.choice.against:
        raise CheckpointError(f'--variant {variant} is not what the checkpoint says: '
                              f'{" and ".join(opened.choice.against)}')
    try:
        found = open_checkpoint(path, tokens=opened.tokens).variant
    except CheckpointError:
        return opened  # Only the flag tells which of several sizes it is.
    if not _same(found, variant):
        raise CheckpointError(f'--variant {variant} is not what the checkpoint is: {found}')
    return opened


def _same(found, variant):
    """Returns whether two names mean the same network and the same size of pictures, as b and b_21k
    do.
    """
    if found == CUSTOM:
        return False
    row, wanted = find_row(found)[0], find_row(variant)[0]
    return dataclasses.replace(row, name=wanted.name) == wanted


def _check_trainable(opened):
    """Raises an error if sf_mamba.py has no such network."""
    network = opened.network
    if network.task != 'CLASSIFICATION':
        raise CheckpointError(f'a model of {network.task}, expected a classifier')
    if network.neck not in ((), NECK):
        raise CheckpointError(f'a network with another neck than {NECK}: it can be served, not '
                              'trained here')
    check_backbone(opened)


def check_backbone(opened):
    """Raises an error if sf_mamba.py has no such backbone."""
    if not opened.network.backbone.attention:
        raise CheckpointError('a network without attention: it can be served, not trained here')
    own = textproto.parse(opened.files.own_config or '').get('backbone', [{}])[0]
    others = sorted(own.keys() - _KNOWN)
    if others:
        raise CheckpointError(f'config.textproto: backbone.{", backbone.".join(others)}: can be '
                              'served, not trained here')


def _numbers(opened, known):
    """Returns (heads, windows, size of the pictures)."""
    backbone, choice = opened.network.backbone, opened.choice
    heads, windows, size = choice.num_heads, choice.windows, choice.picture.get('size')
    if opened.variant != CUSTOM:
        row = find_row(opened.variant)[0]
        heads, windows = heads or row.num_heads, windows or row.windows
        size = size or row.input_size
    for fields in known:
        if (fields.get('lite_trunk', 0), fields['dim']) == (backbone.trunk, backbone.dim):
            heads, windows = heads or fields['num_heads'], windows or fields['windows']
            size = size or fields['windows'][1] * 32
    if heads is None:
        raise CheckpointError('nothing tells the attention heads of stages 3 and 4: convert it by '
                              'tools/convert_checkpoint.py --num_heads first')
    size = size or _SIZE
    return heads, windows or (-(-size // 16), -(-size // 32)), size


def open_start(path, variant=None, known=()):
    """Returns the Start of a checkpoint of any layout that the converter takes.

    `variant` names the network if nothing in the checkpoint does. If the checkpoint says something
    else, an error is raised. `known` is for older checkpoints of networks with a trunk, which lack
    some fields. It lists the `fields` of such networks. The missing fields are taken from the entry
    with the checkpoint's trunk and dim.
    """
    found = open_weights.read_open_weights(path, variant)
    if found:
        if found.network.task != 'CLASSIFICATION':
            raise CheckpointError(f'a model of {found.network.task}, expected a classifier')
        return Start(found.variant, found.fields, found.network.classes, found.picture['size'],
                     found.picture['mean'], found.picture['std'], found.evidence, found.tensors,
                     found.family)
    if variant in open_weights.NAMES:
        raise CheckpointError(f'--variant {variant} is not what the checkpoint is')
    opened = _open(path, variant)
    _check_trainable(opened)
    found = report.match(opened.state, expected_tensors(opened.network))
    if not found.loads:
        raise CheckpointError(f'not a {opened.variant}: '
                              f'{"; ".join(report.problems(found.rows))}')
    backbone = opened.network.backbone
    heads, windows, size = _numbers(opened, known)
    tokens = 'learnable' if backbone.learnable else {'swap': 'data'}.get(opened.tokens, 'none')
    fields = dict(dim=backbone.dim, in_dim=backbone.in_dim, depths=tuple(backbone.depths),
                  num_heads=tuple(heads), windows=tuple(windows),
                  layer_scale=backbone.layer_scale, tokens=tokens,
                  swap=opened.choice.swap is not False, lite_trunk=backbone.trunk,
                  neck=bool(opened.network.neck))
    picture = opened.choice.picture
    return Start(opened.variant, fields, opened.network.classes, size,
                 picture.get('mean', MEAN), picture.get('std', STD), opened.evidence,
                 found.tensors)


def facts_of(config, start, size):
    """Returns the facts about a network that its shapes do not tell. They are stored in a
    checkpoint, where open_start() and the converter read them. `config` is an sf_mamba.Config, or
    None for another family. `start` is the Start of the training, or None.
    """
    facts = dict(variant=start.variant if start else CUSTOM, input_size=size, crop_pct=1.0,
                 crop_mode='center', mean=tuple(start.mean if start else MEAN),
                 std=tuple(start.std if start else STD))
    if config is None:
        return dict(facts, family=start.family)
    return dict(facts, tokens=config.tokens, swap=config.swap, num_heads=tuple(config.num_heads),
                windows=tuple(config.windows))


def _tensor(array):
    array = np.ascontiguousarray(array, np.float32)
    return checked_tensor(Storage('F32', array.size, array.tobytes), 0, array.shape)


def write_classifier(out, config, arrays, labels, facts):
    """Writes the directory of a classifier for the server. `config` is an sf_mamba.Config.

    `facts` come from facts_of(). Matrices are stored in fp16. Vectors are stored in fp32, because
    they are small, and variances may be large.
    """
    backbone = Backbone(config.dim, config.in_dim, tuple(config.depths), config.layer_scale,
                        learnable=config.tokens == 'learnable', trunk=config.lite_trunk)
    network = Network('CLASSIFICATION', backbone, len(labels), neck=NECK if config.neck else ())
    picture = dict(size=facts['input_size'], crop_pct=1.0, resize='CENTER_CROP')
    picture.update((name, facts[name]) for name, usual in (('mean', MEAN), ('std', STD))
                   if facts[name] != usual)
    options = Options(facts['variant'], _TOKENS[config.tokens], tuple(config.num_heads),
                      tuple(config.windows), picture=picture,
                      swap=None if config.tokens == 'none' else config.swap)
    tensors, types = _stored(arrays)
    write_model(out, network, options, tensors, types, labels)


def _stored(arrays):
    """Returns (tensors, types) of weights, with matrices in fp16 and vectors in fp32."""
    tensors = {name: _tensor(array) for name, array in arrays.items()}
    check_finite(tensors)
    return tensors, {name: stored_type(tensor, 'F16') if len(tensor.shape) > 1 else 'F32'
                     for name, tensor in tensors.items()}


def _published_config(arrays, labels, facts):
    """Returns the content of config.json. It has timm's form. For a VMamba, it has the form of the
    Hugging Face repositories.
    """
    size = facts['input_size']
    picture = dict(input_size=[3, size, size], interpolation='bicubic', crop_pct=facts['crop_pct'],
                   crop_mode=facts['crop_mode'], mean=facts['mean'], std=facts['std'])
    fields = open_weights.fields_of(
        facts['family'], {name: array.shape for name, array in arrays.items()})
    classes = len(labels)
    if facts['family'] == open_names.VMAMBA:
        return dict(model_type='vmamba', architectures=['VMambaForImageClassification'],
                    depths=fields['depths'], dims=fields['dim'], embed_dim=fields['dim'],
                    patch_size=4, num_classes=classes, id2label=dict(enumerate(labels)), **picture)
    arguments = {'depths': fields['depths']} if facts['family'] == open_names.MAMBAOUT else {}
    return dict(architecture=facts['variant'], num_classes=classes, model_args=arguments,
                label_names=labels, pretrained_cfg=dict(picture, num_classes=classes))


def write_published(out, arrays, labels, facts):
    """Writes the directory of a MambaOut, EfficientViM or VMamba in the layout of its public
    weights, which the server, timm and open_start() read. `facts` come from facts_of()."""
    config = _published_config(arrays, labels, facts)
    if facts['family'] == open_names.VMAMBA:
        arrays = hugging_face_names(arrays)
    tensors, types = _stored(arrays)
    out.mkdir(parents=True, exist_ok=True)
    for name in ('config.json', 'config.textproto', 'labels.txt'):  # From an earlier model.
        (out / name).unlink(missing_ok=True)
    with open(out / 'model.safetensors', 'wb') as file:
        write_safetensors(file, tensors, types)
    (out / 'config.json').write_text(json.dumps(config, indent=1) + '\n', encoding='utf-8')
