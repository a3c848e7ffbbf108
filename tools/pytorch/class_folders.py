"""Finds the pictures of a classifier: a folder for each class, perhaps in train/ and val/. Needs
only Python.

    found = open_folders(DATA)
    for path, k in found.train: ...         # found.labels[k] is its class.

If a folder is wrong, UserError is raised with one line.
"""

import dataclasses

from picture_files import TAKEN, listed, others, visible
from user_errors import UserError

TRAIN = ('train', 'training')
VALIDATION = ('val', 'valid', 'validation')
TEST = ('test', 'testing')


@dataclasses.dataclass
class ClassFolders:
    folder: object   # The folder that has the classes to learn from.
    labels: list
    train: list  # (path, class) of each picture.
    held_out: list  # The same, or None: every fifth picture is held out.
    notes: list      # Lines to print.


def classes_in(folder, notes):
    """Returns the folders of the classes. If folders are ignored, appends a line about them to
    `notes`.
    """
    found, passed_over = visible(folder)
    if passed_over:
        notes.append(f'{folder}: passed over: {", ".join(passed_over)} (no pictures)')
    return found


def _splits(folder):
    """Returns (folder for training, folder for validation or None), or None if the classes are in
    `folder` itself. A folder "train" that contains pictures is a class, because a train is also a
    vehicle.
    """
    found = {}
    for path in visible(folder)[0]:
        for kind in (TRAIN, VALIDATION):
            if path.name.lower() in kind and visible(path)[0] and not listed(path):
                if kind in found:
                    raise UserError(f'{folder}: {found[kind].name} and {path.name} are both there: '
                                    'expected one')
                found[kind] = path
    return (found[TRAIN], found.get(VALIDATION)) if TRAIN in found else None


def _pictures(folders, labels, notes):
    found = []
    for folder in folders:
        paths, left = listed(folder), others(folder)
        if left:
            notes.append(f'{folder}: {left} passed over: {TAKEN}')
        found += [(path, labels.index(folder.name)) for path in paths]
    return found


def open_folders(folder):
    """Returns the ClassFolders of a folder of data."""
    notes, splits = [], _splits(folder)
    train, held_out = splits or (folder, None)
    if splits:
        unused = [path.name for path in visible(folder)[0] if path not in splits]
        if unused:
            notes.append(f'{folder}: not used: {", ".join(unused)}')
    classes = classes_in(train, notes)
    labels = [path.name for path in classes]
    if len(labels) < 2:
        raise UserError(f'{train}: {len(labels)} sub-folders, expected one for each of two or more '
                        'classes')
    kept = None
    if held_out:
        folders = classes_in(held_out, notes)
        strange = [path for path in folders if path.name not in labels]
        if strange:
            raise UserError(f'{strange[0]}: {train} has no such class')
        kept = _pictures(folders, labels, notes)
    return ClassFolders(train, labels, _pictures(classes, labels, notes), kept, notes)


def too_few(folder, count, least):
    """Returns the error for a class with fewer pictures than are needed."""
    left = others(folder)
    return UserError(f'{folder}: {count} pictures that can be read, expected at least {least}' +
                     (f'; it has {left}: {TAKEN}' if left else ''))
