"""Pictures for detectors and segmenters. Reads them, holds them in memory, and places them on the
network's input.

A target is what is to be learned from a picture: objects (coco_files.py), or a map of classes
(map_files.py).
"""

import dataclasses
import math

import numpy as np
from PIL import Image

from picture_files import HELD_OUT
from pictures import PassedOver
from user_errors import UserError

CACHE = 1 << 30          # Bytes of pictures that are held in memory.
STEP = 32                # The sides of the input are multiples of this.
SCALES = (0.6, 1.6)      # Training pictures are scaled by these factors of the served size.
LEAST_VISIBLE, LEAST_SIDE = 0.3, 3  # Objects with less of their area or fewer pixels are left out.


class Examples:
    """Pictures with targets, as the entries' read() returns them. Pictures that cannot be decoded
    are named on standard error, ignored and counted."""

    def __init__(self, entries, passed_over):
        self.entries, self.held, self.bytes = list(entries), {}, 0
        self.passed_over = passed_over
        for i in range(len(self.entries)):
            if self.bytes > CACHE:
                break
            self.load(i)
        self.entries = [entry for entry in self.entries if entry is not None]
        self.held = dict(enumerate(self.held[i] for i in sorted(self.held)))

    def __len__(self):
        return len(self.entries)

    def load(self, i):
        """Returns the picture and its target, or None if it cannot be decoded."""
        if i in self.held or self.entries[i] is None:
            return self.held.get(i)
        found = self.entries[i].read(self.passed_over)
        if found is None:
            self.entries[i] = None
            return None
        if self.bytes <= CACHE:
            self.held[i] = found
            self.bytes += 4 * math.prod(found[0].size)
        return found

    def draw(self, rng, count):
        """`count` random pictures and targets. All of them are wide, or all are high."""
        drawn = []
        for _ in range(100 * count):
            found = self.load(int(rng.integers(len(self.entries))))
            if found and (not drawn or is_wide(found[0]) == is_wide(drawn[0][0])):
                drawn.append(found)
            if len(drawn) == count:
                return drawn
        if not drawn:
            raise UserError('no picture can be decoded')
        return (drawn * count)[:count]

    def all(self, limit):
        """Returns the first `limit` pictures and targets."""
        found = (self.load(i) for i in range(min(limit, len(self.entries))))
        return (pair for pair in found if pair)


def split(entries, held_out):
    """Returns (Examples to learn from, Examples held out). If `held_out` is None, every fifth is
    held out."""
    passed_over = PassedOver()
    if held_out is not None:
        return Examples(entries, passed_over), Examples(held_out, passed_over)
    examples = Examples(entries, passed_over)
    parts = []
    for wanted in (False, True):
        rows = [i for i in range(len(examples)) if (i % HELD_OUT == 0) == wanted]
        part = Examples([], passed_over)
        part.entries = [examples.entries[i] for i in rows]
        part.held = {n: examples.held[i] for n, i in enumerate(rows) if i in examples.held}
        part.bytes = examples.bytes
        parts.append(part)
    return parts


def is_wide(picture):
    return picture.size[0] > picture.size[1]


def fitted(size, short, long):
    """Returns the size, (width, height), to which the server resizes a picture."""
    scale = min(long / max(size), short / min(size))
    return tuple(max(1, math.floor(side * scale + 0.5)) for side in size)


def padded(size):
    return tuple(-(-side // STEP) * STEP for side in size)


@dataclasses.dataclass(frozen=True)
class Placement:
    """The place of a picture on the input. x becomes x * scale + shift, and so does y."""

    scale: tuple
    shift: tuple
    size: tuple  # (width, height) of the input.

    def warp(self, image, fill=0, corner=(0, 0), smooth=False):
        """Draws a part of the picture, which begins at `corner`, on the input."""
        (sx, sy), (tx, ty), (cx, cy) = self.scale, self.shift, corner
        return image.transform(
            self.size, Image.Transform.AFFINE, (1 / sx, 0, -tx / sx - cx, 0, 1 / sy, -ty / sy - cy),
            Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST, fillcolor=fill)

    def boxes(self, objects):
        """Returns (boxes, shares): float32 [n,4] clipped to the input, and the share of each that
        lies on it."""
        boxes = np.array([o.box for o in objects], np.float64).reshape(-1, 2, 2)
        boxes = np.sort(boxes * self.scale + self.shift, axis=1)
        clipped = boxes.clip(0, self.size)
        areas = [np.prod(b[:, 1] - b[:, 0], axis=1) for b in (clipped, boxes)]
        return clipped.reshape(-1, 4).astype(np.float32), areas[0] / areas[1]

    def masks(self, objects, size):
        """Returns the masks, uint8 [n,H,W] {0, 1}, of objects in a picture of `size`."""
        warped = (self.warp(Image.fromarray(mask), corner=corner)
                  for mask, corner in (o.mask(size) for o in objects))
        return np.array(list(warped), np.uint8).reshape(-1, *self.size[::-1])


def as_it_is_served(size, short, long):
    """Returns the Placement of a picture of `size` that fills its input."""
    new = fitted(size, short, long)
    return Placement(tuple(n / s for n, s in zip(new, size)), (0, 0), new)


def by_chance(rng, size, short, long, canvas):
    """Returns a random Placement on `canvas`, in which the picture is scaled, moved, and perhaps
    mirrored.
    """
    low, high = np.log(SCALES)
    factor = np.exp(rng.uniform(low, high))
    scale = [factor * new / side for new, side in zip(fitted(size, short, long), size)]
    room = [c - s * side for c, s, side in zip(canvas, scale, size)]
    shift = [rng.uniform(min(r, 0), max(r, 0)) for r in room]
    if rng.random() < 0.5:
        scale[0], shift[0] = -scale[0], canvas[0] - shift[0]
    return Placement(tuple(scale), tuple(shift), canvas)


def seen(boxes, shares):
    """Returns the rows of the objects of which enough lies on the input."""
    sides = (boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=np.inf)
    return np.nonzero((shares >= LEAST_VISIBLE) & (sides >= LEAST_SIDE))[0]


def other_light(rng, picture):
    """Returns the picture, uint8 [H,W,3], in random other light and colours."""
    gain = rng.uniform(0.8, 1.25) * rng.uniform(0.9, 1.1, 3)
    return np.clip(picture * gain + rng.uniform(-16, 16), 0, 255).astype(np.uint8)
