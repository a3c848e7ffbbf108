"""SF-Mamba and VMamba as backbones of the dense heads. They return four maps, each after a
LayerNorm."""

import torch.nn.functional as F
from torch import nn

import sf_mamba
import vmamba
from map_norm import MapNorm


class ConvModule(nn.Module):
    """A convolution that keeps the size, followed by a BatchNorm if `norm` and a ReLU if `relu`.

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
    """A base class that turns a network into a backbone, which maps images [N,3,H,W] to maps at
    strides 4, 8, 16 and 32. The network is the other base class. It must have features(), and
    `widths`, the channels of the maps.

    The LayerNorms apply only to the maps for the head. The network's next stage gets the map
    without LayerNorm.
    """

    def add_norms(self):
        for i, width in enumerate(self.widths):
            self.add_module(f'outnorm{i}', MapNorm(width))

    def train(self, mode=True):
        """Like Module.train(), but BatchNorms keep their statistics, because batches are small."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def forward(self, images):
        return [getattr(self, f'outnorm{i}')(x) for i, x in enumerate(self.features(images))]


class Backbone(Pyramid, sf_mamba.SFMamba):
    """The backbone of an SF-Mamba. A trunk is not trained."""

    def __init__(self, **fields):
        super().__init__(sf_mamba.Config(**fields))
        del self.norm, self.head  # They belong to the classifier.
        if self.config.lite_trunk:
            self.trunk.requires_grad_(False)
        self.widths = self.config.widths
        self.add_norms()


class VMambaBackbone(Pyramid, vmamba.Backbone):
    def __init__(self, **fields):
        super().__init__(**fields)
        self.add_norms()


def make_backbone(family='', **fields):
    """Makes a backbone of sf_mamba.py, or of VMamba if `family` is 'vmamba'."""
    return {'': Backbone, 'vmamba': VMambaBackbone}[family](**fields)
