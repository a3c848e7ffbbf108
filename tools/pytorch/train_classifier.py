"""Trains the "everyday" classifier on composites of rendered furniture models.

    python train_classifier.py --cutouts CUTOUTS --out RUN --minutes 80

The schedule is one of time: cosine decay over --minutes on pictures that grow from 64
pixels a side, which cost a quarter, to the full size. RUN receives
checkpoint.pt (the moving average of the weights) every two minutes and log.txt.
"""

import argparse
import json
import math
import multiprocessing
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import compose
import sf_mamba

SIZE = 96  # Pixels a side.
GROWTH = ((0, 64), (0.4, SIZE))  # (Share of the time, size from there on).
MODEL = dict(dim=24, in_dim=16, depths=(1, 2, 4, 2), num_heads=(4, 8),
             windows=(SIZE // 16, SIZE // 32))
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
BATCH = 64
PEAK_RATE, WEIGHT_DECAY, WARMUP = 1.5e-3, 0.05, 0.03
SMOOTHING = 0.1
EMA = 0.998


def normalise(pictures):
    """uint8 [n,S,S,3] to the model's float input [n,3,S,S]."""
    return (pictures.permute(0, 3, 1, 2).float() / 255 - MEAN) / STD


def set_windows(model, size):
    """One window per stage map at this picture size."""
    for level, stride in ((model.levels[2], 16), (model.levels[3], 32)):
        level.window = size // stride


class Composites(torch.utils.data.IterableDataset):
    """Endless batches (uint8 [BATCH,S,S,3], classes); S is read from `size` each time."""

    def __init__(self, cutouts, labels, photos, size, seed):
        self.exemplars = [(k, views) for k, label in enumerate(labels) for views in cutouts[label]]
        counts = np.bincount([k for k, _ in self.exemplars])
        weights = np.array([counts[k] ** -0.5 for k, _ in self.exemplars])  # Between extremes.
        self.probabilities = weights / weights.sum()
        self.photos, self.size, self.seed = photos, size, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        while True:
            size, pictures, classes = self.size.value, [], []
            for k in rng.choice(len(self.exemplars), BATCH, p=self.probabilities):
                label, views = self.exemplars[k]
                cutout = np.asarray(views[rng.integers(len(views))])
                pictures.append(compose.training_picture(rng, cutout, self.photos, size))
                classes.append(label)
            yield torch.from_numpy(np.stack(pictures)), torch.tensor(classes)


def predict(model, pictures, batch=64):
    """Logits [n,classes] of uint8 pictures [n,S,S,3]."""
    model.eval()
    with torch.inference_mode():
        return torch.cat([model(normalise(torch.from_numpy(pictures[i:i + batch])))
                          for i in range(0, len(pictures), batch)])


def accuracy(logits, classes):
    """Top-1, top-5 and the mean over classes of top-1, in 0..1."""
    classes = torch.as_tensor(classes)
    top = logits.topk(5).indices == classes[:, None]
    hit = top[:, 0].float()
    per_class = [hit[classes == k].mean().item() for k in classes.unique()]
    return hit.mean().item(), top.any(1).float().mean().item(), float(np.mean(per_class))


def parameter_groups(model):
    """No weight decay on vectors, nor on the scan's A."""
    decayed = [p for n, p in model.named_parameters() if p.ndim > 1 and not n.endswith('A_log')]
    kept = [p for n, p in model.named_parameters() if p.ndim < 2 or n.endswith('A_log')]
    return [{'params': decayed, 'weight_decay': WEIGHT_DECAY}, {'params': kept, 'weight_decay': 0}]


def rate_at(progress):
    if progress < WARMUP:
        return PEAK_RATE * progress / WARMUP
    return PEAK_RATE * 0.5 * (1 + math.cos(math.pi * (progress - WARMUP) / (1 - WARMUP))) + 1e-6


def size_at(progress):
    return max(size for since, size in GROWTH if progress >= since)


class Progress:
    """Evaluates the averaged weights every two minutes; writes checkpoint.pt and log.txt."""

    def __init__(self, out, labels, held_out):
        self.out, self.labels, self.held_out = out, labels, held_out
        self.start = self.last = time.monotonic()
        self.losses, self.passes = [], 0

    def minutes(self):
        return (time.monotonic() - self.start) / 60

    def step(self, average, loss, count):
        self.losses.append(loss)
        self.passes += count
        if time.monotonic() - self.last > 120:
            self.last = time.monotonic()
            self.report(average)

    def report(self, average):
        pictures, classes = self.held_out
        set_windows(average.module, SIZE)
        top1, top5, class_mean = accuracy(predict(average, pictures), classes)
        facts = dict(passes=self.passes, minutes=round(self.minutes(), 1),
                     loss=round(float(np.mean(self.losses)), 4), validation_top1=round(top1, 4),
                     validation_top5=round(top5, 4), class_mean=round(class_mean, 4))
        self.losses = []
        new = self.out / 'checkpoint.new'
        torch.save({'state_dict': average.module.state_dict(),
                    'facts': dict(labels=self.labels, **facts)}, new)
        new.replace(self.out / 'checkpoint.pt')
        with open(self.out / 'log.txt', 'a', encoding='utf-8') as log:
            print(json.dumps(facts), file=log)


def train(args):
    torch.manual_seed(args.seed)
    cutouts, photos = compose.load_cutouts(args.cutouts, 'train'), compose.load_photos('train')
    labels = sorted(cutouts)
    size = multiprocessing.Value('i', size_at(0))
    data = Composites(cutouts, labels, photos, size, args.seed)
    batches = torch.utils.data.DataLoader(data, batch_size=None, num_workers=1, prefetch_factor=4)
    held_out = compose.test_set(compose.load_cutouts(args.cutouts, 'validation'), labels, photos,
                                SIZE, views=8)
    model = sf_mamba.make('custom', num_classes=len(labels), **MODEL)
    if args.initial:
        model.load_state_dict(torch.load(args.initial, weights_only=True)['state_dict'])
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(EMA), use_buffers=True)
    optimiser = torch.optim.AdamW(parameter_groups(model), betas=(0.9, 0.98))
    progress = Progress(args.out, labels, held_out)
    for pictures, classes in batches:
        done = progress.minutes() / args.minutes
        if done >= 1:
            break
        size.value = size_at(done)
        for group in optimiser.param_groups:
            group['lr'] = rate_at(done)
        model.train()
        set_windows(model, pictures.shape[1])
        loss = F.cross_entropy(model(normalise(pictures)), classes, label_smoothing=SMOOTHING)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimiser.step()
        average.update_parameters(model)
        progress.step(average, loss.item(), len(pictures))
    progress.report(average)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cutouts', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--initial', type=pathlib.Path, help='a checkpoint to start from')
    parser.add_argument('--minutes', type=float, default=80)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    train(args)


if __name__ == '__main__':
    main()
