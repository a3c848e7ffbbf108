"""Reads ImageNet's folders picture by picture: train/CLASS/*.JPEG and val/CLASS/*.JPEG.

    data = ImageFolders(folder, size)
    for step, batch in enumerate(batches(data, transform, order, ...)): ...

The transform of a picture depends only on the seed, the epoch and the picture's number. So a
resumed run sees the same pictures as a run without a stop, whatever the number of workers.
"""

import pathlib
import sys

import numpy as np
import torch

import pictures
from class_folders import classes_in
from picture_files import SUFFIXES
from user_errors import UserError

TRIES = 20  # How many pictures in a row are tried before the run fails.


class ImageFolders:
    """The files of train/ and val/ with the numbers of their classes. `labels` are the names of the
    class folders. A class's number is its index in `labels`.
    """

    def __init__(self, folder, size):
        self.size, self.passed_over = size, pictures.PassedOver()
        self.labels, self.train = self._read(folder / 'train')
        labels, self.held_out = self._read(folder / 'val')
        if labels != self.labels:
            other = sorted(set(labels) ^ set(self.labels))
            raise UserError(f'{folder}: train and val have other classes: {other[0]}, ...')

    @staticmethod
    def _read(folder):
        notes = []
        labels = [path.name for path in classes_in(folder, notes)]
        for note in notes:
            print(note, file=sys.stderr)
        if len(labels) < 2:
            raise UserError(f'{folder}: {len(labels)} sub-folders, expected one for each of two or '
                            'more classes')
        files = []
        for k, label in enumerate(labels):
            found = [path for path in sorted((folder / label).iterdir())
                     if path.suffix.lower() in SUFFIXES
                     and not path.name.startswith('.')]
            if not found:
                raise UserError(f'{folder / label}: no pictures')
            files += [(str(path), k) for path in found]
        return labels, files

    def validation(self):
        """Yields (pictures uint8 [n,S,S,3], classes [n]) of val/, for 256 files at a time. Leaves
        out files that cannot be read.
        """
        for start in range(0, len(self.held_out), 256):
            rows = [(self.passed_over.read(pathlib.Path(path),
                                           lambda path: pictures.read(path, self.size)), k)
                    for path, k in self.held_out[start:start + 256]]
            rows = [row for row in rows if row[0] is not None]
            if rows:
                yield np.stack([row[0] for row in rows]), np.array([row[1] for row in rows])


class Order:
    """The pictures that a process takes at each step, as (epoch, number).

    Each epoch is a shuffle of all pictures. A step takes the next `batch` of them. Process `rank`
    takes every `processes`-th of these, in parts of `part` pictures. `first` is the step to begin
    with.
    """

    def __init__(self, count, batch, part, seed, first=0, rank=0, processes=1):
        if batch % (part * processes):
            raise UserError(f'a batch of {batch} is no multiple of {part} pictures on each of '
                            f'{processes} processes')
        self.count, self.batch, self.part, self.seed = count, batch, part, seed
        self.first, self.rank, self.processes = first, rank, processes

    def __iter__(self):
        epoch, shuffled = None, None
        position = self.first * self.batch + self.rank
        while True:
            chosen = []
            for _ in range(self.part):
                if position // self.count != epoch:
                    epoch = position // self.count
                    shuffled = np.random.default_rng((self.seed, epoch)).permutation(self.count)
                chosen.append((epoch, int(shuffled[position % self.count])))
                position += self.processes
            yield chosen


class Pictures(torch.utils.data.Dataset):
    """Maps (epoch, number) to (transform(picture), class, count). `number` is an index of `files`.
    If a file cannot be read, the next file is tried. `count` is the number of files that were
    skipped in this way.
    """

    def __init__(self, files, transform, seed):
        self.files, self.transform, self.seed = files, transform, seed

    def __getitem__(self, key):
        epoch, number = key
        passed_over = pictures.PassedOver()
        for i in range(number, number + TRIES):
            path, k = self.files[i % len(self.files)]
            picture = passed_over.read(pathlib.Path(path), pictures.open_rgb)
            if picture is not None:
                break
        else:
            raise UserError(f'{path}: the last of {TRIES} pictures in a row that cannot be read')
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(hash((self.seed, epoch, number)) % 2**63)
            return self.transform(picture), k, passed_over.count


def batches(files, transform, order, workers):
    """Yields (pictures, classes, numbers of skipped files) for each part of each step, without
    end."""
    return torch.utils.data.DataLoader(
        Pictures(files, transform, order.seed), batch_sampler=order, num_workers=workers,
        pin_memory=torch.cuda.is_available(), persistent_workers=workers > 0)
