"""Trains a detector and a segmenter on composed scenes, and exports them.

    python train_heads.py --cutouts CUTOUTS --backbone CLASSIFIER/checkpoint.pt --out RUN

Both heads share one backbone, so a scene costs one forward pass of it. The backbone starts with
the classifier's weights. It is trained with the heads, except its trunk. --tasks trains only one
head.

The pictures become larger in the course of the training. With --full_size, all have the full size.
RUN receives checkpoint.pt and log.txt. training.py explains --passes, --minutes and --resume.
`torchrun --nproc_per_node=2 train_heads.py ...` uses two cores or GPUs.
"""

import argparse
import copy
import multiprocessing
import pathlib

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F

import compose
import credits
import detector
import export
import metrics
import scenes
import training
import upernet
from configs import BACKBONE, DETECTOR, SEGMENTER_CHANNELS, SHORT
from dense_training import jaccard_loss
from detection_loss import detection_loss
from pyramid import Backbone
from train_classifier import normalise

GROWTH = ((0, 192), (0.4, SHORT))  # (Share of the run that is done, short side from then on).
TASKS = ('detect', 'segment')
BATCH = 4
PASSES = 30_000
HEAD_RATE, BACKBONE_RATE, WEIGHT_DECAY = 1.5e-3, 5e-4, 0.05
SEGMENT_WEIGHT = 2  # The segmenter has one loss, but the detector has five.
# The weight of a pixel is the frequency of its class to this power, because most pixels are
# background. The frequencies are counted in FREQUENCY_SCENES scenes.
FREQUENCY_POWER, FREQUENCY_SCENES = -0.3, 400
VALIDATION_SCENES = 60


class Heads(torch.nn.Module):
    """A backbone with both heads. In checkpoint.pt, the names of tensors begin with the names of
    these parts."""

    def __init__(self, classes, jaccard=0.0):
        super().__init__()
        self.pixel_weights = None  # Of the classes in the segmenter's loss. None: all weigh 1.
        self.jaccard = jaccard
        self.backbone = Backbone(**BACKBONE)
        config = detector.Config(classes=classes, **DETECTOR)
        self.detector = detector.DetectionHeads(self.backbone.widths, config)
        self.decode_head = upernet.DecodeHead(self.backbone.widths, SEGMENTER_CHANNELS, classes + 1)

    def losses(self, batch, tasks):
        """Returns {name: loss} of the tasks, a subset of TASKS."""
        pictures = normalise(batch['pictures'])
        with training.precision():
            maps = self.backbone(pictures.contiguous(memory_format=torch.channels_last))
            losses = detection_loss(self.detector, maps, batch) if 'detect' in tasks else {}
            if 'segment' in tasks:
                class_maps = batch['class_maps'][:, 2::4, 2::4].long()  # Centres of the logits.
                logits = self.decode_head(maps)
                losses['segment'] = SEGMENT_WEIGHT * F.cross_entropy(
                    logits, class_maps, self.pixel_weights, ignore_index=scenes.IGNORE)
                if self.jaccard:
                    losses['jaccard'] = self.jaccard * jaccard_loss(logits, class_maps)
        return losses

    def detect(self, images, shapes):
        return self.detector.detect(self.backbone(images), shapes)

    def segment(self, images):
        return self.decode_head(self.backbone(images))


def pixel_weights(data, classes, seed):
    """Returns the weights of the background and of each class in the segmenter's loss. They follow
    from the numbers of pixels of each class in some small scenes."""
    rng = np.random.default_rng(seed)
    drawn = np.stack([data.draw(rng, (64, 64)).class_map for _ in range(FREQUENCY_SCENES)])
    counts = np.bincount(drawn.ravel(), minlength=classes + 1)[:classes + 1]
    weights = np.maximum(counts, 1) ** FREQUENCY_POWER
    return torch.tensor(weights / weights.mean(), dtype=torch.float32)


def start_from(heads, checkpoint):
    """Loads the backbone from a classifier's checkpoint. The classifier's last norm and last layer
    are not used."""
    saved = torch.load(checkpoint, weights_only=True)['state_dict']
    tensors = {key.removeprefix('model.'): value for key, value in saved.items()
               if key.startswith('model.')}
    missing, unexpected = heads.backbone.load_state_dict(tensors, strict=False)
    unexpected = [key for key in unexpected if not key.startswith(('norm.', 'head.'))]
    missing = [key for key in missing if not key.startswith('outnorm')]
    if missing or unexpected:
        raise ValueError(f'{checkpoint}: missing {missing}, unexpected {unexpected}')


