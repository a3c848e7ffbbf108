"""SF-Mamba as the backbone of the dense heads: four maps, each behind a LayerNorm."""

import torch.nn.functional as F
from torch import nn

import sf_mamba


class ConvModule(nn.Module):
    """A convolution that keeps the size, then BatchNorm and ReLU where asked for.

    With a BatchNorm the convolution has no bias.
    """

    def __init__(self, channels_in, channels_out, kernel, norm=False, relu=False):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2,
                              bias=not norm)
        self.bn = nn.BatchNorm2d(channels_out) if norm else None
        self.relu = relu

    def forward(self, x):
        x = self.conv(x)
        x = x if self.bn is None else self.bn(x)
        return F.relu(x) if self.relu else x


class Backbone(sf_mamba.SFMamba):
    """Images [N,3,H,W] to maps at strides 4, 8, 16 and 32.

    The LayerNorms are on the maps' way to a head; the next stage gets the map itself. A trunk
    does not learn.
    """

    def __init__(self, **fields):
        super().__init__(sf_mamba.Config(**fields))
        del self.norm, self.head  # The classifier's.
        if self.config.lite_trunk:
            self.trunk.requires_grad_(False)
        self.widths = self.config.widths
        for i, width in enumerate(self.widths):
            self.add_module(f'outnorm{i}', nn.LayerNorm(width))

    def train(self, mode=True):
        """But BatchNorms keep their statistics: batches are small."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def forward(self, images):
        return [getattr(self, f'outnorm{i}')(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
                for i, x in enumerate(self.features(images))]
