"""Reads pictures with boxes, and perhaps masks, from COCO's json.

    DATA/annotations.json, DATA/images/            as `sfmamba eval` reads them
    DATA/annotations/instances_train2017.json, instances_val2017.json, DATA/train2017/, val2017/

What is wrong with a file is one line, a UserError's.
"""

import dataclasses
import json
import math
import pathlib

import numpy as np
from PIL import Image, ImageDraw

from pictures import open_rgb
from user_errors import UserError

SLACK = 2.0   # Pixels that a box may lie outside by rounding.
NAMES = {int: 'a whole number', str: 'text', list: 'a list'}
NUMBER, ID, TEXT, LIST = (int,), (int, str), (str,), (list,)
FINE, LARGE = 4, 1 << 20  # Masks of fewer pixels are drawn as so many a side.


@dataclasses.dataclass(frozen=True)
class Object:
    label: int
    box: tuple        # x1, y1, x2, y2 in the picture's pixels.
    outline: object   # COCO's "segmentation", or None.

    def mask(self, size):
        """uint8 {0, 1} of the pixels from the box's floor to its ceiling, and where that begins;
        `size` is the picture's, (width, height)."""
        x, y = (math.floor(v) for v in self.box[:2])
        wide, high = math.ceil(self.box[2]) - x, math.ceil(self.box[3]) - y
        if isinstance(self.outline, dict):
            return run_lengths(self.outline, size)[y:y + high, x:x + wide], (x, y)
        # Pillow's polygons are up to a pixel wider: fine ones are drawn, and pixels' centres read.
        fine = FINE if wide * high < LARGE else 1
        image = Image.new('L', (fine * wide, fine * high))
        draw = ImageDraw.Draw(image)
        for polygon in self.outline:
            draw.polygon([(fine * (px - x) - 0.5, fine * (py - y) - 0.5)
                          for px, py in zip(polygon[::2], polygon[1::2])], fill=1)
        return np.asarray(image)[fine // 2::fine, fine // 2::fine], (x, y)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A picture of the json."""

    path: pathlib.Path
    size: tuple       # (width, height), or None if the json does not say.
    objects: tuple

    def read(self, passed_over):
        """The picture, RGB, and its objects, or None."""
        picture = passed_over.read(self.path, open_rgb)
        if picture is None:
            return None
        if self.size not in (None, picture.size):
            raise UserError(f'{self.path}: {self.size[0]} x {self.size[1]} pixels in the json, '
                            f'{picture.size[0]} x {picture.size[1]} as it is shown')
        if self.size is None:
            for o in self.objects:
                check_box(o.box, picture.size, str(self.path))
        return picture, self.objects


def unpack(text):
    """COCO's packed run lengths: five bits a character, from the third on as differences."""
    counts, value, shift = [], 0, 0
    for character in text.encode():
        bits = character - 48
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
        value = shift = 0
    return counts


def run_lengths(outline, size):
    """The mask uint8 [H,W] of COCO's run lengths, which go down the columns."""
    counts = outline['counts']
    counts = unpack(counts) if isinstance(counts, str) else counts
    values = np.arange(len(counts), dtype=np.uint8) % 2
    return np.repeat(values, counts).reshape(size).T


def check_box(box, size, where):
    """An error if the box lies outside a picture of `size`."""
    if min(box[:2]) < -SLACK or box[2] > size[0] + SLACK or box[3] > size[1] + SLACK:
        raise UserError(f'{where}: box {[round(v, 1) for v in box]} is outside the picture, '
                        f'{size[0]} x {size[1]} pixels')


def check_outline(outline, size, where):
    """The outline, or None if there is none."""
    if not outline:
        return None
    if isinstance(outline, dict):
        counts = outline.get('counts')
        counts = unpack(counts) if isinstance(counts, str) else counts
        if not size or outline.get('size') != [size[1], size[0]] or not isinstance(counts, list) \
                or not all(isinstance(n, int) and n >= 0 for n in counts) \
                or sum(counts) != size[0] * size[1]:
            raise UserError(f'{where}: segmentation: not run lengths of the whole picture')
        return outline
    if not isinstance(outline, list) or not all(
            isinstance(p, list) and len(p) >= 6 and len(p) % 2 == 0
            and all(isinstance(v, (int, float)) for v in p) for p in outline):
        raise UserError(f'{where}: segmentation: expected polygons of three points or more')
    return outline


def members(root, name, kinds, path):
    """The objects of a list of the json; `kinds` are those of the values that each must have."""
    found = root.get(name) if isinstance(root, dict) else None
    if not isinstance(found, list):
        raise UserError(f'{path}: no list "{name}"')
    for number, value in enumerate(found):
        for key, kind in kinds.items():
            if not isinstance(value, dict) or key not in value:
                raise UserError(f'{path}: {name}[{number}] has no "{key}"')
            if not isinstance(value[key], kind):
                expected = ' or '.join(NAMES[k] for k in kind)
                raise UserError(f'{path}: {name}[{number}]: "{key}" is '
                                f'{json.dumps(value[key])[:40]}, expected {expected}')
    return found


def object_of(annotation, categories, images, path):
    """The Object of an annotation; None of a box without area."""
    where = f'{path}: annotation {annotation["id"]}'
    if annotation['category_id'] not in categories:
        raise UserError(f'{where}: category {annotation["category_id"]} is not in "categories"')
    if annotation['image_id'] not in images:
        raise UserError(f'{where}: image {annotation["image_id"]} is not in "images"')
    try:
        x, y, wide, high = map(float, annotation['bbox'])
    except (TypeError, ValueError):
        raise UserError(f'{where}: bbox: expected x, y, width, height') from None
    size, box = size_of(images[annotation['image_id']]), (x, y, x + wide, y + high)
    if size:
        check_box(box, size, where)
        box = tuple(min(max(v, 0.0), float(limit)) for v, limit in zip(box, size + size))
    if not (box[2] > box[0] and box[3] > box[1]):
        return None
    return Object(categories[annotation['category_id']], box,
                  check_outline(annotation.get('segmentation'), size, where))


def size_of(image):
    size = image.get('width'), image.get('height')
    return size if all(isinstance(v, int) for v in size) else None


def read_json(path, folder):
    """(entries, labels) of a json and the folder of its pictures. Labels are in the order of
    their ids; crowds and boxes without area are left out."""
    try:
        root = json.loads(path.read_bytes())
    except ValueError as error:
        raise UserError(f'{path}: not JSON: {error}') from error
    named = members(root, 'categories', {'id': NUMBER, 'name': TEXT}, path)
    named = sorted({c['id']: c['name'] for c in named}.items())
    categories = {number: k for k, (number, _) in enumerate(named)}
    images = {i['id']: i for i in members(root, 'images', {'id': ID, 'file_name': TEXT}, path)}
    objects = {number: [] for number in images}
    for a in members(root, 'annotations', {'id': ID, 'image_id': ID, 'category_id': NUMBER,
                                           'bbox': LIST}, path):
        found = object_of(a, categories, images, path)
        if found and not a.get('iscrowd'):
            objects[a['image_id']].append(found)
    if not any(objects.values()):
        raise UserError(f'{path}: no annotations')
    entries = []
    for number, image in images.items():
        entry = Entry(folder / image['file_name'], size_of(image), tuple(objects[number]))
        if not entry.path.is_file():
            raise UserError(f'{entry.path}: no such file, {path} names it')
        entries.append(entry)
    return entries, [name for _, name in named]


def open_coco(folder):
    """(entries to learn from, entries held out or None, labels) of DATA."""
    plain = folder / 'annotations.json'
    if plain.exists():
        entries, labels = read_json(plain, folder / 'images')
        return entries, None, labels
    found = []
    for split in ('train', 'val'):
        path = next(iter(sorted((folder / 'annotations').glob(f'instances_{split}*.json'))), None)
        if path is None:
            raise UserError(f'{folder}: neither {plain.name} nor annotations/instances_'
                            f'{split}2017.json')
        found.append(read_json(path, folder / path.stem.removeprefix('instances_')))
    (train, labels), (held_out, others) = found
    if others != labels:
        raise UserError(f'{folder}: the two files of annotations have other categories')
    return train, held_out, labels
