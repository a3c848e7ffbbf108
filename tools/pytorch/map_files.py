"""Reads pictures with maps of their pixels' classes.

    DATA/images/a.jpg, DATA/maps/a.png              as `sfmamba eval` reads them
    DATA/images/{training,validation}/, DATA/annotations/{training,validation}/    ADE20K's

A map is a PNG of 8-bit grey or of a palette: a pixel's value is its class, 255 is ignored.
DATA/labels.txt names the classes, one a line, from 0 on.
"""

import dataclasses
import pathlib

import numpy as np
from PIL import Image

from dense_pictures import IGNORE
from pictures import listed, open_rgb
from user_errors import UserError, read_text

# Depth and type of colour of a PNG: 8 bits of grey; a palette of any depth.
KINDS = (b'\x08\x00', b'\x08\x03', b'\x04\x03', b'\x02\x03', b'\x01\x03')


def check_kind(path):
    """An error if the map is not one that is read as it is stored."""
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
        """The picture, RGB, and its map, an image of bytes, or None."""
        picture = passed_over.read(self.path, open_rgb)
        check_kind(self.map)
        classes = passed_over.read(self.map, open_bytes) if picture else None
        if classes is None:
            return None
        if classes.shape[::-1] != picture.size:
            raise UserError(f'{self.map}: {classes.shape[1]} x {classes.shape[0]} pixels, '
                            f'{self.path.name} has {picture.size[0]} x {picture.size[1]} as it is '
                            'shown')
        if self.zero_is_none:
            classes = np.where(classes == IGNORE, IGNORE, classes - np.uint8(1))
        return picture, Image.fromarray(classes)


def open_bytes(path):
    """uint8 [H,W] of a map; ValueError that names it if it cannot be decoded."""
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
    for entry in entries:
        if not entry.map.is_file():
            raise UserError(f'{entry.path}: no map {entry.map}')
    return entries


def open_maps(folder, zero_is_none=False):
    """(entries to learn from, entries held out or None) of DATA."""
    if (folder / 'maps').is_dir():
        return pairs(folder / 'images', folder / 'maps', zero_is_none), None
    return tuple(pairs(folder / 'images' / split, folder / 'annotations' / split, zero_is_none)
                 for split in ('training', 'validation'))


def labels_of(folder, largest):
    """The names of the classes, of which the maps have numbers up to `largest`."""
    path = folder / 'labels.txt'
    if path.exists():
        labels = read_text(path).split('\n')
        labels = labels[:-1] if labels[-1] == '' else labels
    else:
        labels = [f'class_{k}' for k in range(largest + 1)]
    if largest >= len(labels):
        raise UserError(f'{folder}: a map has class {largest}, {path.name} names {len(labels)}')
    if len(labels) < 2:
        raise UserError(f'{folder}: one class, expected two or more: the background is one')
    return labels
