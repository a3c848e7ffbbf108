"""Finds the names of the classes: in a file, in a checkpoint, or in a known list. If there are
none, makes up names.
"""

import pathlib
import unicodedata

from checkpoint import hugging_face
from checkpoint.json_text import refuse_pointer
from checkpoint.tensor import CheckpointError

BLANKS = ' \t\n\v\f\r'

# Known lists of class names, by task and number of classes.
_KNOWN = {('DETECTION', 80): ('COCO', 'coco.txt'),
          ('SEGMENTATION', 150): ('ADE20K', 'ade20k.txt')}


def is_label(text):
    """Returns whether `text` is allowed as a line of labels.txt."""
    return isinstance(text, str) and text.strip(BLANKS) == text != '' and not any(
        ord(c) < 32 or ord(c) == 127 or unicodedata.category(c) == 'Cs' for c in text)


def parse_labels(text, where):
    """Returns the labels in the text of a file, one per line. Ignores a byte order mark, spaces
    around a label and blank lines at the end, like the server. tests/testdata/labels tests both
    readers.
    """
    lines = text.removeprefix('\ufeff').rstrip(BLANKS).split('\n')
    labels = [line.strip(BLANKS) for line in lines]
    for number, label in enumerate(labels, 1):
        if not label:
            raise CheckpointError(f'{where}: line {number} is blank, expected a label')
        if not is_label(label):
            raise CheckpointError(f'{where}: line {number}: expected a label, got {label!r}')
    return labels


def read_labels(path):
    """Returns the labels in a file. If a line is not a label, raises CheckpointError with the
    line's number.
    """
    data = pathlib.Path(path).read_bytes()
    refuse_pointer(path, data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(f'{path}: byte {error.start} is not UTF-8') from error
    return parse_labels(text, path)


def _checked(labels, where, classes):
    if len(labels) != classes:
        raise CheckpointError(f'{where}: {len(labels)} labels, expected one for each of the '
                              f'{classes} classes')
    return labels


def _of_meta(meta):
    """Returns the class names from mmengine's "dataset_meta" or mmcv's "CLASSES". The key may be in
    lower or upper case.
    """
    dataset = meta.get('dataset_meta')
    fields = {**meta, **dataset} if isinstance(dataset, dict) else meta
    return next((value for key, value in fields.items() if key.lower() == 'classes'), None)


def stored_labels(files, facts, classes):
    """Returns the class names in a checkpoint or beside it, or None if there are none. Uses the
    first of these sources that has names: labels.txt of a model directory, config.json, mmengine,
    tools/pytorch.

    If labels.txt or config.json has names, but not one for each class, raises CheckpointError. If
    the names of mmengine or tools/pytorch are not complete, they are ignored.
    """
    if files.own_labels is not None:
        return _checked(parse_labels(files.own_labels, 'labels.txt'), 'labels.txt', classes)
    named = hugging_face.read_labels(files.config, classes) if files.config else None
    if named:
        return named
    meta, own = (facts[key] if isinstance(facts.get(key), dict) else {}
                 for key in ('meta', 'facts'))
    for names in (_of_meta(meta), own.get('labels')):
        if isinstance(names, (tuple, list)) and len(names) == classes and all(
                map(is_label, names)):
            return list(names)
    return None


def choose_labels(path, opened, task, classes):
    """Returns (the labels, their source). If `path` is not None, reads this file. If it is None,
    uses the labels of the checkpoint `opened` or a known list. If there is neither, makes up names.
    """
    if path is not None:
        return _checked(read_labels(path), path, classes), str(path)
    stored = opened.labels
    if stored is not None:
        return stored, 'the checkpoint'
    if (task, classes) in _KNOWN:
        dataset, name = _KNOWN[task, classes]
        return read_labels(pathlib.Path(__file__).with_name(name)), f'{dataset}\'s list'
    return ([f'class_{i}' for i in range(classes)],
            'made up, as the checkpoint has none: --labels gives a file, one a line')
