"""Lists the tensors of EfficientNet-Lite0's layers, which may replace the first stages of a
backbone.
"""

# Each block has the kernel's side, the expansion, the channels in and the channels out.
_BLOCKS = ((3, 1, 32, 16), (3, 6, 16, 24), (3, 6, 24, 24), (5, 6, 24, 40), (5, 6, 40, 40),
           (3, 6, 40, 80), (3, 6, 80, 80), (3, 6, 80, 80), (5, 6, 80, 112), (5, 6, 112, 112),
           (5, 6, 112, 112), (5, 6, 112, 192))
# The keys of these dictionaries are the stride of the trunk's last map. DEPTHS contains the number
# of blocks, STAGES the number of stages that these blocks replace, and STEMS the server's name for
# them.
DEPTHS = {16: 11, 32: 12}
STAGES = {16: 2, 32: 3}
WIDTHS = (24, 40, 112)  # Channels of the replaced stages' maps.
STEMS = {16: 'EFFICIENTNET_LITE0', 32: 'EFFICIENTNET_LITE0_STRIDE32'}


def unit(name, out, width, side):
    """Returns the tensors of a convolution with `width` channels per group, and of its BatchNorm.
    """
    return {f'{name}.conv.weight': (out, width, side, side),
            **{f'{name}.bn.{part}': (out,)
               for part in ('weight', 'bias', 'running_mean', 'running_var')}}


def tensors(stride, prefix=''):
    """Returns the tensors of a trunk down to this stride, as {name: shape}. `prefix` is the
    backbone's prefix.
    """
    found = unit(f'{prefix}trunk.stem', 32, 3, 3)
    for i, (kernel, expansion, width, out) in enumerate(_BLOCKS[:DEPTHS[stride]]):
        block, wide = f'{prefix}trunk.blocks.{i}', width * expansion
        if expansion > 1:
            found.update(unit(f'{block}.expand', wide, width, 1))
        found.update(unit(f'{block}.depthwise', wide, 1, kernel))
        found.update(unit(f'{block}.project', out, wide, 1))
    return found
