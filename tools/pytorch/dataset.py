"""Pictures to train a classifier on, held in memory."""

import pathlib
import sys

import numpy as np
import torch

import classifier_files  # noqa: F401  Finds tools/checkpoint.
from checkpoint.labels import read_labels
from class_folders import open_folders, too_few
from picture_files import HELD_OUT
from pictures import PassedOver, read
from user_errors import UserError, read_text

MARGIN = 14  # Training pictures are this many pixels larger than the model's input.


class Composed:
    """The data that models/recipe/make_pictures.py wrote. refresh() finds files that were written
    later.

    draw() returns maps instead of pictures.
    """

    def __init__(self, folder):
        self.folder, self.files = folder, {}
        self.labels = read_labels(folder / 'labels.txt')
        held_out = np.load(folder / 'validation.npz')
        self.validation = held_out['pictures'], held_out['classes']
        self.refresh()
        self.has_teacher = all('features' in file for file in self.files.values())
        self.has_maps, self.passed_over = True, PassedOver()

    def refresh(self):
        for path in sorted(self.folder.glob('[0-9]*.npz')):
            if path not in self.files:
                with np.load(path) as file:
                    self.files[path] = dict(file)
        self.ordered = list(self.files.values())

    def taught(self, count):
        """Returns the teacher's features and the classes of the first `count` pictures. The caller
        fits the teacher's last layer to them.
        """
        classes = np.concatenate([file['classes'] for file in self.ordered])[:count]
        features = np.concatenate([file['features'] for file in self.ordered])[:count]
        return torch.from_numpy(features).float(), torch.from_numpy(classes)

    def draw(self, rng, count):
        """Returns (the trunk's maps float16 [n,C,h,w], classes, the teacher's features or None)."""
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
    """Folders of pictures, as class_folders.py finds them. draw() returns pictures as uint8
    [n,side,side,3], where side is `size` + MARGIN.

    Pictures that cannot be decoded are named on standard error and ignored.
    """

    has_teacher = has_maps = False

    def __init__(self, folder, size):
        found, self.passed_over = open_folders(folder), PassedOver()
        for note in found.notes:
            print(note, file=sys.stderr)
        self.labels, counts = found.labels, [0] * len(found.labels)
        train, held_out = [], []
        for path, k in found.train:
            kept = found.held_out is None and counts[k] % HELD_OUT == 0
            counts[k] += self.add(held_out if kept else train, path, k,
                                  size if kept else size + MARGIN)
        least = HELD_OUT if found.held_out is None else 1
        for label, count in zip(self.labels, counts):
            if count < least:
                raise too_few(found.folder / label, count, least)
        for path, k in found.held_out or ():
            self.add(held_out, path, k, size)
        if not held_out:
            raise UserError(f'{folder}: no held-out picture that can be read')
        (self.pictures, self.classes), self.validation = (
            (np.stack([p for p, _ in group]), np.array([k for _, k in group]))
            for group in (train, held_out))

    def add(self, group, path, k, side):
        """Adds a picture of class k. Returns whether it can be read."""
        picture = self.passed_over.read(path, lambda path: read(path, side))
        if picture is not None:
            group.append((picture, k))
        return picture is not None

    def refresh(self):
        pass

    def draw(self, rng, count):
        rows = rng.integers(0, len(self.classes), count)
        return self.pictures[rows], torch.from_numpy(self.classes[rows]), None


def open_data(folder, size):
    """Returns the pictures of `folder`. Their `credits` is the text of its CREDITS.md, or ''."""
    folder = pathlib.Path(folder)
    composed = (folder / 'validation.npz').exists()
    data = Composed(folder) if composed else Folders(folder, size)
    path = folder / 'CREDITS.md'
    data.credits = read_text(path) if path.exists() else ''
    return data
