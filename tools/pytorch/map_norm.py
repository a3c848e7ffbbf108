"""LayerNorm over the channels of each pixel of a map [N,C,H,W]."""

from torch import nn


class MapNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
