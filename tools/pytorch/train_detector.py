"""Trains a detector on pictures with boxes, and exports it as a folder for the server.

    python train_detector.py --data DATA --out RUN

DATA has annotations.json and images/, or COCO's layout: annotations/instances_train2017.json,
instances_val2017.json, train2017/ and val2017/. Exports of CVAT, Label Studio and Roboflow work,
too. If DATA has no annotations for validation, every fifth picture is held out. If the files are in
other places, use --annotations FILE and --images DIR. Masks are learned if all objects have
polygons or run lengths and the initial model has a mask head. RUN gets checkpoint.pt, log.txt,
curve.png and model/. See training.py for --passes, --minutes, --resume.

Training starts from the default detector, or from any detector, segmenter or classifier that
--initial names, in any layout that tools/convert_checkpoint.py takes.
"""

import argparse
import copy
import dataclasses
import pathlib

import numpy as np
import torch

import coco_files
import dense_training
import detector
import export
import training
import user_errors
from dense_metrics import Precision, box_iou, mask_iou
from dense_pictures import STEP, seen
from detection_loss import detection_loss

PASSES = 2000


class Learner(dense_training.Learner):
    """A detector while it learns."""

    def batch(self, rng, examples):
        """Returns a random batch for detection_loss()."""
        drawn, pictures = self.draw(rng, examples)
        batch = dict(pictures=pictures, boxes=[], labels=[], masks=[])
        for objects, size, place in drawn:
            boxes, shares = place.boxes(objects)
            rows = seen(boxes, shares)
            objects = [objects[i] for i in rows]
            batch['boxes'].append(torch.from_numpy(boxes[rows]))
            batch['labels'].append(torch.tensor([o.label for o in objects], dtype=torch.int64))
            if self.model.config.mask_convs:
                batch['masks'].append(torch.from_numpy(place.masks(objects, size)))
        return batch

    def losses(self, batch):
        with training.precision():
            maps = self.model.backbone(self.input(batch['pictures']))
            return detection_loss(self.model, maps, batch)

    def measure(self, examples):
        """Returns a dict with the AP50 of the boxes and, if the model has a mask head, of the
        masks. The dict is empty if the pictures have no objects.
        """
        config = self.model.config
        found = {kind: Precision(config.classes)
                 for kind in ('box', 'mask')[:2 if config.mask_convs else 1]}
        for picture, objects in examples.all(dense_training.HELD_OUT):
            images, place = self.served(picture, STEP)
            size = place.size[::-1]
            [(boxes, scores, labels, masks)] = self.model(images, [size])
            true_boxes, true_labels = place.boxes(objects)[0], [o.label for o in objects]
            answer = scores.numpy(), labels.numpy(), np.array(true_labels, np.int64)
            found['box'].add(box_iou(boxes.numpy(), true_boxes), *answer)
            if masks is not None:
                pasted = detector.paste(masks, boxes, size, config.mask_threshold).numpy()
                found['mask'].add(mask_iou(pasted, place.masks(objects, picture.size)), *answer)
        means = {kind: precision.mean() for kind, precision in found.items()}
        return {f'{kind}_ap50': round(mean, 4) for kind, mean in means.items() if mean is not None}


def figures(learner, held_out):
    """Returns learner.measure() of the held-out pictures. A copy of the learner on the CPU computes
    it, because measure() keeps the pictures in CPU memory.
    """
    learner = copy.deepcopy(learner).cpu().eval()
    with torch.inference_mode(), torch.device('cpu'):
        return learner.measure(held_out)


def masks_of(entries, config):
    """Returns `config`. If an object has no mask, returns a copy that is without a mask head, and
    prints the reason.
    """
    missing = sum(not o.outline for entry in entries for o in entry.objects)
    if config.mask_convs and missing:
        print(f'boxes alone: {missing} objects have no mask')
        return dataclasses.replace(config, mask_convs=0)
    return config


def train(args):
    torch.manual_seed(args.seed)
    notes = []
    entries, held_out, labels = coco_files.open_coco(args.data, args.annotations, args.images,
                                                     notes.append)
    dense_training.check_resumed(args, labels)
    start = dense_training.open_start(args, 'DETECTION')
    config = masks_of(entries + (held_out or []),
                      dataclasses.replace(start.detector, classes=len(labels)))
    learnt, kept = dense_training.open_examples(entries, held_out)
    taught = {o.label for entry in learnt.entries for o in entry.objects}
    untaught = [label for k, label in enumerate(labels) if k not in taught]
    if untaught:
        notes.append('cannot be learned, as no picture to learn from has them: '
                     f'{", ".join(untaught)}')
    for note in notes:
        print(note)
    model = detector.Detector(start.backbone, config)
    dense_training.load(model, start, labels)
    learner = Learner(model, start).to(memory_format=torch.channels_last)
    groups = training.parameter_groups(learner, None, dense_training.WEIGHT_DECAY,
                                       dense_training.rate_of)
    run = training.Run(args, learner, groups, dict(labels=labels),
                       lambda averaged: figures(averaged, kept))
    place = training.device()
    torch.set_default_device(place)  # For the tensors that detection_loss() makes.
    for rng in run.steps():
        batch = {name: [x.to(place) for x in value] if isinstance(value, list) else value.to(place)
                 for name, value in learner.batch(rng, learnt).items()}
        run.learn(learner.losses(batch), dense_training.BATCH)
    dense_training.finish(args, run, start, 'DETECTION', labels, export.detector_text(config),
                          kept, notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', type=pathlib.Path,
                        help='folder in a layout named above; default: that of --annotations')
    parser.add_argument('--annotations', type=pathlib.Path, metavar='FILE',
                        help="COCO's json, in place of the one that --data has")
    parser.add_argument('--images', type=pathlib.Path, metavar='DIR',
                        help='the folder that the names of pictures begin in')
    dense_training.add_arguments(parser, 'everyday_detector', PASSES)
    args = parser.parse_args()
    if not args.data and not args.annotations:
        parser.error('--data or --annotations is required')
    args.data = args.data or args.annotations.parent
    dense_training.run(train, args)


if __name__ == '__main__':
    user_errors.run('train_detector', main)
