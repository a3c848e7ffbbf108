"""VMamba v2 classifiers (arXiv 2401.10166) in plain PyTorch: each map is scanned in four orders.

The module names are the checkpoint's keys, which are the authors'. Letters: N images, C channels,
D scanned channels, each with one state.
"""

import collections
import math

import torch
import torch.nn.functional as F
from torch import nn

from map_norm import MapNorm
from sf_mamba import Mlp, initialise, selective_scan

DIRECTIONS = 4


def scan_orders(height, width, device=None):
    """Returns the four orders of a map's pixels: by rows, by columns, and both in reverse."""
    rows = torch.arange(height * width, device=device)
    columns = rows.view(height, width).T.flatten()
    return rows, columns, rows.flip(0), columns.flip(0)


class SS2D(nn.Module):
    """The scanning mixer of a map [N,H,W,C] (section 4.2). Each direction has its own weights."""

    def __init__(self, width, inner):
        super().__init__()
        self.rank = math.ceil(width / 16)
        self.in_proj = nn.Linear(width, inner, bias=False)
        self.conv2d = nn.Conv2d(inner, inner, 3, padding=1, groups=inner, bias=False)
        self.x_proj_weight = nn.Parameter(
            torch.randn(DIRECTIONS, self.rank + 2, inner) * inner**-0.5)
        self.dt_projs_weight = nn.Parameter(
            torch.empty(DIRECTIONS, inner, self.rank).uniform_(-1, 1) * self.rank**-0.5)
        delta = torch.exp(torch.empty(DIRECTIONS, inner).uniform_(math.log(1e-3), math.log(1e-1)))
        self.dt_projs_bias = nn.Parameter(torch.log(torch.expm1(delta)))
        self.A_logs = nn.Parameter(torch.zeros(DIRECTIONS * inner, 1))
        self.Ds = nn.Parameter(torch.ones(DIRECTIONS * inner))
        self.out_norm = nn.LayerNorm(inner)
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        u = self.conv2d(self.in_proj(x).permute(0, 3, 1, 2))
        size, u = u.shape[2:], F.silu(u).flatten(2).transpose(1, 2)        # [N,L,D]
        y = sum(self.scan(k, u, order)
                for k, order in enumerate(scan_orders(*size, device=u.device)))
        return self.out_proj(self.out_norm(y).unflatten(1, size))

    def scan(self, k, u, order):
        """Scans u [N,L,D] in direction k, which reads the pixels in this order. Returns the result.
        """
        u = u[:, order]
        dt, B, C = F.linear(u, self.x_proj_weight[k]).split([self.rank, 1, 1], dim=-1)
        A = -torch.exp(self.A_logs).unflatten(0, (DIRECTIONS, -1))
        y = selective_scan(u, F.linear(dt, self.dt_projs_weight[k]), A[k], B, C,
                           self.Ds.view(DIRECTIONS, -1)[k], self.dt_projs_bias[k])
        return y[:, order.argsort()]


class Block(nn.Module):
    """A mixer and an MLP. Each reads the residual stream [N,H,W,C] through a LayerNorm and adds to
    it."""

    def __init__(self, width, inner):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.op = SS2D(width, inner)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.op(self.norm(x))
        return x + self.mlp(self.norm2(x))


def numbered(layers):
    """Returns a Sequential whose layers have the numbers that are the keys of the dict `layers`.
    These are the numbers in the authors' Sequential. A missing number is a layer without weights
    that is not needed here.
    """
    return nn.Sequential(collections.OrderedDict((str(i), layer) for i, layer in layers.items()))


def patch_embed(width):
    return numbered({0: nn.Conv2d(3, width // 2, 3, 2, 1), 2: MapNorm(width // 2), 4: nn.GELU(),
                     5: nn.Conv2d(width // 2, width, 3, 2, 1), 7: MapNorm(width)})


class Stage(nn.Module):
    """A stage on maps [N,C,H,W]. forward() does not apply `downsample`. Backbone.features() applies
    it.
    """

    def __init__(self, width, depth, inner, last):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(width, inner) for _ in range(depth)))
        self.downsample = None if last else numbered(
            {1: nn.Conv2d(width, 2 * width, 3, 2, 1), 3: MapNorm(2 * width)})

    def forward(self, x):
        return self.blocks(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Backbone(nn.Module):
    """The network without its head."""

    def __init__(self, dim, depths, ratio):
        """`dim` is the width of the first stage. `ratio` is the scanned channels divided by the
        width."""
        super().__init__()
        self.widths = tuple(dim << i for i in range(4))
        self.patch_embed = patch_embed(dim)
        self.layers = nn.ModuleList(
            Stage(width, depth, int(ratio * width), i == 3)
            for i, (width, depth) in enumerate(zip(self.widths, depths)))
        self.apply(initialise)

    def features(self, images):
        """Maps images [N,3,H,W] to the four stage maps at strides 4, 8, 16 and 32."""
        x, maps = self.patch_embed(images), []
        for stage in self.layers:
            maps.append(stage(x))
            x = maps[-1] if stage.downsample is None else stage.downsample(maps[-1])
        return maps


class VMamba(Backbone):
    LAST = ('classifier.head.',)  # The layers that tell the classes apart.

    def __init__(self, num_classes, **fields):
        super().__init__(**fields)
        self.classifier = nn.ModuleDict(dict(norm=MapNorm(self.widths[3]),
                                             head=nn.Linear(self.widths[3], num_classes)))
        self.classifier.apply(initialise)

    def forward(self, images):
        """Maps normalised images [N,3,H,W] to logits [N,num_classes]."""
        x = self.classifier.norm(self.features(images)[-1])
        return self.classifier.head(x.mean(dim=(2, 3)))
