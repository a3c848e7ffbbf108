"""Measures the detector and the segmenter on scenes of held-out objects and backgrounds.

    python evaluate_heads.py --models ../../models --version 1 --cutouts CUTOUTS

Prints COCO's average precision of boxes and masks (pycocotools), that of each class at
IoU 0.5, and the segmenter's mean IoU over the classes.
"""

import argparse
import pathlib

import numpy as np
import safetensors.torch
import torch

import compose
import configs
import detector
import export
import metrics
import scenes
import upernet


def load_models(models, version):
    """The exported detector and segmenter, in fp32, and the classes of the former."""
    folders = [models / name / str(version)
               for name in (export.DETECTOR_ID, export.SEGMENTER_ID)]
    labels = (folders[0] / 'labels.txt').read_text(encoding='utf-8').splitlines()
    config = detector.Config(classes=len(labels), **configs.DETECTOR)
    pair = (detector.Detector(configs.BACKBONE, config),
            upernet.Segmenter(configs.BACKBONE, configs.SEGMENTER_CHANNELS,
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
                               configs.SHORT, args.scenes)
    (box, mask), (iou, right) = metrics.measure(model, segmenter, held_out, labels)
    objects = np.concatenate([s.labels for s in held_out])
    print(f'{len(held_out)} scenes, {len(objects)} objects: box AP {box[0]:.1%}, AP50 {box[1]:.1%};'
          f' mask AP {mask[0]:.1%}, AP50 {mask[1]:.1%};'
          f' mIoU {iou.mean():.1%} (background {iou[0]:.1%}), pixels {right:.1%}')
    for k, name in enumerate(labels):
        print(f'| {name} | {np.count_nonzero(objects == k)} | {box[2][k]:.0%} | {mask[2][k]:.0%} |'
              f' {iou[k + 1]:.0%} |')


if __name__ == '__main__':
    main()
