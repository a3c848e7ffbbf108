"""What a detector learns from: anchors and RoIs matched to the objects of a scene.

As Faster R-CNN (arXiv 1506.01497) and Mask R-CNN (1703.06870) say, with one box stage.
"""

import torch
import torch.nn.functional as F
import torchvision

import detector

RPN_POSITIVE, RPN_NEGATIVE, RPN_SAMPLES = 0.7, 0.3, 256
ROI_POSITIVE, ROI_SAMPLES, ROI_SHARE = 0.5, 64, 0.25  # Share of positives, at most.
MASK_SIDE = 28


def sample(rows, count):
    return rows[torch.randperm(len(rows))[:count]]


def match_anchors(anchors, boxes):
    """Rows of positive anchors, the object of each, and rows of negative ones."""
    if not len(boxes):
        return *torch.empty(2, 0, dtype=torch.int64), torch.arange(len(anchors))
    iou = torchvision.ops.box_iou(anchors, boxes)
    best, of = iou.max(dim=1)
    positive = best >= RPN_POSITIVE
    # The best anchors of an object are positive even if they are no good match.
    top = iou.max(dim=0).values
    rows, objects = ((iou == top) & (top >= RPN_NEGATIVE)).nonzero(as_tuple=True)
    positive[rows] = True
    of[rows] = objects
    rows = positive.nonzero().squeeze(1)
    return rows, of[rows], (~positive & (best < RPN_NEGATIVE)).nonzero().squeeze(1)


def proposal_loss(logits, deltas, anchors, targets):
    """Objectness and box loss of the proposals; logits [N,A], deltas [N,A,4]."""
    scores, wanted, moves, goals = [], [], [], []
    for image, boxes in enumerate(targets):
        rows, objects, negative = match_anchors(anchors, boxes)
        picked = torch.randperm(len(rows))[:RPN_SAMPLES // 2]
        rows, objects = rows[picked], objects[picked]
        negative = sample(negative, RPN_SAMPLES - len(rows))
        scores.append(logits[image][torch.cat([rows, negative])])
        wanted += [torch.ones(len(rows)), torch.zeros(len(negative))]
        moves.append(deltas[image][rows])
        goals.append(detector.encode(anchors[rows], boxes[objects], (1.0,) * 4))
    scores, wanted = torch.cat(scores), torch.cat(wanted)
    box = F.l1_loss(torch.cat(moves), torch.cat(goals), reduction='sum') / len(scores)
    return F.binary_cross_entropy_with_logits(scores, wanted), box


def sample_rois(proposals, boxes, labels, classes):
    """RoIs [n,4] to learn from, their labels (C: background) and, positives first, objects."""
    proposals = torch.cat([boxes, proposals])  # The objects themselves too.
    if not len(boxes):
        rois = sample(proposals, ROI_SAMPLES)
        return rois, torch.full((len(rois),), classes), torch.empty(0, dtype=torch.int64)
    best, of = torchvision.ops.box_iou(proposals, boxes).max(dim=1)
    positive = sample((best >= ROI_POSITIVE).nonzero().squeeze(1), int(ROI_SAMPLES * ROI_SHARE))
    negative = sample((best < ROI_POSITIVE).nonzero().squeeze(1), ROI_SAMPLES - len(positive))
    background = torch.full((len(negative),), classes)
    return (proposals[torch.cat([positive, negative])],
            torch.cat([labels[of[positive]], background]), of[positive])


def detection_loss(heads, maps, batch):
    """A dict of losses of a batch (scenes.collate) on the backbone's maps."""
    config, shape = heads.config, batch['pictures'].shape[1:3]
    levels = heads.neck(maps)
    level_anchors = detector.anchors(config, [x.shape[2:] for x in levels])
    logits, deltas = heads.rpn_head(levels)
    losses = {}
    losses['rpn_class'], losses['rpn_box'] = proposal_loss(
        torch.cat(logits, 1), torch.cat(deltas, 1), torch.cat(level_anchors), batch['boxes'])

    rois, labels, goals, mask_rois, masks, mask_labels = [], [], [], [], [], []
    with torch.no_grad():
        for image, (boxes, classes) in enumerate(zip(batch['boxes'], batch['labels'])):
            proposals, _ = heads.rpn_head.propose(image, logits, deltas, level_anchors, shape)
            picked, label, objects = sample_rois(proposals, boxes, classes, config.classes)
            rois.append(F.pad(picked, (1, 0), value=image))
            labels.append(label)
            positive = picked[:len(objects)]
            goals.append(detector.encode(positive, boxes[objects], config.box_stds[0]))
            mask_rois.append(rois[-1][:len(objects)])
            mask_labels.append(label[:len(objects)])
            if len(objects):
                crops = F.pad(positive, (1, 0)).clone()
                crops[:, 0] = objects
                masks.append(torchvision.ops.roi_align(
                    batch['masks'][image][:, None].float(), crops, MASK_SIDE, aligned=True)[:, 0])
    rois, labels, goals = torch.cat(rois), torch.cat(labels), torch.cat(goals)
    mask_rois, mask_labels = torch.cat(mask_rois), torch.cat(mask_labels)

    head = heads.roi_head
    scores, moves = head.bbox_head(head.extract(levels, rois, config.box_roi))
    losses['class'] = F.cross_entropy(scores, labels)
    positive = labels < config.classes
    moves = moves[positive].view(-1, config.classes, 4)
    moves = moves[torch.arange(len(moves)), labels[positive]]
    losses['box'] = F.smooth_l1_loss(moves, goals, reduction='sum') / len(labels)
    if masks:
        out = head.mask_head(head.extract(levels, mask_rois, config.mask_roi))
        out = out[torch.arange(len(out)), mask_labels]
        losses['mask'] = F.binary_cross_entropy_with_logits(out, (torch.cat(masks) >= 0.5).float())
    return losses
