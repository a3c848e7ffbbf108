"""Reads pictures with maps of their pixels' classes.

    DATA/images/a.jpg, DATA/maps/a.png              as `sfmamba eval` reads them
    DATA/images/{training,validation}/, DATA/annotations/{training,validation}/    ADE20K's

A map is a PNG, in 8-bit grey or with a palette. The value of a pixel is its class, and 255 is
ignored. DATA/labels.txt names the classes from 0 on, one per line.

    entries, held_out = open_maps(DATA)
    counts = counts_of(entries + (held_out or []))  # Of each class in each map.
"""

import dataclasses
import pathlib
import sys

import numpy as np
from PIL import Image

from map_classes import IGNORE
from picture_files import TAKEN, listed, others
from pictures import open_rgb, shown_size
from user_errors import UserError

# The bit depth and the colour type of a PNG: grey of 8 bits, or a palette of any depth.
KINDS = (b'\x08\x00', b'\x08\x03', b'\x04\x03', b'\x02\x03', b'\x01\x03')


def check_kind(path):
    """Raises an error unless the map is a PNG whose values can be read as they are stored."""
    with open(path, 'rb') as file:
        head = file.read(26)
    if head.startswith(b'\x89PNG') and head[24:] in KINDS:
        return
    raise UserError(f'{path}: expected a PNG of class numbers, 8 bits of grey or a palette')


@dataclasses.dataclass(frozen=True)
class Entry:
    path: pathlib.Path
    map: pathlib.Path
    zero_is_none: bool  # 0 is ignored and 1 the first class, as in ADE20K.

    def read(self, passed_over):
        """Returns (the picture in RGB, its map as an image of bytes). Returns None if one of them
        cannot be decoded. `passed_over` is a pictures.PassedOver, which reports the file.
        """
        picture = passed_over.read(self.path, open_rgb)
        classes = passed_over.read(self.map, self.classes) if picture else None
        return None if classes is None else (picture, Image.fromarray(classes))

    def classes(self, path):
        """Returns the map, uint8 [H,W]. Ignored pixels have the value 255."""
        stored = open_bytes(path)
        if self.zero_is_none:
            return np.where(stored == IGNORE, IGNORE, stored - np.uint8(1))
        return stored

    def counts(self):
        """Returns the number of pixels [256] of each class. Raises UserError if map and picture
        differ in size.

        If the map or the picture's header cannot be decoded, returns zeros and no error. read()
        reports the file later, when the pair is loaded.
        """
        check_kind(self.map)
        try:
            classes, size = self.classes(self.map), shown_size(self.path)
        except ValueError:
            return np.zeros(256, np.int64)
        if classes.shape[::-1] != size:
            raise UserError(f'{self.map}: {classes.shape[1]} x {classes.shape[0]} pixels, '
                            f'{self.path.name} has {size[0]} x {size[1]} as it is shown')
        return np.bincount(classes.ravel(), minlength=256)


def open_bytes(path):
    """Returns the map as uint8 [H,W]. Raises ValueError that names the file if it cannot be
    decoded.
    """
    try:
        with Image.open(path) as image:
            return np.array(image, np.uint8)
    except (OSError, SyntaxError) as error:
        raise ValueError(f'{path}: {error}') from error


def pairs(images, maps, zero_is_none):
    if not images.is_dir():
        raise UserError(f'{images}: no such folder')
    entries = [Entry(path, maps / f'{path.stem}.png', zero_is_none)
               for path in listed(images)]
    left = others(images)
    if left:
        print(f'{images}: {left} passed over: {TAKEN}', file=sys.stderr)
    for entry in entries:
        if not entry.map.is_file():
            raise UserError(f'{entry.path}: no map {entry.map}')
    return entries


def open_maps(folder, zero_is_none=False):
    """Returns (entries to learn from, entries held out or None) of the folder DATA."""
    if (folder / 'maps').is_dir():
        return pairs(folder / 'images', folder / 'maps', zero_is_none), None
    return tuple(pairs(folder / 'images' / split, folder / 'annotations' / split, zero_is_none)
                 for split in ('training', 'validation'))


def counts_of(entries):
    """Returns {entry: its counts()} of all maps, before training begins."""
    return {entry: entry.counts() for entry in entries}
