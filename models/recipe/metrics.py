"""COCO's average precision and the mean IoU of dense models on composed scenes."""

import contextlib
import io

import numpy as np
import torch
from pycocotools import mask as rle
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import detector
import scenes
import upernet
from train_classifier import normalise


def image_of(scene):
    return normalise(torch.from_numpy(scene.picture[None]))


def encode(mask):
    return rle.encode(np.asfortranarray(mask, dtype=np.uint8))


def xywh(box):
    return [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])]


def ground_truth(held_out, labels):
    annotations = []
    for image, scene in enumerate(held_out, 1):
        for box, label, mask in zip(scene.boxes, scene.labels, scene.masks):
            annotations.append(dict(id=len(annotations) + 1, image_id=image, iscrowd=0,
                                    category_id=int(label), bbox=xywh(box),
                                    area=float(mask.sum()), segmentation=encode(mask)))
    coco = COCO()
    images = [dict(id=i, height=s.picture.shape[0], width=s.picture.shape[1])
              for i, s in enumerate(held_out, 1)]
    coco.dataset = dict(images=images, annotations=annotations,
                        categories=[dict(id=k, name=name) for k, name in enumerate(labels)])
    coco.createIndex()
    return coco


def detections(detect, held_out, threshold=0.5):
    """Returns what detect(images, shapes) finds in the scenes, as rows of COCO's results."""
    rows = []
    for image, scene in enumerate(held_out, 1):
        shape = scene.picture.shape[:2]
        [(boxes, scores, labels, masks)] = detect(image_of(scene), [shape])
        pasted = detector.paste(masks, boxes, shape, threshold)
        for box, score, label, mask in zip(boxes, scores, labels, pasted):
            rows.append(dict(image_id=image, category_id=label.item(), bbox=xywh(box),
                             score=score.item(), segmentation=encode(mask.numpy())))
    return rows


def average_precision(coco, rows, kind):
    """Returns the AP over IoU 0.5 to 0.95, the AP at IoU 0.5, and the AP of each class at IoU
    0.5."""
    if not rows:
        return 0, 0, np.zeros(len(coco.dataset['categories']))
    evaluation = COCOeval(coco, coco.loadRes(rows), kind)
    evaluation.evaluate()
    evaluation.accumulate()
    precision = evaluation.eval['precision'][:, :, :, 0, 2]  # [IoU, recall, class]
    mean = [p[p > -1].mean() if (p > -1).any() else 0 for p in (precision, precision[0])]
    return *mean, precision[0].mean(axis=0)


def class_iou(segment, held_out, classes):
    """Returns the IoU of each class (the background comes first) and the share of right pixels."""
    confusion = np.zeros((classes, classes), np.int64)
    for scene in held_out:
        shape = scene.picture.shape[:2]
        got = upernet.class_map(segment(image_of(scene)), shape, shape)[0].numpy()
        valid = scene.class_map != scenes.IGNORE
        np.add.at(confusion, (scene.class_map[valid], got[valid]), 1)
    hit = confusion.diagonal()
    union = confusion.sum(0) + confusion.sum(1) - hit
    return hit / np.maximum(union, 1), hit.sum() / confusion.sum()


def measure(detect, segment, held_out, labels):
    """Returns (precisions, iou).

    `precisions` has the results of average_precision() for the boxes and for the masks of `detect`.
    It is None if `detect` is None. `iou` is the result of class_iou() for `segment`, or None if
    `segment` is None.
    """
    precisions = iou = None
    with torch.inference_mode(), contextlib.redirect_stdout(io.StringIO()):
        if detect:
            coco, rows = ground_truth(held_out, labels), detections(detect, held_out)
            precisions = [average_precision(coco, rows, kind) for kind in ('bbox', 'segm')]
        if segment:
            iou = class_iou(segment, held_out, len(labels) + 1)
    return precisions, iou
