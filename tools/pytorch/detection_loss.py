"""The losses of a detector. Anchors and RoIs are matched to the objects of a picture.

They are defined by Faster R-CNN (arXiv 1506.01497), Mask R-CNN (1703.06870) and its cascade
(1712.00726).
"""

import torch
import torch.nn.functional as F
import torchvision

import detector

RPN_POSITIVE, RPN_NEGATIVE, RPN_SAMPLES = 0.7, 0.3, 256
ROI_SAMPLES, ROI_SHARE = 64, 0.25  # The largest fraction of positive RoIs.
# For each box stage: the smallest IoU at which a RoI shows an object, and the weight of the losses.
STAGE_IOUS, STAGE_WEIGHTS = (0.5, 0.6, 0.7), (1, 0.5, 0.25)
MASK_SIDE = 28


def sample(rows, count):
    return rows[torch.randperm(len(rows))[:count]]


def match_anchors(anchors, boxes):
    """Returns (rows of positive anchors, the object of each, rows of negative anchors)."""
    if not len(boxes):
        return *torch.empty(2, 0, dtype=torch.int64), torch.arange(len(anchors))
    iou = torchvision.ops.box_iou(anchors, boxes)
    best, of = iou.max(dim=1)
    positive = best >= RPN_POSITIVE
    # The best anchors of an object are also positive if their IoU is less than RPN_POSITIVE, but at
    # least RPN_NEGATIVE.
    top = iou.max(dim=0).values
    rows, objects = ((iou == top) & (top >= RPN_NEGATIVE)).nonzero(as_tuple=True)
    positive[rows] = True
    of[rows] = objects
    rows = positive.nonzero().squeeze(1)
    return rows, of[rows], (~positive & (best < RPN_NEGATIVE)).nonzero().squeeze(1)


def proposal_loss(logits, deltas, anchors, targets):
    """Returns (objectness loss, box loss) of the proposals. logits is [N,A], and deltas is
    [N,A,4]."""
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
    """Returns (RoIs [n,4], their labels, the objects of the positive ones). Positive RoIs come
    first. The others have the label of the background, `classes`."""
    proposals = torch.cat([boxes, proposals])  # The objects' own boxes are RoIs, too.
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
    """Returns (RoIs [n,5] of all images, labels [n], deltas [p,4], masks [p,28,28] or None). Deltas
    and masks are only for the p RoIs that have an object."""
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
    """Returns (a dict of a box stage's losses on stage_samples(), class logits, deltas [n,C,4])."""
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
    """Moves a box stage's RoIs by its deltas. Returns the boxes [n,4] of each image, for the next
    stage."""
    rows = torch.arange(len(rois))
    moves = moves[rows, scores[:, :-1].argmax(dim=1)]
    boxes = detector.decode(rois[:, 1:], moves, config.box_stds[stage], shape)
    valid = ((boxes[:, 2:] - boxes[:, :2]) > 0).all(dim=1)
    return [boxes[valid & (rois[:, 0] == image)] for image in range(images)]


def detection_loss(heads, maps, batch):
    """Returns a dict of the losses of a batch on the backbone's maps. The batch has pictures
    [N,H,W,3]. For each of them it has boxes [n,4], labels [n] and, with a mask head, masks [n,H,W].
    """
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
