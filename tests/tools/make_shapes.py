#!/usr/bin/python3
"""Draws circles, crosses, squares and triangles on photographs, as data for trying the training.

    make_shapes.py --out shapes --count 60
    make_shapes.py --out held_out --count 40 --part held_out

OUT receives images/, annotations.json (COCO's boxes and polygons), maps/ and labels.txt.
The two parts use different photographs of client/samples. Needs Pillow and NumPy.
"""

import argparse
import json
import math
import pathlib

import numpy as np
from PIL import Image, ImageDraw

SAMPLES = pathlib.Path(__file__).absolute().parents[2] / 'client/samples'
SIZES = ((400, 300), (300, 400), (360, 360))
FINE = 3  # Shapes are drawn this many times larger and then reduced, for smooth edges.


def turned(points, angle):
    c, s = math.cos(angle), math.sin(angle)
    return [(c * x - s * y, s * x + c * y) for x, y in points]


def regular(count):
    return [(math.cos(2 * math.pi * k / count), math.sin(2 * math.pi * k / count))
            for k in range(count)]


_CROSS = [(0.33, 1), (0.33, 0.33), (1, 0.33)]
OUTLINES = {  # The outlines lie around the origin, in a circle of radius 1 or a little more.
    'circle': regular(40),
    'cross': [point for k in range(4) for point in turned(_CROSS, -k * math.pi / 2)],
    'square': regular(4),
    'triangle': regular(3),
}


def background(rng, photographs, size):
    """Returns a random part of a photograph, resized to `size`."""
    photo = photographs[rng.integers(len(photographs))]
    scale = min(photo.size[0] / size[0], photo.size[1] / size[1]) * rng.uniform(0.5, 1)
    cut = [side * scale for side in size]
    x, y = (rng.uniform(0, whole - part) for whole, part in zip(photo.size, cut))
    return photo.resize(size, Image.Resampling.BICUBIC, (x, y, x + cut[0], y + cut[1]))


def box_of(points):
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    return [*low.tolist(), *(high - low).tolist()]


def place(rng, size, taken):
    """Returns (name, points) of a random shape in the picture. Returns None if the shape would
    overlap another shape."""
    name = list(OUTLINES)[rng.integers(len(OUTLINES))]
    radius = min(size) * math.exp(rng.uniform(math.log(0.07), math.log(0.25)))
    centre = [rng.uniform(radius, side - radius) for side in size]
    if any(math.dist(centre, other) < radius + far for other, far in taken):
        return None
    taken.append((centre, radius))
    return name, [(centre[0] + radius * x, centre[1] + radius * y)
                  for x, y in turned(OUTLINES[name], rng.uniform(0, 2 * math.pi))]


def picture(rng, photographs):
    """Returns an image, its map, and (name, points) of each shape."""
    size, taken = SIZES[rng.integers(len(SIZES))], []
    shapes = filter(None, [place(rng, size, taken) for _ in range(rng.integers(2, 7))])
    shapes = list(shapes)
    image = background(rng, photographs, size)
    large = image.resize([FINE * side for side in size])
    ink, classes = ImageDraw.Draw(large), Image.new('L', large.size)
    for name, points in shapes:
        points = [(FINE * x, FINE * y) for x, y in points]
        colour = tuple(int(v) for v in rng.integers(0, 256, 3))
        ink.polygon(points, fill=colour, outline=tuple(v // 2 for v in colour), width=FINE)
        ImageDraw.Draw(classes).polygon(points, fill=1 + list(OUTLINES).index(name))
    return (large.resize(size, Image.Resampling.BOX),
            classes.resize(size, Image.Resampling.NEAREST), shapes)


def write(out, count, photographs, seed=0):
    """Writes the folder with `count` pictures."""
    rng, annotations, images = np.random.default_rng(seed), [], []
    for folder in ('images', 'maps'):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        image, classes, shapes = picture(rng, photographs)
        image.save(out / 'images' / f'{number:03}.jpg', quality=90)
        classes.save(out / 'maps' / f'{number:03}.png')
        images.append(dict(id=number, file_name=f'{number:03}.jpg', width=image.size[0],
                           height=image.size[1]))
        for name, points in shapes:
            box = box_of(points)
            annotations.append(dict(
                id=len(annotations) + 1, image_id=number, iscrowd=0, bbox=box,
                category_id=1 + list(OUTLINES).index(name), area=box[2] * box[3],
                segmentation=[[v for point in points for v in point]]))
    categories = [dict(id=k, name=name) for k, name in enumerate(OUTLINES, 1)]
    (out / 'annotations.json').write_text(json.dumps(
        dict(images=images, annotations=annotations, categories=categories)))
    (out / 'labels.txt').write_text('\n'.join(['background', *OUTLINES]) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--count', type=int, default=60)
    parser.add_argument('--part', choices=('train', 'held_out'), default='train')
    args = parser.parse_args()
    held_out = args.part == 'held_out'
    photographs = [Image.open(path).convert('RGB') for i, path in enumerate(
        sorted(SAMPLES.glob('*.jpg'))) if (i % 3 == 2) == held_out]
    write(args.out, args.count, photographs, seed=1 if held_out else 0)


if __name__ == '__main__':
    main()
