"""VMamba in its second version: what its tensors' shapes tell, and the tensors that it must have."""

import dataclasses
import re

_FIRST = r'layers\.0\.blocks\.0\.(op|self_attention)\.A_logs$'
# The names of older files, as VMamba's own loader takes them.
_RENAMINGS = ((re.compile(r'^norm\.'), 'classifier.norm.'),
              (re.compile(r'^head\.'), 'classifier.head.'),
              (re.compile(r'^(layers\.\d+\.blocks\.\d+)\.ln_1\.'), r'\1.norm.'),
              (re.compile(r'^(layers\.\d+\.blocks\.\d+)\.self_attention\.'), r'\1.op.'))


@dataclasses.dataclass(frozen=True)
class Backbone:
    dim: int       # Channels of stage 1; each stage doubles them.
    ratio: int     # Channels that a block scans, in multiples of its own.
    depths: tuple  # Blocks of each of the four stages.

    # Other backbones have these; a VMamba has neither trunk nor learnable tokens.
    trunk = 0
    learnable = False
    attention = True

    def width(self, stage):
        """Channels of a stage's map."""
        return self.dim << stage


ROWS = {'vmamba_t_s1l8': Backbone(96, 1, (2, 2, 8, 2)),
        'vmamba_t_s2l5': Backbone(96, 2, (2, 2, 5, 2)),
        'vmamba_s_s2l15': Backbone(96, 2, (2, 2, 15, 2)),
        'vmamba_s_s1l20': Backbone(96, 1, (2, 2, 20, 2)),
        'vmamba_b_s2l15': Backbone(128, 2, (2, 2, 15, 2)),
        'vmamba_b_s1l20': Backbone(128, 1, (2, 2, 20, 2))}


def is_vmamba(names, prefix=''):
    """Whether these are the names of a VMamba's tensors, of whatever version."""
    first = re.compile(re.escape(prefix) + _FIRST)
    return any(map(first.match, names))


def current_names(names):
    """The names by key, with VMamba's older ones replaced; others stay."""
    if not is_vmamba(names.values()):
        return names
    renamed = {}
    for key, name in names.items():
        for old, new in _RENAMINGS:
            name = old.sub(new, name)
        renamed[key] = name
    return renamed


def variant_of(backbone):
    """The row of the table, or else the first one with such blocks."""
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
            f'{name}.op.x_proj_weight': (4, rank + 2, inner),
            f'{name}.op.dt_projs_weight': (4, inner, rank),
            f'{name}.op.dt_projs_bias': (4, inner),
            f'{name}.op.A_logs': (4 * inner, 1), f'{name}.op.Ds': (4 * inner,),
            **_norm(f'{name}.op.out_norm', inner),
            f'{name}.op.out_proj.weight': (width, inner),
            **_linear(f'{name}.mlp.fc1', 4 * width, width),
            **_linear(f'{name}.mlp.fc2', width, 4 * width)}


def backbone_tensors(prefix, backbone):
    """Shape by name."""
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
    """Shape by name."""
    width = backbone.width(3)
    return {**backbone_tensors('', backbone), **_norm('classifier.norm', width),
            **_linear('classifier.head', classes, width)}
