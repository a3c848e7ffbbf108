"""MambaOut classifiers (arXiv 2405.07992) in plain PyTorch: gated convolutions without a scan.

The module names are the checkpoint's keys, which are timm's. `rw` means a variant of timm's author,
Ross Wightman. In such a variant, two norms of the paper's network are missing and the norm of a
downsample comes before the convolution. The residuals have learned factors. Letters: N images, C
channels.
"""

import collections

import torch
import torch.nn.functional as F
from torch import nn

from map_norm import MapNorm
from sf_mamba import initialise

EPSILON = 1e-6
HEAD_RATIO = 4
ACTIVATIONS = {'gelu': F.gelu, 'silu': F.silu}


class Stem(nn.Module):
    """Maps images [N,3,H,W] to [N,C,H/4,W/4], rounded up."""

    def __init__(self, width, activation, rw):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width // 2, 3, 2, 1)
        self.norm1 = nn.Identity() if rw else MapNorm(width // 2, EPSILON)
        self.activation = activation
        self.conv2 = nn.Conv2d(width // 2, width, 3, 2, 1)
        self.norm2 = MapNorm(width, EPSILON)

    def forward(self, x):
        return self.norm2(self.conv2(self.activation(self.norm1(self.conv1(x)))))


class Downsample(nn.Module):
    def __init__(self, width_in, width, rw):
        super().__init__()
        self.rw = rw
        self.conv = nn.Conv2d(width_in, width, 3, 2, 1)
        self.norm = MapNorm(width_in if rw else width, EPSILON)

    def forward(self, x):
        return self.conv(self.norm(x)) if self.rw else self.norm(self.conv(x))


class LayerScale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.gamma


class Block(nn.Module):
    """x + fc2(activation(g) * [i, conv(c)]), where [g, i, c] = fc1(norm(x)); x [N,H,W,C]."""

    def __init__(self, width, hidden, conv, activation, rw):
        super().__init__()
        self.parts = (hidden, hidden - conv, conv)
        self.activation = activation
        self.norm = nn.LayerNorm(width, EPSILON)
        self.fc1 = nn.Linear(width, 2 * hidden)
        self.conv = nn.Conv2d(conv, conv, 7, padding=3, groups=conv)
        self.fc2 = nn.Linear(hidden, width)
        self.ls = LayerScale(width) if rw else nn.Identity()

    def forward(self, x):
        g, i, c = self.fc1(self.norm(x)).split(self.parts, dim=-1)
        c = self.conv(c.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return x + self.ls(self.fc2(self.activation(g) * torch.cat([i, c], dim=-1)))


class Stage(nn.Module):
    """A stage on maps [N,C,H,W]. All stages but the first begin with a downsample."""

    def __init__(self, downsample, blocks):
        super().__init__()
        self.downsample = downsample
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x):
        return self.blocks(self.downsample(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Head(nn.Module):
    """Maps the last map [N,C,H,W] to logits. Its activation is always GELU."""

    def __init__(self, width, num_classes, rw):
        super().__init__()
        hidden = HEAD_RATIO * width
        self.norm = nn.LayerNorm(width, EPSILON)
        self.pre_logits = nn.Sequential(collections.OrderedDict(
            fc=nn.Linear(width, hidden), act=nn.GELU(),
            norm=nn.Identity() if rw else nn.LayerNorm(hidden, EPSILON)))
        self.fc = nn.Linear(hidden, num_classes)

    def forward(self, x):
        return self.fc(self.pre_logits(self.norm(x.mean(dim=(2, 3)))))


class MambaOut(nn.Module):
    LAST = ('head.fc.',)  # The layers that tell the classes apart.

    def __init__(self, num_classes, widths, depths, hidden, conv, activation, rw):
        """`hidden` and `conv` are the channels of each stage's gate and convolution. `activation`
        is 'gelu' or 'silu'."""
        super().__init__()
        activation = ACTIVATIONS[activation]
        self.stem = Stem(widths[0], activation, rw)
        self.stages = nn.ModuleList(
            Stage(Downsample(widths[k - 1], widths[k], rw) if k else nn.Identity(),
                  (Block(widths[k], hidden[k], conv[k], activation, rw)
                   for _ in range(depths[k])))
            for k in range(4))
        self.head = Head(widths[3], num_classes, rw)
        self.apply(initialise)

    def features(self, images):
        """Maps images [N,3,H,W] to the four stage maps at strides 4, 8, 16 and 32."""
        maps = [self.stem(images)]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        return maps[1:]

    def forward(self, images):
        """Maps normalised images [N,3,H,W] to logits [N,num_classes]."""
        return self.head(self.features(images)[-1])