def start_from_models(heads, models, version):
    """Loads an exported detector and segmenter. If their backbones differ, the segmenter's is
    used."""
    for name, prefix in ((export.DETECTOR_ID, 'detector.'), (export.SEGMENTER_ID, '')):
        tensors = safetensors.torch.load_file(models / name / str(version) / 'model.safetensors')
        _, unexpected = heads.load_state_dict(
            {key if key.startswith('backbone.') else prefix + key: value.float()
             for key, value in tensors.items()}, strict=False)
        if unexpected:
            raise ValueError(f'{models}: {name} has unexpected {unexpected}')


def rate_of(name):
    """Returns the peak learning rate of a parameter. The backbone has a lower rate than the heads,
    except its output norms."""
    return BACKBONE_RATE if name.startswith('backbone.') and 'outnorm' not in name else HEAD_RATE


def size_at(progress, full_size=False):
    return SHORT if full_size else max(size for since, size in GROWTH if progress >= since)


def set_windows(backbone, picture):
    """Sets the windows of the token stages. One window covers the whole map of the largest picture
    whose short side has `picture` pixels."""
    long = max(max(shape) for shape, _ in scenes.shapes(picture))
    backbone.levels[2].window, backbone.levels[3].window = long // 16, long // 32


def figures(heads, held_out, labels, tasks):
    """Returns the validation figures of the tasks. Computes them on the CPU."""
    heads = copy.deepcopy(heads).cpu().eval()
    set_windows(heads.backbone, SHORT)
    with torch.device('cpu'):
        precisions, iou = metrics.measure(heads.detect if 'detect' in tasks else None,
                                          heads.segment if 'segment' in tasks else None,
                                          held_out, labels)
    result = {}
    if precisions:
        result.update(box_ap50=round(float(precisions[0][1]), 4),
                      mask_ap50=round(float(precisions[1][1]), 4))
    if iou:
        result['miou'] = round(float(iou[0].mean()), 4)
    return result


def train(args):
    torch.manual_seed(args.seed)
    cutouts, photos = compose.load_cutouts(args.cutouts, 'train'), compose.load_photos('train')
    labels = sorted(cutouts)
    held_out = scenes.test_set(compose.load_cutouts(args.cutouts, 'validation'), labels, photos,
                               SHORT, VALIDATION_SCENES)
    heads = Heads(len(labels), args.jaccard)
    if args.initial and args.initial.is_dir():
        start_from_models(heads, args.initial, args.initial_version)
    elif args.initial:
        heads.load_state_dict(torch.load(args.initial, weights_only=True)['state_dict'])
    if args.backbone:
        start_from(heads, args.backbone)
    heads = heads.to(memory_format=torch.channels_last)
    groups = training.parameter_groups(heads, HEAD_RATE, WEIGHT_DECAY,
                                       lambda name: args.rate * rate_of(name))
    run = training.Run(args, heads, groups, dict(labels=labels),
                       lambda averaged: figures(averaged, held_out, labels, args.tasks))
    size = multiprocessing.Value('i', size_at(run.progress(), args.full_size))
    data = scenes.Scenes(cutouts, labels, photos, size, BATCH, (args.seed, run.step, run.rank))
    heads.pixel_weights = pixel_weights(data, len(labels), args.seed).to(training.device())
    batches = iter(torch.utils.data.DataLoader(data, batch_size=None, num_workers=1,
                                               prefetch_factor=4))
    place = training.device()
    torch.set_default_device(place)  # For the tensors that detection_loss() creates.
    for _ in run.steps():
        size.value = size_at(run.progress(), args.full_size)
        batch = {name: [x.to(place) for x in value] if isinstance(value, list) else value.to(place)
                 for name, value in next(batches).items()}
        set_windows(heads.backbone, min(batch['pictures'].shape[1:3]))
        run.learn(heads.losses(batch, args.tasks), BATCH)
    if args.export and run.rank == 0:
        export.write_heads(args.export, args.version, run.average.module.cpu(), labels, args.tasks,
                           credits.of_training())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cutouts', type=pathlib.Path, required=True)
    parser.add_argument('--backbone', type=pathlib.Path, help="a classifier's checkpoint")
    parser.add_argument('--initial', type=pathlib.Path,
                        help='heads to start from: a checkpoint, or a folder of models')
    parser.add_argument('--initial_version', type=int, default=1, help="these models' version")
    parser.add_argument('--full_size', action='store_true', help='no small pictures first')
    parser.add_argument('--rate', type=float, default=1.0, help='factor of the learning rates')
    parser.add_argument('--jaccard', type=float, default=0.0,
                        help="what the Jaccard loss counts beside the segmenter's other one")
    parser.add_argument('--tasks', nargs='+', choices=TASKS, default=TASKS)
    parser.add_argument('--export', type=pathlib.Path, help='folder of models to write to')
    parser.add_argument('--version', type=int, default=1)
    training.add_arguments(parser, PASSES)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    train(args)


if __name__ == '__main__':
    main()
