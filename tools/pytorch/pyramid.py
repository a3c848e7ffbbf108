"""SF-Mamba and VMamba as backbones of the dense heads: four maps, each behind a LayerNorm."""

import torch.nn.functional as F
from torch import nn

import sf_mamba
import vmamba
from map_norm import MapNorm


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


class Pyramid(nn.Module):
    """A network with features(), as a backbone: images [N,3,H,W] to maps at strides 4, 8, 16, 32.

    The LayerNorms are on the maps' way to a head; the next stage gets the map itself.
    """

    def add_norms(self):
        for i, width in enumerate(self.widths):
            self.add_module(f'outnorm{i}', MapNorm(width))

    def train(self, mode=True):
        """But BatchNorms keep their statistics: batches are small."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def forward(self, images):
        return [getattr(self, f'outnorm{i}')(x) for i, x in enumerate(self.features(images))]


class Backbone(Pyramid, sf_mamba.SFMamba):
    """A trunk does not learn."""

    def __init__(self, **fields):
        super().__init__(sf_mamba.Config(**fields))
        del self.norm, self.head  # The classifier's.
        if self.config.lite_trunk:
            self.trunk.requires_grad_(False)
        self.widths = self.config.widths
        self.add_norms()


class VMambaBackbone(Pyramid, vmamba.Backbone):
    def __init__(self, **fields):
        super().__init__(**fields)
        self.add_norms()


def make_backbone(family='', **fields):
    """A backbone of sf_mamba.py, or of 'vmamba'."""
    return {'': Backbone, 'vmamba': VMambaBackbone}[family](**fields)
