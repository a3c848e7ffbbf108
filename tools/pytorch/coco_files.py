"""Reads pictures with boxes, and perhaps masks, from COCO's JSON.

    entries, held_out, labels = open_coco(DATA)

tools/coco says which layouts and contents are accepted. If a file is wrong, CocoError is raised
with one line.
"""

import dataclasses
import math
import pathlib

import numpy as np
from PIL import Image, ImageDraw

import classifier_files  # noqa: F401  Finds tools/coco.
from coco import annotations, layouts
from coco.annotations import CocoError, unpack
from pictures import open_rgb, shown_size

FINE, LARGE = 4, 1 << 20  # Masks of fewer than LARGE pixels are drawn FINE times as large.


@dataclasses.dataclass(frozen=True)
class Object:
    label: int
    box: tuple        # x1, y1, x2, y2 in the picture's pixels.
    outline: object   # COCO's "segmentation", or None.

    def mask(self, size):
        """Returns (mask, corner). The mask is uint8 {0, 1} and covers the box, rounded to whole
        pixels. It begins at the corner. `size` is the picture's (width, height)."""
        x, y = (math.floor(v) for v in self.box[:2])
        wide, high = math.ceil(self.box[2]) - x, math.ceil(self.box[3]) - y
        if isinstance(self.outline, dict):
            return run_lengths(self.outline, size)[y:y + high, x:x + wide], (x, y)
        # Pillow draws polygons up to a pixel too wide. So they are drawn larger, and only the
        # pixels' centres are read.
        fine = FINE if wide * high < LARGE else 1
        image = Image.new('L', (fine * wide, fine * high))
        draw = ImageDraw.Draw(image)
        for polygon in self.outline:
            draw.polygon([(fine * (px - x) - 0.5, fine * (py - y) - 0.5)
                          for px, py in zip(polygon[::2], polygon[1::2])], fill=1)
        return np.asarray(image)[fine // 2::fine, fine // 2::fine], (x, y)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A picture of the JSON file."""

    path: pathlib.Path
    objects: tuple

    def read(self, passed_over):
        """Returns (the picture in RGB, its objects), or None if it cannot be decoded."""
        picture = passed_over.read(self.path, open_rgb)
        return None if picture is None else (picture, self.objects)


def run_lengths(outline, size):
    """Returns the mask uint8 [H,W] of COCO's run lengths, which go down the columns."""
    counts = outline['counts']
    counts = unpack(counts) if isinstance(counts, str) else counts
    values = np.arange(len(counts), dtype=np.uint8) % 2
    return np.repeat(values, counts).reshape(size).T


def _size_of(image, path):
    """Returns the picture's size, from its header. Raises CocoError if the JSON has another size.
    If the picture cannot be read, returns the JSON's size. Entry.read() later reports the picture.
    """
    try:
        size = shown_size(path)
    except ValueError:
        return image.size
    if image.size not in (None, size):
        raise CocoError(f'{path}: {image.size[0]} x {image.size[1]} pixels in the json, '
                        f'{size[0]} x {size[1]} as it is shown')
    return size


def _entries(file, paths, labels, say):
    """Returns the Entries of a file whose pictures have these paths. If annotations are changed or
    left out, calls `say` with a line about them.
    """
    found = annotations.objects(file, lambda image: _size_of(image, paths[image.id]))
    note = found.note(file.path)
    if not found.found:
        raise CocoError(f'{note or file.path}: no annotation is left to use')
    if note:
        say(note)
    objects = {number: [] for number in file.images}
    for o in found.found:
        label = labels.index(file.categories[o.category_id].name)
        objects[o.image_id].append(Object(label, o.box, o.outline))
    return [Entry(paths[number], tuple(objects[number])) for number in file.images]


def _check_same(learnt, held_out):
    names = [{c.name for c in file.categories.values()} for file in (learnt, held_out)]
    if names[0] != names[1]:
        other = sorted(names[0] ^ names[1])[0]
        raise CocoError(f'{learnt.path} and {held_out.path} have other categories: {other} is in '
                        'one of them')


def open_coco(folder, json=None, images=None, say=print):
    """Returns (entries to learn from, entries held out or None, labels) for the folder DATA. `json`
    and `images` are --annotations and --images, or None. Calls `say` with lines for the user."""
    learnt, held_out = (json, None) if json else layouts.find(folder)
    files, notes = annotations.read([path for path in (learnt, held_out) if path])
    for note in notes:
        say(note)
    labels = [category.name for category in files[0].categories.values()]
    if held_out:
        _check_same(*files)
    parts = [_entries(file, layouts.pictures_in(images, file) if images else
                      layouts.pictures(file, folder), labels, say) for file in files]
    return parts[0], parts[1] if held_out else None, labels
