"""What a detector learns from: anchors and RoIs matched to the objects of a scene.

As Faster R-CNN (arXiv 1506.01497), Mask R-CNN (1703.06870) and its cascade (1712.00726) say.
"""

import torch
import torch.nn.functional as F
import torchvision

import detector

RPN_POSITIVE, RPN_NEGATIVE, RPN_SAMPLES = 0.7, 0.3, 256
ROI_SAMPLES, ROI_SHARE = 64, 0.25  # Share of positives, at most.
# Of the box stages: from which IoU on a RoI shows an object, and what a loss counts.
STAGE_IOUS, STAGE_WEIGHTS = (0.5, 0.6, 0.7), (1, 0.5, 0.25)
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


def sample_rois(proposals, boxes, labels, classes, least=STAGE_IOUS[0]):
    """RoIs [n,4] to learn from, their labels (C: background) and, positives first, objects."""
    proposals = torch.cat([boxes, proposals])  # The objects themselves too.
    if not len(boxes):
        rois = sample(proposals, ROI_SAMPLES)
        return rois, torch.full((len(rois),), classes), torch.empty(0, dtype=torch.int64)
    best, of = torchvision.ops.box_iou(proposals, boxes).max(dim=1)
    positive = sample((best >= least).nonzero().squeeze(1), int(ROI_SAMPLES * ROI_SHARE))
    negative = sample((best < least).nonzero().squeeze(1), ROI_SAMPLES - len(positive))
    background = torch.full((len(negative),), classes)
    return (proposals[torch.cat([positive, negative])],
            torch.cat([labels[of[positive]], background]), of[positive])


def stage_samples(proposals, batch, config, stage):
    """RoIs [n,5] of all images, their labels [n], and of those with an object the deltas [p,4]
    to it and, with a mask head, its mask [p,28,28]."""
    rois, labels, goals, masks = [], [], [], []
    for image, (found, boxes, classes) in enumerate(
            zip(proposals, batch['boxes'], batch['labels'])):
        picked, label, objects = sample_rois(found, boxes, classes, config.classes,
                                             STAGE_IOUS[stage])
        rois.append(F.pad(picked, (1, 0), value=image))
        labels.append(label)
        positive = picked[:len(objects)]
        goals.append(detector.encode(positive, boxes[objects], config.box_stds[stage]))
        if config.mask_convs and len(objects):
            crops = F.pad(positive, (1, 0)).clone()
            crops[:, 0] = objects
            masks.append(torchvision.ops.roi_align(
                batch['masks'][image][:, None].float(), crops, MASK_SIDE, aligned=True)[:, 0])
    return (torch.cat(rois), torch.cat(labels), torch.cat(goals),
            torch.cat(masks) if masks else None)


def stage_losses(head, stage, levels, samples):
    """A dict of losses of a box stage on stage_samples(), its class logits and deltas [n,C,4]."""
    rois, labels, goals, masks = samples
    classes = head.config.classes
    scores, moves = head.box_heads()[stage](head.extract(levels, rois, head.config.box_roi))
    moves = moves.view(len(rois), classes, 4)
    positive = labels < classes
    chosen = moves[positive]
    chosen = chosen[torch.arange(len(chosen)), labels[positive]]
    losses = {'class': F.cross_entropy(scores, labels),
              'box': F.smooth_l1_loss(chosen, goals, reduction='sum') / len(labels)}
    if masks is not None:
        out = head.mask_heads()[stage](
            head.extract(levels, rois[positive], head.config.mask_roi))
        out = out[torch.arange(len(out)), labels[positive]]
        losses['mask'] = F.binary_cross_entropy_with_logits(out, (masks >= 0.5).float())
    return losses, scores, moves


def refine(config, stage, rois, scores, moves, shape, images):
    """What a box stage makes of its RoIs, for the next: boxes [n,4] of each image."""
    rows = torch.arange(len(rois))
    moves = moves[rows, scores[:, :-1].argmax(dim=1)]
    boxes = detector.decode(rois[:, 1:], moves, config.box_stds[stage], shape)
    valid = ((boxes[:, 2:] - boxes[:, :2]) > 0).all(dim=1)
    return [boxes[valid & (rois[:, 0] == image)] for image in range(images)]


def detection_loss(heads, maps, batch):
    """A dict of losses of a batch on the backbone's maps: pictures [N,H,W,3], and of each its
    boxes [n,4], labels [n] and, with a mask head, masks [n,H,W]."""
    config, shape = heads.config, batch['pictures'].shape[1:3]
    levels = heads.neck(maps)
    level_anchors = detector.anchors(config, [x.shape[2:] for x in levels])
    logits, deltas = heads.rpn_head(levels)
    losses = {}
    losses['rpn_class'], losses['rpn_box'] = proposal_loss(
        torch.cat(logits, 1), torch.cat(deltas, 1), torch.cat(level_anchors), batch['boxes'])
    images = len(batch['boxes'])
    with torch.no_grad():
        proposals = [heads.rpn_head.propose(image, logits, deltas, level_anchors, shape)[0]
                     for image in range(images)]
    for stage in range(config.box_stages):
        with torch.no_grad():
            samples = stage_samples(proposals, batch, config, stage)
        found, scores, moves = stage_losses(heads.roi_head, stage, levels, samples)
        for name, loss in found.items():
            losses[name] = losses.get(name, 0) + STAGE_WEIGHTS[stage] * loss
        if stage + 1 < config.box_stages:
            with torch.no_grad():
                proposals = refine(config, stage, samples[0], scores, moves, shape, images)
    return losses
