"""Mask R-CNN (arXiv 1703.06870) and its cascade (1712.00726) on a pyramid of features.

The module names are the checkpoint's keys. Boxes are x1, y1, x2, y2 in pixels of the
network's input, continuous and half-open; a RoI is an image's index and a box. Letters:
N images, n RoIs, C classes without the background, which is index C.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from pyramid import ConvModule, make_backbone

STRIDES = (4, 8, 16, 32, 64)  # Only the proposals use the last one.
MAX_LOG_SCALE = abs(math.log(16 / 1000))


@dataclasses.dataclass
class Config:
    classes: int = 80
    channels: int = 256      # The channels of the pyramid and the heads.
    box_stages: int = 3      # 3: the cascade; 1: Mask R-CNN.
    box_convs: int = 4
    box_fcs: int = 1
    fc_width: int = 1024
    mask_convs: int = 4      # 0: no masks, Faster R-CNN.
    anchor_scale: float = 8  # Side of the square anchor, in strides.
    anchor_ratios: tuple = (0.5, 1.0, 2.0)  # Height / width.
    rpn_candidates: int = 1000  # Per level.
    rpn_iou: float = 0.7
    proposals: int = 1000       # Per image.
    finest_scale: float = 56    # In pixels. Level 1 begins at twice this side.
    box_roi: int = 7
    mask_roi: int = 14
    box_stds: tuple = ((0.1, 0.1, 0.2, 0.2), (0.05, 0.05, 0.1, 0.1), (0.033, 0.033, 0.067, 0.067))
    score_threshold: float = 0.05
    nms_iou: float = 0.5
    max_detections: int = 100
    mask_threshold: float = 0.5


# Boxes.

def anchors(config, sizes):
    """Returns the anchors of each level, [h*w*ratios, 4], in the order y, x, ratio."""
    result = []
    for stride, (h, w) in zip(STRIDES, sizes):
        side = config.anchor_scale * stride
        halves = torch.tensor([[side / math.sqrt(r), side * math.sqrt(r)]
                               for r in config.anchor_ratios]) / 2
        y, x = torch.meshgrid(torch.arange(h) * stride, torch.arange(w) * stride, indexing='ij')
        centres = torch.stack([x, y], dim=-1).view(-1, 1, 2).float()
        result.append(torch.cat([centres - halves, centres + halves], dim=-1).view(-1, 4))
    return result


def encode(boxes, targets, stds):
    """Returns the deltas that take `boxes` to `targets`, both [n,4]."""
    sizes, wanted = boxes[:, 2:] - boxes[:, :2], targets[:, 2:] - targets[:, :2]
    shift = (targets[:, :2] + targets[:, 2:] - boxes[:, :2] - boxes[:, 2:]) / 2 / sizes
    return torch.cat([shift, torch.log(wanted / sizes)], dim=1) / torch.tensor(stds)


def decode(boxes, deltas, stds, shape):
    """Moves boxes [n,4] by deltas [n,4k] and clips them to `shape` = (height, width). Returns
    [n,4k]."""
    deltas = deltas.view(len(boxes), -1, 4) * torch.tensor(stds)
    centres = ((boxes[:, :2] + boxes[:, 2:]) / 2)[:, None]
    sizes = (boxes[:, 2:] - boxes[:, :2])[:, None]
    centres = centres + sizes * deltas[..., :2]
    halves = sizes * deltas[..., 2:].clamp(-MAX_LOG_SCALE, MAX_LOG_SCALE).exp() / 2
    high = torch.tensor([shape[1], shape[0]], dtype=torch.float32)
    low_corner = (centres - halves).clamp(min=0).minimum(high)
    high_corner = (centres + halves).clamp(min=0).minimum(high)
    return torch.cat([low_corner, high_corner], dim=-1).view(len(boxes), -1)


def grouped_nms(boxes, scores, groups, iou):
    """Returns the indices of the boxes that non-maximum suppression (NMS) keeps, best first.

    Before NMS, the boxes of each group are shifted to another place, so that groups do not overlap.
    The shift must be in float32, because it rounds coordinates, and this rounding is part of the
    definition in docs/heads.md.
    """
    if not len(boxes):
        return torch.empty(0, dtype=torch.int64)
    shift = groups.to(boxes) * (boxes.max() + 1)
    return torchvision.ops.nms(boxes + shift[:, None], scores, iou)


# Layers.

class FeaturePyramid(nn.Module):
    """Converts maps of `widths` channels at strides 4 to 32 to maps at strides 4 to 64."""

    def __init__(self, widths, channels):
        super().__init__()
        self.lateral_convs = nn.ModuleList(ConvModule(width, channels, 1) for width in widths)
        self.fpn_convs = nn.ModuleList(ConvModule(channels, channels, 3) for _ in widths)

    def forward(self, maps):
        x = [conv(m) for conv, m in zip(self.lateral_convs, maps)]
        for i in (3, 2, 1):
            x[i - 1] = x[i - 1] + F.interpolate(x[i], size=x[i - 1].shape[2:], mode='nearest')
        x = [conv(m) for conv, m in zip(self.fpn_convs, x)]
        return x + [x[3][:, :, ::2, ::2]]


class ProposalHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        ratios = len(config.anchor_ratios)
        self.config = config
        self.rpn_conv = nn.Conv2d(config.channels, config.channels, 3, padding=1)
        self.rpn_cls = nn.Conv2d(config.channels, ratios, 1)
        self.rpn_reg = nn.Conv2d(config.channels, 4 * ratios, 1)
        for layer in (self.rpn_conv, self.rpn_cls, self.rpn_reg):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, levels):
        """Returns (logits [N,anchors], deltas [N,anchors,4]) by level, in the order of the
        anchors."""
        hidden = [F.relu(self.rpn_conv(x)) for x in levels]
        logits = [self.rpn_cls(x).permute(0, 2, 3, 1).flatten(1) for x in hidden]
        deltas = [self.rpn_reg(x).permute(0, 2, 3, 1).reshape(len(x), -1, 4) for x in hidden]
        return logits, deltas

    def propose(self, image, logits, deltas, level_anchors, shape):
        """Returns (boxes [n,4], scores [n]) of the proposals in one image of the batch, best
        first."""
        boxes, scores, levels = [], [], []
        for level, (l, d, a) in enumerate(zip(logits, deltas, level_anchors)):
            score, order = l[image].sigmoid().sort(descending=True, stable=True)
            order = order[:self.config.rpn_candidates]
            boxes.append(decode(a[order], d[image][order], (1.0,) * 4, shape))
            scores.append(score[:self.config.rpn_candidates])
            levels.append(torch.full((len(order),), level))
        boxes, scores, levels = torch.cat(boxes), torch.cat(scores), torch.cat(levels)
        valid = ((boxes[:, 2:] - boxes[:, :2]) > 0).all(dim=1)
        boxes, scores, levels = boxes[valid], scores[valid], levels[valid]
        keep = grouped_nms(boxes, scores, levels, self.config.rpn_iou)[:self.config.proposals]
        return boxes[keep], scores[keep]


class BoxHead(nn.Module):
    """Maps RoI features [n,channels,7,7] to class logits [n,C+1] and deltas [n,4C]."""

    def __init__(self, config):
        super().__init__()
        self.shared_convs = nn.ModuleList(
            ConvModule(config.channels, config.channels, 3, norm=True, relu=True)
            for _ in range(config.box_convs))
        widths = [config.channels * config.box_roi**2] + [config.fc_width] * config.box_fcs
        self.shared_fcs = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.fc_cls = nn.Linear(widths[-1], config.classes + 1)
        self.fc_reg = nn.Linear(widths[-1], 4 * config.classes)
        nn.init.normal_(self.fc_cls.weight, std=0.01)
        nn.init.normal_(self.fc_reg.weight, std=0.001)

    def forward(self, x):
        for conv in self.shared_convs:
            x = conv(x)
        x = x.flatten(1)
        for fc in self.shared_fcs:
            x = F.relu(fc(x))
        return self.fc_cls(x), self.fc_reg(x)


class MaskHead(nn.Module):
    """Maps RoI features [n,channels,14,14] to mask logits [n,C,28,28]."""

    def __init__(self, config):
        super().__init__()
        self.convs = nn.ModuleList(ConvModule(config.channels, config.channels, 3, relu=True)
                                   for _ in range(config.mask_convs))
        self.upsample = nn.ConvTranspose2d(config.channels, config.channels, 2, 2)
        self.conv_logits = nn.Conv2d(config.channels, config.classes, 1)

    def forward(self, x):
        for conv in self.convs:
            x = conv(x)
        return self.conv_logits(F.relu(self.upsample(x)))


class RoIHead(nn.Module):
    """The box heads and mask heads of all stages. If there is only one stage, the keys have no
    index."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        stages = config.box_stages
        self.bbox_head = BoxHead(config) if stages == 1 else \
            nn.ModuleList(BoxHead(config) for _ in range(stages))
        if config.mask_convs:
            self.mask_head = MaskHead(config) if stages == 1 else \
                nn.ModuleList(MaskHead(config) for _ in range(stages))

    def box_heads(self):
        return [self.bbox_head] if self.config.box_stages == 1 else list(self.bbox_head)

    def mask_heads(self):
        return [self.mask_head] if self.config.box_stages == 1 else list(self.mask_head)

    def extract(self, levels, rois, side):
        """Returns the features [n,channels,side,side] of RoIs [n,5]. Each RoI is read from the
        level for its size.
        """
        w, h = rois[:, 3] - rois[:, 1], rois[:, 4] - rois[:, 2]
        of = torch.floor(torch.log2(torch.sqrt(w * h) / self.config.finest_scale + 1e-6))
        of = of.clamp(0, 3).long()
        out = levels[0].new_zeros(len(rois), levels[0].shape[1], side, side)
        for i in range(4):
            rows = (of == i).nonzero().squeeze(1)
            if len(rows):
                crops = torchvision.ops.roi_align(levels[i], rois[rows], side, 1 / STRIDES[i],
                                                  sampling_ratio=0, aligned=True)
                out = out.index_copy(0, rows, crops)
        return out

    def boxes(self, levels, rois, shapes):
        """Returns (final boxes [n,4C], class logits [n,C+1]) of RoIs [n,5]."""
        config, total = self.config, 0
        for stage, head in enumerate(self.box_heads()):
            logits, deltas = head(self.extract(levels, rois, config.box_roi))
            total = total + logits
            if stage + 1 < config.box_stages:
                label = logits[:, :-1].argmax(dim=1)
                deltas = deltas.view(len(rois), -1, 4)[torch.arange(len(rois)), label]
            boxes = torch.empty_like(deltas)
            for image, shape in enumerate(shapes):
                rows = rois[:, 0] == image
                boxes[rows] = decode(rois[rows, 1:], deltas[rows], config.box_stds[stage], shape)
            if stage + 1 < config.box_stages:
                rois = torch.cat([rois[:, :1], boxes], dim=1)
        return boxes, total / config.box_stages

    def detect(self, boxes, probabilities):
        """Returns the best (boxes [n,4], scores [n], labels [n]) of one image."""
        scores = probabilities[:, :-1].flatten()
        boxes = boxes.reshape(-1, 4)
        labels = torch.arange(self.config.classes).repeat(len(probabilities))
        valid = scores > self.config.score_threshold
        boxes, scores, labels = boxes[valid], scores[valid], labels[valid]
        keep = grouped_nms(boxes, scores, labels, self.config.nms_iou)[:self.config.max_detections]
        return boxes[keep], scores[keep], labels[keep]

    def masks(self, levels, rois, labels):
        """Returns the mask probabilities [n,28,28] of each RoI, for its label."""
        x = self.extract(levels, rois, self.config.mask_roi)
        rows = torch.arange(len(rois))
        return sum(head(x)[rows, labels].sigmoid() for head in self.mask_heads()) / \
            self.config.box_stages


