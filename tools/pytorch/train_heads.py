"""Trains a detector and a segmenter on composed scenes.

    python train_heads.py --cutouts CUTOUTS --backbone ../../models/everyday/1 --out RUN

One backbone, started from the classifier's weights and tuned along, feeds both heads: a
scene costs one forward pass of it. With --tasks only one head is trained. As in
train_classifier.py, the schedule is one of time and the pictures grow. RUN receives
checkpoint.pt (the moving average of the weights) every five minutes and log.txt.
"""

import argparse
import json
import math
import multiprocessing
import pathlib
import time

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import compose
import detector
import scenes
import train_classifier
import upernet
from detection_loss import detection_loss
from pyramid import Backbone
from train_classifier import normalise

SHORT, LONG = 160, 192  # Sides of the pictures, pixels.
GROWTH = ((0, 128), (0.6, SHORT))  # (Share of the time, short side from there on).
# One window a stage holds the map of the largest picture.
BACKBONE = dict(train_classifier.MODEL, windows=(LONG // 16, LONG // 32))
DETECTOR = dict(channels=48, box_stages=1, box_convs=0, box_fcs=2, fc_width=192, mask_convs=2,
                anchor_scale=4, finest_scale=28, rpn_candidates=200, proposals=100)
SEGMENTER_CHANNELS = 48
TASKS = ('detect', 'segment')
BATCH = 4
HEAD_RATE, BACKBONE_RATE, WARMUP = 1.5e-3, 3e-4, 0.03
WEIGHT_DECAY = 0.05
EMA = 0.995


class Heads(torch.nn.Module):
    """A backbone under both heads; the parts carry the checkpoints' prefixes."""

    def __init__(self, classes):
        super().__init__()
        self.backbone = Backbone(**BACKBONE)
        config = detector.Config(classes=classes, **DETECTOR)
        self.detector = detector.DetectionHeads(self.backbone.widths, config)
        self.decode_head = upernet.DecodeHead(self.backbone.widths, SEGMENTER_CHANNELS, classes + 1)

    def learn(self):
        """Training mode, but the backbone's BatchNorms keep their statistics: batches are small."""
        self.train()
        for module in self.backbone.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.eval()

    def losses(self, batch, tasks):
        """A dict of losses of the tasks, of TASKS."""
        maps = self.backbone(normalise(batch['pictures']))
        losses = detection_loss(self.detector, maps, batch) if 'detect' in tasks else {}
        if 'segment' in tasks:
            class_maps = batch['class_maps'][:, ::2, ::2].long()  # A quarter of the pixels will do.
            logits = upernet.resize(self.decode_head(maps), class_maps.shape[1:])
            losses['segment'] = F.cross_entropy(logits, class_maps, ignore_index=scenes.IGNORE)
        return losses


def start_from(heads, folder):
    """Loads a classifier's backbone; all of it but its last norm and layer is used."""
    tensors = safetensors.torch.load_file(folder / 'model.safetensors')
    missing, unexpected = heads.backbone.load_state_dict(tensors, strict=False)
    unexpected = [key for key in unexpected if not key.startswith(('norm.', 'head.'))]
    missing = [key for key in missing if not key.startswith('outnorm')
               and not key.endswith('num_batches_tracked')]
    if missing or unexpected:
        raise ValueError(f'{folder}: missing {missing}, unexpected {unexpected}')


def parameter_groups(heads):
    """The backbone learns slower; vectors and the scan's A do not decay."""
    groups = {}
    for name, parameter in heads.named_parameters():
        rate = BACKBONE_RATE if name.startswith('backbone.') and 'outnorm' not in name \
            else HEAD_RATE
        decay = WEIGHT_DECAY if parameter.ndim > 1 and not name.endswith('A_log') else 0
        groups.setdefault((rate, decay), []).append(parameter)
    return [dict(params=parameters, peak=rate, weight_decay=decay)
            for (rate, decay), parameters in groups.items()]


def share_at(progress):
    """Of the peak rate: a short rise, then a cosine to nearly nothing."""
    if progress < WARMUP:
        return progress / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (progress - WARMUP) / (1 - WARMUP))) + 1e-3


def size_at(progress):
    return max(size for since, size in GROWTH if progress >= since)


def set_windows(backbone, picture):
    """One window per stage map, as large as the largest picture of this size."""
    long = max(max(shape) for shape, _ in scenes.shapes(picture))
    backbone.levels[2].window, backbone.levels[3].window = long // 16, long // 32


def average_weights(average, current, count):
    """A moving average that forgets its first steps sooner."""
    get_ema_multi_avg_fn(min(EMA, (1 + count) / (10 + count)))(average, current, count)


class Progress:
    """Writes checkpoint.pt and log.txt every five minutes."""

    def __init__(self, out, labels):
        self.out, self.labels = out, labels
        self.start = self.last = time.monotonic()
        self.losses, self.scenes = [], 0

    def minutes(self):
        return (time.monotonic() - self.start) / 60

    def step(self, average, losses, count):
        self.losses.append({name: loss.item() for name, loss in losses.items()})
        self.scenes += count
        if time.monotonic() - self.last > 300:
            self.last = time.monotonic()
            self.report(average)

    def report(self, average):
        means = {name: round(float(np.mean([row[name] for row in self.losses])), 4)
                 for name in self.losses[0]}
        self.losses = []
        facts = dict(scenes=self.scenes, minutes=round(self.minutes(), 1), **means)
        new = self.out / 'checkpoint.new'
        torch.save({'state_dict': average.module.state_dict(),
                    'facts': dict(labels=self.labels, **facts)}, new)
        new.replace(self.out / 'checkpoint.pt')
        with open(self.out / 'log.txt', 'a', encoding='utf-8') as log:
            print(json.dumps(facts), file=log)


def train(args):
    torch.manual_seed(args.seed)
    cutouts = compose.load_cutouts(args.cutouts, 'train')
    labels = sorted(cutouts)
    size = multiprocessing.Value('i', size_at(0))
    data = scenes.Scenes(cutouts, labels, compose.load_photos('train'), size, BATCH, args.seed)
    batches = torch.utils.data.DataLoader(data, batch_size=None, num_workers=1, prefetch_factor=4)
    heads = Heads(len(labels))
    if args.initial:
        heads.load_state_dict(torch.load(args.initial, weights_only=True)['state_dict'])
    else:
        start_from(heads, args.backbone)
    average = AveragedModel(heads, multi_avg_fn=average_weights, use_buffers=True)
    optimiser = torch.optim.AdamW(parameter_groups(heads), betas=(0.9, 0.98))
    progress = Progress(args.out, labels)
    heads.learn()
    for batch in batches:
        done = progress.minutes() / args.minutes
        if done >= 1:
            break
        size.value = size_at(done)
        set_windows(heads.backbone, min(batch['pictures'].shape[1:3]))
        for group in optimiser.param_groups:
            group['lr'] = group['peak'] * share_at(done)
        losses = heads.losses(batch, args.tasks)
        optimiser.zero_grad()
        sum(losses.values()).backward()
        torch.nn.utils.clip_grad_norm_(heads.parameters(), 5.0)
        optimiser.step()
        average.update_parameters(heads)
        progress.step(average, losses, len(batch['boxes']))
    progress.report(average)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cutouts', type=pathlib.Path, required=True)
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument('--backbone', type=pathlib.Path, help='folder of a classifier to start from')
    start.add_argument('--initial', type=pathlib.Path, help='a checkpoint to start from')
    parser.add_argument('--tasks', nargs='+', choices=TASKS, default=TASKS)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--minutes', type=float, default=75)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    train(args)


if __name__ == '__main__':
    main()
