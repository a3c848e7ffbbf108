"""Measures an exported classifier on things and backgrounds that it has never seen.

    python evaluate.py --model models/everyday/1 --cutouts CUTOUTS [--stamps FOLDER]
        [--photos FILE ...]

Prints top-1, top-5, the mean over classes and a line for each class. First, it does so for
exemplars (3D models) of the test split, pasted over the test backgrounds. Then it does so for the
stamps of Tux Paint, which are photographic cut-outs. For each photo, it prints the three best
answers. Photos are preprocessed as in the server.
"""

import argparse
import pathlib

import numpy as np
import safetensors.torch
import torch
from PIL import Image, ImageOps

import compose
import configs
import render
import sf_mamba
import train_classifier
from pictures import preprocess

HERE = pathlib.Path(__file__).parent
VIEWS = 24       # Composites per exemplar.
STAMP_VIEWS = 8  # Composites per stamp. All show its only view.


def load(folder):
    """Returns the model in a model directory, and its labels."""
    labels = (folder / 'labels.txt').read_text(encoding='utf-8').splitlines()
    model = sf_mamba.make('custom', num_classes=len(labels), **configs.CLASSIFIER)
    weights = safetensors.torch.load_file(folder / 'model.safetensors')
    missing, unexpected = model.load_state_dict(
        {key: value.float() for key, value in weights.items()}, strict=False)
    missing = [key for key in missing if not key.endswith('num_batches_tracked')]
    if missing or unexpected:
        raise ValueError(f'{folder}: missing {missing}, unexpected {unexpected}')
    return model.eval(), labels


def describe(probabilities, labels, count=3):
    top = probabilities.topk(count)
    return ', '.join(f'{labels[k]} {p:.0%}' for p, k in zip(top.values, top.indices))


def load_stamps(folder):
    """Loads the photographs of stamps.tsv as {class: [an array [1,256,256,4] for each stamp]}."""
    stamps = {}
    for line in (HERE / 'stamps.tsv').read_text(encoding='utf-8').splitlines()[1:]:
        label, name = line.split('\t')
        image = Image.open(folder / name).convert('RGBA').convert('RGBa')  # Premultiplied.
        image = ImageOps.pad(image, (render.SIZE, render.SIZE), Image.BICUBIC)
        stamps.setdefault(label, []).append(np.asarray(image)[None])
    return stamps


def report(title, model, labels, exemplars, views):
    """Measures the model on composites of exemplars over the test backgrounds. Prints the result.

    `exemplars` is {class: [the views of each exemplar]}.
    """
    pictures, classes = compose.test_set(exemplars, labels, compose.load_photos('test'),
                                         configs.SIZE, views)
    logits = train_classifier.predict(model, pictures)
    top1, top5, mean = train_classifier.accuracy(logits, classes)
    print(f'{title}: {len(pictures)} pictures of {sum(map(len, exemplars.values()))} exemplars, '
          f'top-1 {top1:.1%}, top-5 {top5:.1%}, mean over classes {mean:.1%}')
    for k, label in enumerate(labels):
        if label not in exemplars:
            continue
        mine = logits[torch.as_tensor(classes == k)]
        top1, top5, _ = train_classifier.accuracy(mine, np.full(len(mine), k))
        wrong = torch.bincount(mine.argmax(1), minlength=len(labels))
        wrong[k] = 0
        print(f'| {label} | {len(exemplars[label])} | {top1:.0%} | {top5:.0%} | '
              f'{labels[wrong.argmax()]} {wrong.max() / len(mine):.0%} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', type=pathlib.Path, required=True)
    parser.add_argument('--cutouts', type=pathlib.Path)
    parser.add_argument('--stamps', type=pathlib.Path)
    parser.add_argument('--photos', type=pathlib.Path, nargs='*', default=[])
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, labels = load(args.model)
    if args.cutouts:
        exemplars = compose.load_cutouts(args.cutouts, 'test')
        report('unseen models', model, labels, exemplars, VIEWS)
    if args.stamps:
        stamps = {k: [np.repeat(v, STAMP_VIEWS, 0) for v in group]
                  for k, group in load_stamps(args.stamps).items()}
        report('photographic cut-outs', model, labels, stamps, STAMP_VIEWS)
    for path in args.photos:
        pictures = preprocess(Image.open(path), configs.SIZE)[None].copy()
        probabilities = train_classifier.predict(model, pictures)[0].softmax(0)
        print(f'{path.name}: {describe(probabilities, labels)}')


if __name__ == '__main__':
    main()