def paste(probabilities, boxes, size, threshold):
    """Pastes masks [n,28,28] into their boxes on a picture of `size` = (H, W). Returns bool
    [n,H,W]."""
    H, W = size
    x1, y1, x2, y2 = (boxes[:, i, None] for i in range(4))
    u = (torch.arange(W) + 0.5 - x1) / (x2 - x1) * 2 - 1
    v = (torch.arange(H) + 0.5 - y1) / (y2 - y1) * 2 - 1
    grid = torch.stack([u[:, None].expand(-1, H, -1), v[:, :, None].expand(-1, -1, W)], dim=-1)
    pasted = F.grid_sample(probabilities[:, None], grid, align_corners=False)[:, 0]
    return (pasted >= threshold) & ((x2 > x1) & (y2 > y1))[..., None]


class DetectionHeads(nn.Module):
    """All layers except the backbone, whose maps have `widths` channels."""

    def __init__(self, widths, config):
        super().__init__()
        self.config = config
        self.neck = FeaturePyramid(widths, config.channels)
        self.rpn_head = ProposalHead(config)
        self.roi_head = RoIHead(config)

    def detect(self, maps, shapes):
        """Returns (boxes, scores, labels, mask probabilities or None) of each image. The boxes are
        in pixels of the network's input, not of the original picture."""
        levels = self.neck(maps)
        level_anchors = anchors(self.config, [x.shape[2:] for x in levels])
        logits, deltas = self.rpn_head(levels)
        rois = []
        for image, shape in enumerate(shapes):
            boxes, _ = self.rpn_head.propose(image, logits, deltas, level_anchors, shape)
            rois.append(F.pad(boxes, (1, 0), value=image))
        rois = torch.cat(rois)
        boxes, logits = self.roi_head.boxes(levels, rois, shapes)
        probabilities, results = logits.softmax(dim=1), []
        for image in range(len(shapes)):
            rows = rois[:, 0] == image
            best, scores, labels = self.roi_head.detect(boxes[rows], probabilities[rows])
            masks = self.roi_head.masks(levels, F.pad(best, (1, 0), value=image), labels) \
                if self.config.mask_convs else None
            results.append((best, scores, labels, masks))
        return results


class Detector(DetectionHeads):
    def __init__(self, backbone, config):
        backbone = make_backbone(**backbone)
        super().__init__(backbone.widths, config)
        self.backbone = backbone

    def forward(self, images, shapes):
        """Detects objects in normalised, padded images [N,3,H,W]. `shapes` are their sizes without
        padding."""
        return self.detect(self.backbone(images), shapes)
