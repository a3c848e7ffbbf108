"""UperNet (arXiv 1807.10221): a map of classes from the four maps of a backbone.

The module names are the checkpoint's keys.
"""

import torch
import torch.nn.functional as F
from torch import nn

from pyramid import ConvModule, make_backbone

POOLS = (1, 2, 3, 6)  # Bins per side.


def resize(x, size):
    return F.interpolate(x, size=tuple(size), mode='bilinear', align_corners=False)


class DecodeHead(nn.Module):
    """Maps with `widths` channels at strides 4 to 32 become logits at stride 4."""

    def __init__(self, widths, channels, classes):
        super().__init__()

        def module(channels_in, kernel):
            return ConvModule(channels_in, channels, kernel, norm=True, relu=True)

        self.psp_modules = nn.ModuleList(
            nn.Sequential(nn.AdaptiveAvgPool2d(side), module(widths[3], 1)) for side in POOLS)
        self.bottleneck = module(widths[3] + len(POOLS) * channels, 3)
        self.lateral_convs = nn.ModuleList(module(width, 1) for width in widths[:3])
        self.fpn_convs = nn.ModuleList(module(channels, 3) for _ in range(3))
        self.fpn_bottleneck = module(4 * channels, 3)
        self.conv_seg = nn.Conv2d(channels, classes, 1)

    def pool(self, x):
        pooled = [resize(pool(x), x.shape[2:]) for pool in self.psp_modules]
        return self.bottleneck(torch.cat([x, *pooled], dim=1))

    def feature(self, maps):
        laterals = [conv(x) for conv, x in zip(self.lateral_convs, maps)] + [self.pool(maps[3])]
        for i in (3, 2, 1):
            laterals[i - 1] = laterals[i - 1] + resize(laterals[i], laterals[i - 1].shape[2:])
        outs = [conv(x) for conv, x in zip(self.fpn_convs, laterals)] + [laterals[3]]
        outs = [outs[0]] + [resize(x, outs[0].shape[2:]) for x in outs[1:]]
        return self.fpn_bottleneck(torch.cat(outs, dim=1))

    def forward(self, maps):
        return self.conv_seg(self.feature(maps))


def class_map(logits, input_size, picture_size):
    """Converts logits [N,C,h,w] to the classes [N,H,W] of a picture's pixels. The logits are
    resized twice: to the network's input, then to the picture.
    """
    logits = resize(logits, input_size)
    if tuple(input_size) != tuple(picture_size):
        logits = resize(logits, picture_size)
    return logits.argmax(dim=1)


def windows_of(size, crop, stride):
    """Returns (y1, x1, y2, x2) of each window over a picture of `size`, row by row.

    All arguments are (height, width). The last window of a row or a column is moved inwards, and no
    window is larger than the picture, as in mmsegmentation's mode "slide".
    """
    starts = [[min(i * step, max(side - window, 0))
               for i in range(max(side - window + step - 1, 0) // step + 1)]
              for side, window, step in zip(size, crop, stride)]
    return [(y, x, min(y + crop[0], size[0]), min(x + crop[1], size[1]))
            for y in starts[0] for x in starts[1]]


def slide(logits_of, size, crop, stride):
    """Returns the mean logits [N,C,H,W] of the windows over a picture of `size`.

    `logits_of` takes a window of windows_of() and returns its logits [N,C,h,w].
    """
    total, counts = 0, torch.zeros(size)
    for y1, x1, y2, x2 in windows_of(size, crop, stride):
        logits = resize(logits_of((y1, x1, y2, x2)), (y2 - y1, x2 - x1))
        total = total + F.pad(logits, (x1, size[1] - x2, y1, size[0] - y2))
        counts[y1:y2, x1:x2] += 1
    return total / counts


class Segmenter(nn.Module):
    def __init__(self, backbone, channels, classes):
        super().__init__()
        self.backbone = make_backbone(**backbone)
        self.decode_head = DecodeHead(self.backbone.widths, channels, classes)

    def forward(self, images):
        """Maps normalised images [N,3,H,W] to logits [N,classes,H/4,W/4]."""
        return self.decode_head(self.backbone(images))
