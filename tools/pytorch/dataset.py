"""Pictures to train a classifier on, held in memory."""

import pathlib
import struct
import sys
import warnings

import numpy as np
import torch
from PIL import Image

MARGIN = 14     # Pixels that training pictures are larger than the model's input.
HELD_OUT = 5    # Of a folder's pictures, every fifth is for validation.
SUFFIXES = ('.jpg', '.jpeg', '.jpe', '.jfif', '.png', '.webp', '.bmp')
ORIENTATION = 0x0112  # EXIF's tag.
TURNS = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
         4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
         6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
         8: Image.Transpose.ROTATE_90}


def orientation(image):
    """EXIF's, 1 if there is none or it is corrupt. XMP's and that of a PNG's text are not read, as
    the server does not."""
    exif = Image.Exif()
    try:
        with warnings.catch_warnings(action='ignore'):
            exif.load(image.info.get('exif', b''))
            return exif.get(ORIENTATION, 1)
    except (SyntaxError, ValueError, struct.error):
        return 1


def as_served(image):
    """The picture in RGB as the server decodes it: turned as its EXIF data say; of 16-bit grey the
    high byte."""
    image.load()  # A PNG's EXIF data may follow its pixels.
    turn = TURNS.get(orientation(image))
    # Pillow before 11 reads a PNG of 16-bit grey as mode I.
    if image.mode.startswith('I;16') or (image.mode == 'I' and image.format == 'PNG'):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    image = image.convert('RGB')
    return image if turn is None else image.transpose(turn)


def is_picture(path):
    """Whether a file of a folder is taken: it is not hidden, and a picture by its name or its first
    bytes."""
    if path.name.startswith('.') or not path.is_file():
        return False
    if path.suffix.lower() in SUFFIXES:
        return True
    with path.open('rb') as file:
        start = file.read(12)
    return (start.startswith((b'\xff\xd8', b'\x89PNG\r\n\x1a\n'))
            or start[:4] + start[8:] == b'RIFFWEBP')


def read(path, size):
    """The file's preprocess(). ValueError that names it if it cannot be decoded, such as one that
    is truncated."""
    try:
        with Image.open(path) as image:
            return preprocess(image, size)
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f'{path}: {error}') from error


def preprocess(image, size):
    """Short side to `size`, bicubic with antialiasing, then the centre; uint8 [S,S,3]. The picture
    is turned first, as the server does."""
    image = as_served(image)
    scale = size / min(image.size)
    wide, high = (size if side == min(image.size) else int(side * scale) for side in image.size)
    image = image.resize((wide, high), Image.BICUBIC)
    x, y = round((wide - size) / 2), round((high - size) / 2)
    return np.asarray(image.crop((x, y, x + size, y + size)))


class Composed:
    """What models/recipe/make_pictures.py wrote; refresh() finds files that came since.

    draw() gives maps in place of pictures.
    """

    def __init__(self, folder):
        self.folder, self.files = folder, {}
        self.labels = (folder / 'labels.txt').read_text(encoding='utf-8').splitlines()
        held_out = np.load(folder / 'validation.npz')
        self.validation = held_out['pictures'], held_out['classes']
        self.refresh()
        self.has_teacher = all('features' in file for file in self.files.values())
        self.has_maps = True

    def refresh(self):
        for path in sorted(self.folder.glob('[0-9]*.npz')):
            if path not in self.files:
                with np.load(path) as file:
                    self.files[path] = dict(file)
        self.ordered = list(self.files.values())

    def taught(self, count):
        """Features and classes of the first pictures, to fit the teacher's last layer."""
        classes = np.concatenate([file['classes'] for file in self.ordered])[:count]
        features = np.concatenate([file['features'] for file in self.ordered])[:count]
        return torch.from_numpy(features).float(), torch.from_numpy(classes)

    def draw(self, rng, count):
        """The trunk's maps float16 [n,C,h,w], classes, and the teacher's features or None."""
        size = len(self.ordered[0]['classes'])
        rows = [divmod(i, size) for i in rng.integers(0, len(self.ordered) * size, count)]
        maps, classes = (np.stack([self.ordered[f][name][i] for f, i in rows])
                         for name in ('maps', 'classes'))
        features = None
        if self.has_teacher:
            features = np.stack([self.ordered[f]['features'][i] for f, i in rows])
            features = torch.from_numpy(features).float()
        return maps, torch.from_numpy(classes), features


class Folders:
    """A folder with one sub-folder of pictures per class; draw() gives uint8 [n,T,T,3].

    Pictures that cannot be decoded are named on standard error and passed over.
    """

    has_teacher = has_maps = False

    def __init__(self, folder, size):
        self.labels = sorted(path.name for path in folder.iterdir()
                             if path.is_dir() and not path.name.startswith('.'))
        train, held_out = [], []
        for k, label in enumerate(self.labels):
            count = 0
            for path in sorted(filter(is_picture, (folder / label).iterdir())):
                group, side = (held_out, size) if count % HELD_OUT == 0 else (train, size + MARGIN)
                try:
                    group.append((read(path, side), k))
                    count += 1
                except ValueError as error:
                    print(f'passed over: {error}', file=sys.stderr)
            if count < HELD_OUT:
                raise ValueError(f'{folder / label}: fewer than {HELD_OUT} pictures')
        if len(self.labels) < 2:
            raise ValueError(f'{folder}: fewer than two sub-folders')
        (self.pictures, self.classes), self.validation = (
            (np.stack([p for p, _ in group]), np.array([k for _, k in group]))
            for group in (train, held_out))

    def refresh(self):
        pass

    def draw(self, rng, count):
        rows = rng.integers(0, len(self.classes), count)
        return self.pictures[rows], torch.from_numpy(self.classes[rows]), None


def open_data(folder, size):
    """The pictures of `folder`; `credits` is the text of its CREDITS.md, if it has one."""
    folder = pathlib.Path(folder)
    composed = (folder / 'validation.npz').exists()
    data = Composed(folder) if composed else Folders(folder, size)
    path = folder / 'CREDITS.md'
    data.credits = path.read_text(encoding='utf-8') if path.exists() else ''
    return data
