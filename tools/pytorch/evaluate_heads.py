"""Measures the detector and the segmenter on scenes of held-out objects and backgrounds.

    python evaluate_heads.py --models ../../models --version 1 --cutouts CUTOUTS

Prints COCO's average precision of boxes and masks (pycocotools), that of each class at
IoU 0.5, and the segmenter's mean IoU over the classes.
"""

import argparse
import contextlib
import io
import pathlib

import numpy as np
import safetensors.torch
import torch
from pycocotools import mask as rle
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import compose
import detector
import export_heads
import scenes
import train_heads
import upernet
from train_classifier import normalise


def load_models(models, version):
    """The exported detector and segmenter, in fp32, and the classes of the former."""
    folders = [models / name / str(version)
               for name in (export_heads.DETECTOR_ID, export_heads.SEGMENTER_ID)]
    labels = (folders[0] / 'labels.txt').read_text(encoding='utf-8').splitlines()
    config = detector.Config(classes=len(labels), **train_heads.DETECTOR)
    pair = (detector.Detector(train_heads.BACKBONE, config),
            upernet.Segmenter(train_heads.BACKBONE, train_heads.SEGMENTER_CHANNELS,
                              len(labels) + 1))
    for folder, model in zip(folders, pair):
        tensors = safetensors.torch.load_file(folder / 'model.safetensors')
        missing, unexpected = model.load_state_dict(
            {key: value.float() for key, value in tensors.items()}, strict=False)
        missing = [key for key in missing if not key.endswith('num_batches_tracked')]
        if missing or unexpected:
            raise ValueError(f'{folder}: missing {missing}, unexpected {unexpected}')
        model.eval()
    return *pair, labels


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


def detections(model, held_out):
    rows = []
    for image, scene in enumerate(held_out, 1):
        shape = scene.picture.shape[:2]
        [(boxes, scores, labels, masks)] = model(
            normalise(torch.from_numpy(scene.picture[None])), [shape])
        pasted = detector.paste(masks, boxes, shape, model.config.mask_threshold)
        for box, score, label, mask in zip(boxes, scores, labels, pasted):
            rows.append(dict(image_id=image, category_id=label.item(), bbox=xywh(box),
                             score=score.item(), segmentation=encode(mask.numpy())))
    return rows


def average_precision(coco, rows, kind):
    """AP over IoU 0.5..0.95, AP at 0.5, and the latter of each class."""
    evaluation = COCOeval(coco, coco.loadRes(rows), kind)
    evaluation.evaluate()
    evaluation.accumulate()
    precision = evaluation.eval['precision'][:, :, :, 0, 2]  # [IoU, recall, class]
    mean = [p[p > -1].mean() if (p > -1).any() else 0 for p in (precision, precision[0])]
    return *mean, precision[0].mean(axis=0)


def class_iou(model, held_out, classes):
    """IoU of each class, background first, and the share of right pixels."""
    confusion = np.zeros((classes, classes), np.int64)
    for scene in held_out:
        shape = scene.picture.shape[:2]
        got = upernet.class_map(model(normalise(torch.from_numpy(scene.picture[None]))), shape,
                                shape)[0].numpy()
        valid = scene.class_map != scenes.IGNORE
        np.add.at(confusion, (scene.class_map[valid], got[valid]), 1)
    hit = confusion.diagonal()
    return hit / (confusion.sum(0) + confusion.sum(1) - hit), hit.sum() / confusion.sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--models', type=pathlib.Path, required=True)
    parser.add_argument('--version', type=int, required=True)
    parser.add_argument('--cutouts', type=pathlib.Path, required=True)
    parser.add_argument('--split', default='test')
    parser.add_argument('--scenes', type=int, default=240)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, segmenter, labels = load_models(args.models, args.version)
    photos = compose.load_photos('test')
    held_out = scenes.test_set(compose.load_cutouts(args.cutouts, args.split), labels, photos,
                               train_heads.SHORT, args.scenes)
    with torch.inference_mode(), contextlib.redirect_stdout(io.StringIO()):
        coco = ground_truth(held_out, labels)
        rows = detections(model, held_out)
        box, mask = (average_precision(coco, rows, kind) for kind in ('bbox', 'segm'))
        iou, right = class_iou(segmenter, held_out, len(labels) + 1)
    objects = np.concatenate([s.labels for s in held_out])
    print(f'{len(held_out)} scenes, {len(objects)} objects: box AP {box[0]:.1%}, AP50 {box[1]:.1%};'
          f' mask AP {mask[0]:.1%}, AP50 {mask[1]:.1%};'
          f' mIoU {iou.mean():.1%} (background {iou[0]:.1%}), pixels {right:.1%}')
    for k, name in enumerate(labels):
        print(f'| {name} | {np.count_nonzero(objects == k)} | {box[2][k]:.0%} | {mask[2][k]:.0%} |'
              f' {iou[k + 1]:.0%} |')


if __name__ == '__main__':
    main()
