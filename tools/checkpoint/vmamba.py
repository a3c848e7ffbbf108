"""Renames the tensors of VMamba's second version, and lists the tensors that it must have."""

import dataclasses
import re

DIRECTIONS = 4  # The number of directions in which a block scans.
INPUT_SIZE, CROP_PCT = 224, 0.875  # As in the authors' evaluation.
_FIRST = re.compile(r'(backbone\.|vmamba\.)?layers\.0\.blocks\.0\.(op|self_attention)\.A_logs$')
# Maps parts of the tensor names in the Hugging Face repositories to the names in VMamba's own code.
_HUGGING_FACE = {
    'vmamba.patch_embeddings.projection.0.': 'patch_embed.0.',
    'vmamba.patch_embeddings.projection.1.': 'patch_embed.2.',
    'vmamba.patch_embeddings.projection.3.': 'patch_embed.5.',
    'vmamba.patch_embeddings.projection.4.': 'patch_embed.7.',
    'vmamba.layers.': 'layers.', 'vmamba.norm.': 'classifier.norm.',
    '.downsample.down.': '.downsample.1.', '.downsample.norm.': '.downsample.3.',
    '.op.x_proj.weight': '.op.x_proj_weight', '.op.dt_projs.weight': '.op.dt_projs_weight'}
# Patterns of names in older files. VMamba's own loader renames them in the same way.
_OLDER = ((re.compile(r'^(norm|head)\.'), r'classifier.\1.'),
          (re.compile(r'(\.blocks\.\d+)\.ln_1\.'), r'\1.norm.'),
          (re.compile(r'(\.blocks\.\d+)\.self_attention\.'), r'\1.op.'))
_LINEAR = re.compile(r'.*\.(op\.(in|out)_proj|mlp\.fc[12])\.weight$')
_OF_DIRECTIONS = re.compile(r'.*\.op\.(x_proj|dt_projs)_weight$')


@dataclasses.dataclass(frozen=True)
class Backbone:
    dim: int       # Channels of stage 1; each stage doubles them.
    ratio: int     # Channels that a block scans, divided by the block's channels.
    depths: tuple  # Blocks of each of the four stages.

    # Other kinds of backbones have these fields, too. A VMamba has neither a trunk nor learnable
    # tokens. `attention` has its default value, so that config.textproto does not contain it.
    trunk = 0
    learnable = False
    attention = True

    def width(self, stage):
        """Returns the channels of a stage's map."""
        return self.dim << stage


ROWS = {'vmamba_t_s1l8': Backbone(96, 1, (2, 2, 8, 2)),
        'vmamba_t_s2l5': Backbone(96, 2, (2, 2, 5, 2)),
        'vmamba_s_s2l15': Backbone(96, 2, (2, 2, 15, 2)),
        'vmamba_s_s1l20': Backbone(96, 1, (2, 2, 20, 2)),
        'vmamba_b_s2l15': Backbone(128, 2, (2, 2, 15, 2)),
        'vmamba_b_s1l20': Backbone(128, 1, (2, 2, 20, 2))}


def is_vmamba(names):
    """Returns whether the names belong to the tensors of a VMamba, of any version and layout."""
    return any(map(_FIRST.match, names))


def own_name(name):
    """Returns the name that a VMamba's tensor has in its authors' code. `name` may be from any
    layout.
    """
    for old, new in _OLDER:
        name = old.sub(new, name)
    for theirs, own in _HUGGING_FACE.items():
        name = name.replace(theirs, own)
    return name


def hugging_face_names(arrays):
    """Converts arrays with the authors' names to the names and shapes of the Hugging Face
    repositories."""
    renamed = {}
    for name, array in arrays.items():
        if _OF_DIRECTIONS.match(name):
            array = array.reshape(-1, array.shape[-1])
        for theirs, own in _HUGGING_FACE.items():
            name = name.replace(own, theirs)
        renamed[name.removeprefix('classifier.')] = array
    return renamed


def _view(tensor, shape, strides):
    return dataclasses.replace(tensor, shape=tuple(shape), strides=tuple(strides))


def in_own_shape(name, tensor):
    """Returns the tensor in the shape that its authors' code gives it. `name` is the name in their
    code.
    """
    shape, strides = tensor.shape, tensor.strides
    if _LINEAR.match(name) and shape[2:] == (1, 1):  # Older files have 1x1 convolutions.
        return _view(tensor, shape[:2], strides[:2])
    if _OF_DIRECTIONS.match(name) and len(shape) == 2 and shape[0] % DIRECTIONS == 0:
        rows = shape[0] // DIRECTIONS
        return _view(tensor, (DIRECTIONS, rows, shape[1]), (rows * strides[0], *strides))
    return tensor


def variant_of(backbone):
    """Returns the name of the row that equals `backbone`. If there is none, returns the name of the
    first row with the same `ratio`.
    """
    similar = [name for name, row in ROWS.items() if row.ratio == backbone.ratio]
    return next((name for name in similar if ROWS[name] == backbone), similar[0])


def _norm(name, width):
    return {f'{name}.weight': (width,), f'{name}.bias': (width,)}


def _linear(name, out, width):
    return {f'{name}.weight': (out, width), f'{name}.bias': (out,)}


def _conv(name, out, width):
    return {f'{name}.weight': (out, width, 3, 3), f'{name}.bias': (out,)}


def _block(name, width, inner):
    rank = (width + 15) // 16
    return {**_norm(f'{name}.norm', width), **_norm(f'{name}.norm2', width),
            f'{name}.op.in_proj.weight': (inner, width),
            f'{name}.op.conv2d.weight': (inner, 1, 3, 3),
            f'{name}.op.x_proj_weight': (DIRECTIONS, rank + 2, inner),
            f'{name}.op.dt_projs_weight': (DIRECTIONS, inner, rank),
            f'{name}.op.dt_projs_bias': (DIRECTIONS, inner),
            f'{name}.op.A_logs': (DIRECTIONS * inner, 1), f'{name}.op.Ds': (DIRECTIONS * inner,),
            **_norm(f'{name}.op.out_norm', inner),
            f'{name}.op.out_proj.weight': (width, inner),
            **_linear(f'{name}.mlp.fc1', 4 * width, width),
            **_linear(f'{name}.mlp.fc2', width, 4 * width)}


def backbone_tensors(prefix, backbone):
    """Returns the shapes of the backbone's tensors, by name."""
    dim, stem = backbone.dim, f'{prefix}patch_embed.'
    tensors = {**_conv(f'{stem}0', dim // 2, 3), **_norm(f'{stem}2', dim // 2),
               **_conv(f'{stem}5', dim, dim // 2), **_norm(f'{stem}7', dim)}
    for stage, depth in enumerate(backbone.depths):
        name, width = f'{prefix}layers.{stage}', backbone.width(stage)
        for block in range(depth):
            tensors.update(_block(f'{name}.blocks.{block}', width, backbone.ratio * width))
        if stage < 3:
            tensors.update(_conv(f'{name}.downsample.1', 2 * width, width))
            tensors.update(_norm(f'{name}.downsample.3', 2 * width))
    return tensors


def classifier_tensors(backbone, classes):
    """Returns the shapes of a classifier's tensors, by name."""
    width = backbone.width(3)
    return {**backbone_tensors('', backbone), **_norm('classifier.norm', width),
            **_linear('classifier.head', classes, width)}
