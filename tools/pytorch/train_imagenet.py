"""Trains SF-Mamba T, S or B from scratch on ImageNet-1k, and exports it as a model directory.

    torchrun --nproc_per_node=8 train_imagenet.py --data IMAGENET --variant T --out RUN \\
        --export ../../models/sf_mamba_t/1

IMAGENET has train/CLASS/*.JPEG and val/CLASS/*.JPEG. Each process uses a GPU, or a part of the
cores if there is none. The settings are the published ones, see imagenet_recipe.py. A batch of 4096
is processed in parts that fit, whatever the number of GPUs. A run may be stopped. The same command
with --resume continues it. RUN gets checkpoint.pt, log.txt and curve.png.
"""

import argparse
import pathlib

import torch
import torch.nn.functional as F

import classifier_files
import export
import imagenet_recipe as recipes
import sf_mamba
import train_classifier
import training
import user_errors
from configs import MEAN, STD
from imagenet_data import ImageFolders, Order, batches
from lamb import Lamb

DATA_SECONDS = 1800  # Seconds between validations.


class Trainer:
    """Computes the losses of a part of a batch: the pictures that a process takes at once."""

    def __init__(self, args, recipe, model, classes):
        self.recipe, self.model, self.bf16 = recipe, model, args.bf16
        self.mix = recipes.mixing(classes)
        self.place = training.device()
        self.mean, self.std = (x.to(self.place).view(3, 1, 1) for x in (MEAN, STD))

    def losses(self, run, pictures, classes):
        """Returns a dict of losses. `pictures` is uint8 [n,3,S,S]. Before the model sees them, they
        are normalised, partly erased and mixed.
        """
        x = (pictures.to(self.place).float() / 255 - self.mean) / self.std
        x, shares = self.mix(recipes.erase(x), classes.to(self.place))
        x = x.contiguous(memory_format=torch.channels_last)
        with training.precision(self.bf16):
            logits = self.model(x).float()
            losses = dict(loss=F.cross_entropy(logits, shares,
                                               label_smoothing=recipes.SMOOTHING))
            if run.progress() > self.recipe.mesa_after:
                with torch.no_grad():
                    averaged = run.average.module.eval()(x).float()
                losses['mesa'] = self.recipe.mesa * recipes.mesa_loss(logits, averaged)
        return losses


def validate(model, data, batch, bf16):
    """Returns the model's accuracies on the held-out pictures, in 0..1."""
    logits, classes = [], []
    for pictures, answers in data.validation():
        with training.precision(bf16):
            logits.append(train_classifier.predict(model, pictures, batch).float())
        classes.append(torch.from_numpy(answers))
    top1, top5, mean = train_classifier.accuracy(torch.cat(logits), torch.cat(classes))
    return dict(validation_top1=round(top1, 4), validation_top5=round(top5, 4),
                class_mean=round(mean, 4))


def train(args):
    recipe = recipes.RECIPES[args.variant]
    if args.export:
        user_errors.check_writable(args.export)
    data = ImageFolders(args.data, args.size)
    args.passes = args.passes or args.epochs * len(data.train)
    torch.manual_seed(args.seed)
    model = sf_mamba.make(args.variant, len(data.labels), drop_path=recipe.drop_path,
                          windows=(-(-args.size // 16), -(-args.size // 32)))
    model = model.to(memory_format=torch.channels_last)
    facts = dict(classifier_files.facts_of(model.config, None, args.size),
                 variant=f'sf_mamba_{args.variant.lower()}')
    groups = training.parameter_groups(model, args.rate, recipe.weight_decay)
    run = training.Run(args, model, groups, dict(labels=data.labels, network=facts),
                       lambda averaged: validate(averaged, data, args.part, args.bf16),
                       recipes.HORIZON, recipes.schedule(recipe), Lamb)
    order = Order(len(data.train), args.batch, args.part, args.seed, run.step, run.rank,
                  run.processes)
    parts = args.batch // (args.part * run.processes)
    source = iter(batches(data.train, recipes.augmentation(args.size), order, args.workers))
    trainer = Trainer(args, recipe, model, len(data.labels))
    for rng in run.steps():
        torch.manual_seed(int(rng.integers(2**63)))  # Each process has its own numbers.
        for _ in range(parts):
            pictures, classes, passed_over = next(source)
            data.passed_over.count += int(passed_over.sum())
            run.accumulate(trainer.losses(run, pictures, classes), parts)
        run.update(args.part * parts)
    if run.rank:
        return
    if args.export:
        export.write_classifier(args.export, run.average.module.float().cpu(), data.labels, facts)
    print(train_classifier.summary(args, run.figures, len(data.held_out), data.passed_over))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', type=pathlib.Path, required=True)
    parser.add_argument('--variant', choices=recipes.RECIPES, required=True)
    parser.add_argument('--export', type=pathlib.Path, help='model directory to write')
    parser.add_argument('--epochs', type=user_errors.number(float),
                        default=recipes.EPOCHS + recipes.COOLDOWN)
    parser.add_argument('--batch', type=user_errors.number(int), default=recipes.BATCH,
                        help='pictures a step, of all processes')
    parser.add_argument('--part', type=user_errors.number(int), default=128,
                        help='pictures that a process takes at once')
    parser.add_argument('--rate', type=user_errors.number(float), default=recipes.RATE,
                        help='peak learning rate')
    parser.add_argument('--size', type=user_errors.number(int), default=224,
                        help='of the pictures, pixels a side')
    parser.add_argument('--workers', type=user_errors.number(int, 0), default=8,
                        help='that read pictures, a process')
    parser.add_argument('--bf16', action='store_true', help='matrices in bf16 on a CPU too')
    training.add_arguments(parser, None)
    parser.set_defaults(report=DATA_SECONDS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    train(args)
    training.leave()


if __name__ == '__main__':
    user_errors.run('train_imagenet', main)
