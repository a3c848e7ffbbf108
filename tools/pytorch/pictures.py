"""Reads pictures from files as the server sees them, for the training scripts.

    picture = pictures.open_rgb(path)       # Turned by EXIF; ValueError names a broken file.
    passed_over = pictures.PassedOver()
    for path in listed(folder):             # Of picture_files.
        picture = passed_over.read(path, pictures.open_rgb)  # Or None, after naming the file.
"""

import struct
import sys
import warnings

import numpy as np
from PIL import Image

ORIENTATION = 0x0112  # EXIF's tag.
TURNS = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
         4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
         6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
         8: Image.Transpose.ROTATE_90}


def orientation(image):
    """EXIF's orientation, or 1 if there is none or it is corrupt. XMP and a PNG's text are not
    read, because the server does not read them."""
    exif = Image.Exif()
    try:
        with warnings.catch_warnings(action='ignore'):
            exif.load(image.info.get('exif', b''))
            return exif.get(ORIENTATION, 1)
    except (SyntaxError, ValueError, struct.error):
        return 1


def as_served(image):
    """Returns the picture in RGB as the server decodes it. It is rotated as its EXIF data say.
    16-bit grey is reduced to its high byte.
    """
    image.load()  # A PNG's EXIF data may follow its pixels.
    turn = TURNS.get(orientation(image))
    # Pillow before 11 reads a PNG of 16-bit grey as mode I.
    if image.mode.startswith('I;16') or (image.mode == 'I' and image.format == 'PNG'):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    image = image.convert('RGB')
    return image if turn is None else image.transpose(turn)


def _has_late_exif(path):
    """Returns whether a PNG has EXIF data. They may follow its pixels."""
    with open(path, 'rb') as file:
        file.seek(8)
        while len(head := file.read(8)) == 8:
            length, kind = struct.unpack('>I4s', head)
            if kind == b'eXIf':
                return True
            file.seek(length + 4, 1)
    return False


def shown_size(path):
    """Returns (width, height) of as_served() for a file, from its header. Raises ValueError like
    open_rgb().
    """
    def size_of(image):
        if image.format == 'PNG' and 'exif' not in image.info and _has_late_exif(path):
            image.load()
        return image.size[::-1] if orientation(image) >= 5 else image.size
    return _opened(path, size_of)


def _opened(path, use):
    try:
        with Image.open(path) as image:
            return use(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = getattr(error, 'strerror', None) or str(error).replace(f' {str(path)!r}', '')
        raise ValueError(f'{path}: {reason}') from error


def open_rgb(path):
    """Returns as_served() of a file. Raises ValueError, naming the file, if it cannot be read or
    decoded, for example because it is truncated."""
    return _opened(path, as_served)


def read(path, size):
    """Returns preprocess() of a file. Raises ValueError like open_rgb()."""
    return _opened(path, lambda image: preprocess(image, size))


class PassedOver:
    """Names on standard error the files that cannot be read, and counts them."""

    def __init__(self):
        self.count = 0

    def read(self, path, reader):
        """Returns reader(path), or None if it raises ValueError."""
        try:
            return reader(path)
        except ValueError as error:
            self.count += 1
            print(f'passed over: {error}', file=sys.stderr)
            return None

    def __str__(self):
        return f'{self.count} file{"" if self.count == 1 else "s"} passed over'


def preprocess(image, size):
    """Resizes the short side to `size`, bicubic with antialiasing, and crops the centre, uint8
    [S,S,3]. The picture is rotated first, as in the server."""
    image = as_served(image)
    scale = size / min(image.size)
    wide, high = (size if side == min(image.size) else int(side * scale) for side in image.size)
    image = image.resize((wide, high), Image.BICUBIC)
    x, y = round((wide - size) / 2), round((high - size) / 2)
    return np.asarray(image.crop((x, y, x + size, y + size)))
