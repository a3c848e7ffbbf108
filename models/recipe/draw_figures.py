"""Draws the figures of a model's card: curves.png and mistakes.png in the model's folder.

    python draw_figures.py --models ../../models --version 1 --id everyday --log RUN/log.txt ...

curves.png shows the logs as one training, one log after the other. mistakes.png shows pictures of
the small held-out set, tests/e2e/testdata/held_out. For the classifier and the segmenter, they are
the pictures on which the model is worst. For the detector, they are every eighth scene.
"""

import argparse
import json
import pathlib

import cv2
import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image, ImageDraw

import configs
import detector
import evaluate
import evaluate_heads
import export
import train_classifier
import upernet

HELD_OUT = pathlib.Path(__file__).parents[2] / 'tests/e2e/testdata/held_out'
TILE, COLUMNS, ROWS = 128, 6, 4
SCENES = 6      # In mistakes.png of the detector and the segmenter.
SHOWN = 0.3     # Boxes with a lower score are not drawn.
COLOURS = np.random.default_rng(4).integers(40, 256, (256, 3), dtype=np.uint8)
COLOURS[0] = 0


def curves(logs, path):
    rows, passes = [], 0
    for log in logs:
        lines = [json.loads(line) for line in log.read_text(encoding='utf-8').splitlines()]
        rows += [dict(line, passes=line['passes'] + passes) for line in lines]
        passes = rows[-1]['passes']
    names = [n for n in rows[0] if n not in ('passes', 'minutes')]
    figures = [n for n in names if n.startswith(('validation', 'class_mean', 'box_ap', 'mask_ap',
                                                 'miou'))]
    plots = [('training loss', [n for n in names if n not in figures]), ('validation', figures)]
    _, axes = plt.subplots(1, 2, figsize=(9, 3))
    for axis, (title, group) in zip(axes, plots):
        for name in group:
            points = [(r['passes'] / 1000, r[name]) for r in rows if name in r]
            axis.plot(*zip(*points), label=name)
        axis.set_title(title)
        axis.set_xlabel('thousand pictures')
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    plt.tight_layout()
    plt.savefig(path, dpi=80)


def tile(picture, lines, side=TILE):
    """Returns a picture, resized to `side`, with lines of text below it."""
    image = Image.new('RGB', (side, side + 12 * len(lines) + 2), 'white')
    image.paste(Image.fromarray(picture).resize((side, side), Image.BICUBIC))
    for i, line in enumerate(lines):
        ImageDraw.Draw(image).text((2, side + 12 * i), line, fill='black')
    return np.asarray(image)


def sheet(tiles, columns, path):
    rows = [np.hstack(tiles[i:i + columns]) for i in range(0, len(tiles), columns)]
    Image.fromarray(np.vstack(rows)).quantize(128).save(path, optimize=True)


def classifier_mistakes(folder, path):
    """Draws the wrong answers with the highest probabilities."""
    model, labels = evaluate.load(folder)
    wrong = []
    for file in sorted((HELD_OUT / 'things').glob('*/*.jpg')):
        picture = evaluate.preprocess(Image.open(file), configs.SIZE)
        probabilities = train_classifier.predict(model, picture[None].copy())[0].softmax(0)
        sure, best = probabilities.max(0)
        if labels[best] != file.parent.name:
            wrong.append((-sure.item(), file.name, picture,
                          [file.parent.name, f'as {labels[best]} {sure:.0%}']))
    tiles = [tile(picture, lines) for _, _, picture, lines in sorted(wrong)[:COLUMNS * ROWS]]
    sheet(tiles, COLUMNS, path)


def held_out_scenes():
    """Yields the name, the picture uint8 [H,W,3] and the class map of each scene."""
    for file in sorted((HELD_OUT / 'scenes/images').glob('*.jpg')):
        truth = cv2.imread(str(HELD_OUT / 'scenes/maps' / f'{file.stem}.png'), cv2.IMREAD_UNCHANGED)
        yield file.stem, np.asarray(Image.open(file)), truth


def draw_boxes(picture, found, labels):
    boxes, scores, classes, masks = found
    kept = scores >= SHOWN
    boxes, scores, classes, masks = boxes[kept], scores[kept], classes[kept], masks[kept]
    picture = picture.copy()
    pasted = detector.paste(masks, boxes, picture.shape[:2], 0.5).numpy() if len(boxes) else []
    for k, mask in zip(classes.tolist(), pasted):
        picture[mask] = picture[mask] // 2 + COLOURS[k + 1] // 2
    image = Image.fromarray(picture).resize((picture.shape[1] * 2, picture.shape[0] * 2))
    draw = ImageDraw.Draw(image)
    for box, score, k in zip((boxes * 2).tolist(), scores.tolist(), classes.tolist()):
        draw.rectangle(box, outline=tuple(COLOURS[k + 1].tolist()), width=2)
        draw.text((box[0] + 3, box[1] + 1), f'{labels[k]} {score:.0%}', fill='white',
                  stroke_width=1, stroke_fill='black')
    return np.asarray(image)


def dense_mistakes(models, version, which, path):
    """Draws the scenes in which the segmenter has the smallest share of right pixels. For the
    detector, draws every eighth scene, whatever the result."""
    pair = evaluate_heads.load_models(models, version)
    labels, rows = pair[2], []
    for number, (name, picture, truth) in enumerate(held_out_scenes()):
        shape = picture.shape[:2]
        image = train_classifier.normalise(torch.from_numpy(picture[None].copy()))
        if which == export.DETECTOR_ID:
            if number % (48 // SCENES) == 0:
                rows.append((number, name, tile(draw_boxes(picture, pair[0](image, [shape])[0],
                                                           labels), [], 2 * TILE)))
            continue
        got = upernet.class_map(pair[1](image), shape, shape)[0].numpy().astype(np.uint8)
        right = (got == truth)[truth != 255].mean()
        named = [', '.join(['background', *labels][k] for k in np.unique(m) if 0 < k < 255)[:42]
                 for m in (truth, got)]
        triple = [tile(picture, [f'{right:.0%} right'], 2 * TILE),
                  tile(COLOURS[np.where(truth == 255, 0, truth)], [named[0]], 2 * TILE),
                  tile(COLOURS[got], [named[1]], 2 * TILE)]
        rows.append((right, name, np.hstack(triple)))
    tiles = [picture for _, _, picture in sorted(rows, key=lambda row: row[:2])[:SCENES]]
    sheet(tiles, 3 if which == export.DETECTOR_ID else 1, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--models', type=pathlib.Path, required=True)
    parser.add_argument('--version', type=int, default=1)
    parser.add_argument('--id', required=True,
                        choices=(export.CLASSIFIER_ID, export.DETECTOR_ID, export.SEGMENTER_ID))
    parser.add_argument('--log', type=pathlib.Path, nargs='*', default=[])
    args = parser.parse_args()
    torch.set_num_threads(1)
    folder = args.models / args.id / str(args.version)
    if args.log:
        curves(args.log, folder / 'curves.png')
    with torch.inference_mode():
        if args.id == export.CLASSIFIER_ID:
            classifier_mistakes(folder, folder / 'mistakes.png')
        else:
            dense_mistakes(args.models, args.version, args.id, folder / 'mistakes.png')


if __name__ == '__main__':
    main()
