"""Trains a segmenter on pictures with maps of classes, and exports it as a folder for the server.

    python train_segmenter.py --data DATA --out RUN

DATA has images/ and maps/, of which every fifth picture is held out, or ADE20K's layout:
images/{training,validation} and annotations/{training,validation}. A map is a PNG whose pixels are
the numbers of their classes, and 255 is ignored. DATA/labels.txt names the classes, one per line,
including the background. RUN gets checkpoint.pt, log.txt, curve.png and model/. See training.py for
--passes, --minutes, --resume.

Training starts from the default segmenter, or from any segmenter, detector or classifier that
--initial names, in any layout that tools/convert_checkpoint.py takes.
"""

import argparse
import copy
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

import dense_training
import export
import map_classes
import map_files
import training
import upernet
import user_errors
from dense_metrics import MeanIou
from map_classes import IGNORE

PASSES = 2000
POWER = -0.3  # A pixel's weight is its class's frequency to this power.


class Learner(dense_training.Learner):
    """A segmenter while it learns."""

    def __init__(self, model, start, weights):
        super().__init__(model, start)
        self.weights = weights  # The weight of each class in the loss; 0 if not taught.

    def batch(self, rng, examples):
        """Returns a random batch: pictures uint8 [N,H,W,3] and their maps [N,H,W]."""
        drawn, pictures = self.draw(rng, examples)
        maps = [np.array(place.warp(target, IGNORE)) for target, _, place in drawn]
        return pictures, torch.from_numpy(np.stack(maps))

    def losses(self, pictures, maps):
        with training.precision():
            logits = self.model(self.input(pictures))
        maps = maps[:, 2::4, 2::4].long()  # The pixels at the logits' centres.
        if (maps == IGNORE).all():
            return dict(pixels=0 * logits.sum())
        return dict(pixels=F.cross_entropy(logits.float(), maps, self.weights.to(logits.device),
                                           ignore_index=IGNORE),
                    jaccard=dense_training.jaccard_loss(logits, maps))

    def measure(self, examples):
        """Returns a dict with the mean IoU over the taught classes, which are those with training
        pixels. The dict is empty if no pixel of `examples` has a taught class.
        """
        iou = MeanIou(self.model.decode_head.conv_seg.out_channels, IGNORE)
        for picture, target in examples.all(dense_training.HELD_OUT):
            images, place = self.served(picture)
            size = place.size[::-1]
            got = upernet.class_map(self.model(images), size, size)[0]
            iou.add(np.asarray(place.warp(target, IGNORE)), got.numpy())
        mean = iou.mean(self.weights.numpy() > 0)
        return {} if mean is None else dict(miou=round(mean, 4))


def figures(learner, held_out):
    """Returns learner.measure() of the held-out pictures. A copy of the learner on the CPU computes
    it, because measure() keeps the pictures in CPU memory.
    """
    learner = copy.deepcopy(learner).cpu().eval()
    with torch.inference_mode():
        return learner.measure(held_out)


def weights_of(counts):
    """Returns the weight of each class in the loss. It is 0 for a class without pixels. Rare
    classes have larger weights, because most pixels are background.
    """
    taught = counts > 0
    weights = np.where(taught, np.maximum(counts, 1) ** POWER, 0)
    return torch.tensor(weights / weights[taught].mean(), dtype=torch.float32)


def train(args):
    torch.manual_seed(args.seed)
    entries, held_out = map_files.open_maps(args.data, args.zero_is_ignored)
    counts = map_files.counts_of(entries + (held_out or []))
    labels = map_classes.labels_of(args.data, counts)
    learnt, kept = dense_training.open_examples(entries, held_out)
    taught, measured = (sum(counts[entry] for entry in part.entries) for part in (learnt, kept))
    notes = map_classes.check_taught(labels, taught, measured)
    for note in notes:
        print(note)
    dense_training.check_resumed(args, labels)
    start = dense_training.open_start(args, 'SEGMENTATION')
    model = upernet.Segmenter(start.backbone, start.channels, len(labels))
    dense_training.load(model, start, labels)
    learner = Learner(model, start, weights_of(taught[:len(labels)]))
    learner = learner.to(memory_format=torch.channels_last)
    groups = training.parameter_groups(learner, None, dense_training.WEIGHT_DECAY,
                                       dense_training.rate_of)
    run = training.Run(args, learner, groups, dict(labels=labels),
                       lambda averaged: figures(averaged, kept))
    place = training.device()
    for rng in run.steps():
        pictures, maps = learner.batch(rng, learnt)
        run.learn(learner.losses(pictures.to(place), maps.to(place)), dense_training.BATCH)
    dense_training.finish(args, run, start, 'SEGMENTATION', labels,
                          export.segmenter_text(start.channels), kept, notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', type=pathlib.Path, required=True)
    parser.add_argument('--zero_is_ignored', action='store_true',
                        help='0 in a map is ignored and 1 the first class, as in ADE20K')
    dense_training.add_arguments(parser, 'everyday_segmenter', PASSES)
    dense_training.run(train, parser.parse_args())


if __name__ == '__main__':
    user_errors.run('train_segmenter', main)
