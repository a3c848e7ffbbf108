"""The tensors of EfficientNet-Lite0's layers, below the token stages and above them."""

# Kernel, expansion, channels in and out of each block.
_BLOCKS = ((3, 1, 32, 16), (3, 6, 16, 24), (3, 6, 24, 24), (5, 6, 24, 40), (5, 6, 40, 40),
           (3, 6, 40, 80), (3, 6, 80, 80), (3, 6, 80, 80), (5, 6, 80, 112), (5, 6, 112, 112),
           (5, 6, 112, 112), (5, 6, 112, 192))
# By the stride of the last map: how many blocks there are, the stages that they replace, and
# what the server calls them.
DEPTHS = {16: 11, 32: 12}
STAGES = {16: 2, 32: 3}
WIDTHS = (24, 40, 112)  # Channels of the maps of these stages.
STEMS = {16: 'EFFICIENTNET_LITE0', 32: 'EFFICIENTNET_LITE0_STRIDE32'}


def unit(name, out, width, side):
    """A convolution over `width` channels a group, and its BatchNorm."""
    return {f'{name}.conv.weight': (out, width, side, side),
            **{f'{name}.bn.{part}': (out,)
               for part in ('weight', 'bias', 'running_mean', 'running_var')}}


def tensors(stride, prefix=''):
    """Those of a trunk down to this stride, under the backbone's prefix: shape by name."""
    found = unit(f'{prefix}trunk.stem', 32, 3, 3)
    for i, (kernel, expansion, width, out) in enumerate(_BLOCKS[:DEPTHS[stride]]):
        block, wide = f'{prefix}trunk.blocks.{i}', width * expansion
        if expansion > 1:
            found.update(unit(f'{block}.expand', wide, width, 1))
        found.update(unit(f'{block}.depthwise', wide, 1, kernel))
        found.update(unit(f'{block}.project', out, wide, 1))
    return found
