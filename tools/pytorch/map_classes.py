"""Checks which classes the maps have, before training. Needs neither PyTorch nor Pillow.

    labels = labels_of(DATA, counts)        # `counts` comes from map_files.counts_of().
    notes = check_taught(labels, learnt, held_out)  # Sums of counts, see below.
"""

import numpy as np

import classifier_files  # noqa: F401  Finds tools/checkpoint.
from checkpoint.labels import read_labels
from user_errors import UserError

IGNORE = 255  # A map's value for pixels that do not count.


def labels_of(folder, counts):
    """Returns the names of the classes. `counts` comes from counts_of() for all maps.

    The names are the lines of labels.txt. If there is no such file, they are class_0, class_1 and
    so on, and each number up to the largest must occur. Otherwise raises UserError. Also raises it
    if a map has a class that labels.txt does not name.
    """
    found = np.flatnonzero(sum(counts.values())[:IGNORE])
    if not found.size:
        raise UserError(f'{folder}: no pixel of the maps has a class: all are ignored')
    largest = int(found[-1])
    path = folder / 'labels.txt'
    if path.exists():
        labels = read_labels(path)
        if len(labels) > IGNORE:
            raise UserError(f'{path}: {len(labels)} classes, expected {IGNORE} or fewer')
    elif len(found) <= largest:
        missing = next(k for k in range(largest) if k not in found)
        raise UserError(f'{folder}: a map has class {largest}, none has class {missing}: write '
                        f'{path.name} with a name for each class')
    else:
        labels = [f'class_{k}' for k in found]
    if largest >= len(labels):
        entry = next(e for e, n in counts.items() if n[largest])
        raise UserError(f'{entry.map}: has class {largest}, {path} names {len(labels)}')
    return labels


def _named(labels, rows):
    return ', '.join(f'{k} "{labels[k]}"' for k in rows)


def check_taught(labels, learnt, held_out):
    """Returns lines about classes that cannot be learned or measured. The arguments are the summed
    counts of all maps to learn from and of all held-out maps. Raises an error if fewer than two
    classes can be learned."""
    taught, measured = (part[:len(labels)] > 0 for part in (learnt, held_out))
    untaught = [k for k in range(len(labels)) if not taught[k]]
    hint = ''
    if learnt[IGNORE]:
        hint = f'; {IGNORE} is ignored, and 0 with --zero_is_ignored: write a class\'s number ' \
               'where they stand for it'
    if taught.sum() < 2:
        missing = f', none {_named(labels, untaught)}' if untaught else ''
        raise UserError(f'the maps to learn from have {_named(labels, np.flatnonzero(taught))} '
                        f'alone{missing}: expected two classes or more, the background is one'
                        f'{hint}')
    notes = []
    if untaught:
        notes.append('cannot be learned or measured, as no map to learn from has them: classes '
                     f'{_named(labels, untaught)}{hint}')
    unmeasured = np.flatnonzero(taught & ~measured)
    if unmeasured.size:
        notes.append('cannot be measured, as no held-out map has them: classes '
                     f'{_named(labels, unmeasured)}')
    return notes
