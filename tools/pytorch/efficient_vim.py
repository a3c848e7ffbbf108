"""EfficientViM classifiers (arXiv 2411.15241) in plain PyTorch. The pixels of an image exchange
information through a small number of hidden states, which are weighted sums of the pixels.

The module names are the checkpoint's keys, which are timm's. Letters: N images, C channels, L
pixels of a map, n hidden states.
"""

import collections

import torch
import torch.nn.functional as F
from torch import nn

from sf_mamba import initialise

MLP_RATIO = MERGE_RATIO = 4


def named(**layers):
    return nn.Sequential(collections.OrderedDict(layers))


def conv_norm(channels_in, channels_out, kernel, stride=1, groups=1, relu=False):
    return named(
        conv=nn.Conv2d(channels_in, channels_out, kernel, stride, kernel // 2, groups=groups,
                       bias=False),
        norm=nn.BatchNorm2d(channels_out), act=nn.ReLU() if relu else nn.Identity())


def depthwise(width):
    return conv_norm(width, width, 3, groups=width)


class Mixer(nn.Module):
    """The hidden state mixer of a map [N,C,H,W]: HSM-SSD (section 3.2)."""

    def __init__(self, width, states):
        super().__init__()

        def linear(channels_in, channels_out):
            return named(conv=nn.Conv1d(channels_in, channels_out, 1, bias=False))

        self.BCdt_proj = linear(width, 3 * states)
        self.dw = named(conv=nn.Conv2d(3 * states, 3 * states, 3, padding=1, groups=3 * states,
                                       bias=False))
        self.A = nn.Parameter(torch.ones(states))
        self.D = nn.Parameter(torch.ones(1))
        self.hz_proj = linear(width, 2 * width)
        self.out_proj = linear(width, width)

    def forward(self, x):
        """Returns (the new map, the hidden states [N,C,n])."""
        size, x = x.shape[2:], x.flatten(2)
        bcdt = self.dw(self.BCdt_proj(x).unflatten(2, size)).flatten(2)
        B, C, dt = bcdt.chunk(3, dim=1)                                    # [N,n,L]
        # Adding A does not change the result of the softmax, because A is the same for all pixels.
        # The checkpoint has A, so the sum is computed as in the paper.
        gate = (dt + self.A[:, None]).softmax(dim=2) * B
        h, z = self.hz_proj(x @ gate.transpose(1, 2)).chunk(2, dim=1)      # [N,C,n]
        h = self.out_proj(h * F.silu(z) + h * self.D)
        return (h @ C).unflatten(2, size), h


class Block(nn.Module):
    """A block of four layers. After each layer, the new x is a weighted mean of the layer's result
    and its input. The weight of the result is sigmoid(`alpha`), learned for each channel.
    """

    def __init__(self, width, states):
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(4, width))
        self.dwconv1 = depthwise(width)
        self.norm = nn.LayerNorm(width)
        self.mixer = Mixer(width, states)
        self.dwconv2 = depthwise(width)
        self.ffn = named(fc1=conv_norm(width, MLP_RATIO * width, 1, relu=True),
                         fc2=conv_norm(MLP_RATIO * width, width, 1))

    def forward(self, x):
        """Returns (the new map, the mixer's hidden states)."""
        a = self.alpha.sigmoid()[:, :, None, None]
        x = x + a[0] * (self.dwconv1(x) - x)
        y, h = self.mixer(self.norm(x.movedim(1, 3)).movedim(3, 1))
        x = x + a[1] * (y - x)
        x = x + a[2] * (self.dwconv2(x) - x)
        return x + a[3] * (self.ffn(x) - x), h


class SqueezeExcite(nn.Module):
    def __init__(self, width, squeezed):
        super().__init__()
        self.fc1 = nn.Conv2d(width, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, width, 1)

    def forward(self, x):
        return x * self.fc2(F.relu(self.fc1(x.mean(dim=(2, 3), keepdim=True)))).sigmoid()


class Merge(nn.Module):
    """Halves the sides of a map, rounded up."""

    def __init__(self, width_in, width):
        super().__init__()
        hidden, squeezed = MERGE_RATIO * width, (width + 4) // 8 * 8
        self.dwconv1 = depthwise(width_in)
        self.conv = nn.Sequential(
            conv_norm(width_in, hidden, 1, relu=True),
            conv_norm(hidden, hidden, 3, 2, hidden, relu=True),
            SqueezeExcite(hidden, squeezed), conv_norm(hidden, width, 1))
        self.dwconv2 = depthwise(width)

    def forward(self, x):
        y = self.conv(x + self.dwconv1(x))
        return y + self.dwconv2(y)


class Stage(nn.Module):
    def __init__(self, width, depth, states, next_width):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, states) for _ in range(depth))
        self.downsample = Merge(width, next_width) if next_width else None

    def forward(self, x):
        """Returns (the map before the merge, the last block's hidden states)."""
        for block in self.blocks:
            x, h = block(x)
        return x, h


def patch_embed(width):
    sizes = [3, width // 8, width // 4, width // 2, width]
    return named(conv=nn.Sequential(*(
        conv_norm(sizes[i], sizes[i + 1], 3, 2, relu=i < 3) for i in range(4))))


def vote(pooled, shares, heads):
    return sum(share * head(x) for share, head, x in zip(shares.softmax(0), heads, pooled))


class EfficientViM(nn.Module):
    LAST = ('heads.', 'heads_dist.')  # The layers that tell the classes apart.

    def __init__(self, num_classes, widths, depths, states, distilled):
        super().__init__()
        self.patch_embed = patch_embed(widths[0])
        self.stages = nn.ModuleList(map(Stage, widths, depths, states, (*widths[1:], None)))
        widths = (*widths, widths[2])
        self.norm = nn.ModuleList(map(nn.LayerNorm, widths))
        for name in ('', '_dist')[:1 + distilled]:
            self.register_parameter(f'weights{name}', nn.Parameter(torch.zeros(4)))
            self.add_module(f'heads{name}', nn.ModuleList(
                nn.Linear(width, num_classes) for width in widths))
        self.distilled = distilled
        self.apply(initialise)

    def run_stages(self, images):
        """Returns the maps, at strides 16, 32 and 64, and the hidden states of the three stages."""
        x, maps, hidden = self.patch_embed(images), [], []
        for stage in self.stages:
            x, h = stage(x)
            maps.append(x)
            hidden.append(h)
            if stage.downsample is not None:
                x = stage.downsample(x)
        return maps, hidden

    def features(self, images):
        return self.run_stages(images)[0]

    def forward(self, images):
        """Maps normalised images [N,3,H,W] to logits [N,num_classes]."""
        maps, hidden = self.run_stages(images)
        pooled = [norm(x.transpose(1, 2)).mean(dim=1)
                  for norm, x in zip(self.norm, [*hidden, maps[-1].flatten(2)])]
        logits = vote(pooled, self.weights, self.heads)
        if not self.distilled:
            return logits
        return (logits + vote(pooled, self.weights_dist, self.heads_dist)) / 2
