"""The tensors of MambaOut, EfficientViM and VMamba under the names that timm, Hugging Face and the
networks' authors give them, and under one name each."""

import dataclasses
import re

from checkpoint.tensor import CheckpointError

MAMBAOUT, EFFICIENTVIM, VMAMBA = 'mambaout', 'efficientvim', 'vmamba'
DIRECTIONS = 4  # Of VMamba's scan.
# MambaOut's authors' names, and timm's. The first that fits counts.
_MAMBAOUT_NAMES = [
    (r'downsample_layers\.0\.', 'stem.'),
    (r'downsample_layers\.(\d+)\.', r'stages.\1.downsample.'),
    (r'stages\.(\d+)\.(\d+)\.', r'stages.\1.blocks.\2.'), (r'norm\.', 'head.norm.'),
    (r'head\.fc1\.', 'head.pre_logits.fc.'), (r'head\.norm\.', 'head.pre_logits.norm.'),
    (r'head\.fc2\.', 'head.fc.')]
# Parts of the names in VMamba's Hugging Face repositories, and of its authors' names.
_VMAMBA_HUGGING_FACE = {
    'vmamba.patch_embeddings.projection.0.': 'patch_embed.0.',
    'vmamba.patch_embeddings.projection.1.': 'patch_embed.2.',
    'vmamba.patch_embeddings.projection.3.': 'patch_embed.5.',
    'vmamba.patch_embeddings.projection.4.': 'patch_embed.7.',
    'vmamba.layers.': 'layers.', 'vmamba.norm.': 'classifier.norm.',
    '.downsample.down.': '.downsample.1.', '.downsample.norm.': '.downsample.3.',
    '.op.x_proj.weight': '.op.x_proj_weight', '.op.dt_projs.weight': '.op.dt_projs_weight'}


def family_of(names):
    """The family that has tensors of these names, or None."""
    if 'downsample_layers.0.conv1.weight' in names or {
            'stages.0.blocks.0.fc1.weight', 'stages.0.blocks.0.conv.weight'} <= set(names):
        return MAMBAOUT
    if any(name.endswith('.mixer.BCdt_proj.conv.weight') for name in names):
        return EFFICIENTVIM
    if any(re.search(r'\.(op|self_attention)\.x_proj[._]weight$', name) for name in names):
        return VMAMBA
    return None


def _mambaout_name(name):
    for old, new in _MAMBAOUT_NAMES:
        if re.match(old, name):
            return re.sub(f'^{old}', new, name)
    return name


def _vmamba_name(name):
    for theirs, own in _VMAMBA_HUGGING_FACE.items():
        name = name.replace(theirs, own)
    name = name.replace('.ln_1.', '.norm.').replace('.self_attention.', '.op.')
    return re.sub(r'^(norm|head)\.', r'classifier.\1.', name)


def hugging_face_names(arrays):
    """A VMamba's arrays by the names, and in the shapes, of the Hugging Face repositories."""
    renamed = {}
    for name, array in arrays.items():
        if name.endswith(('.x_proj_weight', '.dt_projs_weight')):
            array = array.reshape(-1, array.shape[-1])
        for theirs, own in _VMAMBA_HUGGING_FACE.items():
            name = name.replace(own, theirs)
        renamed[name.removeprefix('classifier.')] = array
    return renamed


def _view(tensor, shape, strides):
    return dataclasses.replace(tensor, shape=tuple(shape), strides=tuple(strides))


def _in_own_shape(name, tensor):
    """The tensor in the shape that its network gives it."""
    shape, strides = tensor.shape, tensor.strides
    if re.search(r'(^|\.)norm(\.\d)?\.(weight|bias)$', name) and len(shape) > 1:
        return _view(tensor, shape[1:2], strides[1:2])  # EfficientViM's authors: [1,C,1].
    if re.search(r'\.(op\.(in|out)_proj|mlp\.fc[12])\.weight$', name) and shape[2:] == (1, 1):
        return _view(tensor, shape[:2], strides[:2])  # VMamba's linear layers as convolutions.
    if re.search(r'\.op\.(x_proj|dt_projs)_weight$', name) and len(shape) == 2 and (
            shape[0] % DIRECTIONS == 0):
        rows = shape[0] // DIRECTIONS
        return _view(tensor, (DIRECTIONS, rows, shape[1]), (rows * strides[0], *strides))
    return tensor


def own_names(family, tensors):
    """The tensors by the network's names, in its shapes."""
    rename = {MAMBAOUT: _mambaout_name, VMAMBA: _vmamba_name}.get(family, str)
    if family == MAMBAOUT and 'stem.conv1.weight' in tensors:
        rename = str
    renamed = {rename(name): name for name in tensors}
    if len(renamed) != len(tensors):
        raise CheckpointError('two tensors are one: some have old names and some new ones')
    return {name: _in_own_shape(name, tensors[old]) for name, old in renamed.items()}
