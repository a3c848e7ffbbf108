"""Gives the tensors of MambaOut and EfficientViM the names and shapes that the networks in
tools/pytorch expect.

Files of MambaOut's authors have other names than timm's files. tools/pytorch uses timm's names.
EfficientViM's authors store some vectors in another shape.
"""

import dataclasses
import re

from checkpoint.tensor import CheckpointError
from checkpoint.vmamba import is_vmamba

MAMBAOUT, EFFICIENTVIM, VMAMBA = 'mambaout', 'efficientvim', 'vmamba'
# Patterns of the names that MambaOut's authors use, with timm's names. The first pattern that fits
# is used.
_MAMBAOUT_NAMES = [
    (r'downsample_layers\.0\.', 'stem.'),
    (r'downsample_layers\.(\d+)\.', r'stages.\1.downsample.'),
    (r'stages\.(\d+)\.(\d+)\.', r'stages.\1.blocks.\2.'), (r'norm\.', 'head.norm.'),
    (r'head\.fc1\.', 'head.pre_logits.fc.'), (r'head\.norm\.', 'head.pre_logits.norm.'),
    (r'head\.fc2\.', 'head.fc.')]


def family_of(names):
    """Returns the family whose tensors have these names, or None."""
    if 'downsample_layers.0.conv1.weight' in names or {
            'stages.0.blocks.0.fc1.weight', 'stages.0.blocks.0.conv.weight'} <= set(names):
        return MAMBAOUT
    if any(name.endswith('.mixer.BCdt_proj.conv.weight') for name in names):
        return EFFICIENTVIM
    if is_vmamba(names):
        return VMAMBA
    return None


def _mambaout_name(name):
    for old, new in _MAMBAOUT_NAMES:
        if re.match(old, name):
            return re.sub(f'^{old}', new, name)
    return name


def _in_own_shape(name, tensor):
    """Returns the tensor in the shape that its network expects."""
    shape, strides = tensor.shape, tensor.strides
    if re.search(r'(^|\.)norm(\.\d)?\.(weight|bias)$', name) and len(shape) > 1:
        # EfficientViM's authors store [1,C,1].
        return dataclasses.replace(tensor, shape=shape[1:2], strides=strides[1:2])
    return tensor


def own_names(family, tensors):
    """Returns a StateDict's tensors with the names and shapes of the network in tools/pytorch. The
    tensors of a VMamba already have these names and shapes.
    """
    is_original = family == MAMBAOUT and 'stem.conv1.weight' not in tensors
    rename = _mambaout_name if is_original else str
    renamed = {rename(name): name for name in tensors}
    if len(renamed) != len(tensors):
        raise CheckpointError('two tensors are one: some have old names and some new ones')
    return {name: _in_own_shape(name, tensors[old]) for name, old in renamed.items()}
