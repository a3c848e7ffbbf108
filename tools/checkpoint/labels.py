"""Class names: given in a file, found in a checkpoint, known by their number, or made up."""

import pathlib

from checkpoint.tensor import CheckpointError

# Lists that belong to a task and a number of classes.
_KNOWN = {('DETECTION', 80): ('COCO', 'coco.txt'),
          ('SEGMENTATION', 150): ('ADE20K', 'ade20k.txt')}


def _is_label(text):
    return isinstance(text, str) and text.strip() == text != '' and text.isprintable()


def _read(path):
    try:
        text = pathlib.Path(path).read_text(encoding='utf-8')
    except ValueError as error:
        raise CheckpointError(f'{path}: not UTF-8') from error
    return [line.rstrip() for line in text.removesuffix('\n').split('\n')]


def _given(path, classes):
    labels = _read(path)
    for number, label in enumerate(labels, 1):
        if not _is_label(label):
            raise CheckpointError(f'{path}: line {number}: expected a label')
    if len(labels) != classes:
        raise CheckpointError(f'{path}: {len(labels)} labels, expected one for each of the '
                              f'{classes} classes')
    return labels


def _stored(facts):
    """The class names that mmengine (or, as CLASSES, mmcv) keeps in "meta", and tools/pytorch
    in "facts"."""
    meta, own = facts.get('meta'), facts.get('facts')
    if isinstance(meta, dict):
        dataset = meta.get('dataset_meta')
        names = dataset.get('classes') if isinstance(dataset, dict) else meta.get('CLASSES')
    else:
        names = own.get('labels') if isinstance(own, dict) else None
    fits = isinstance(names, (tuple, list)) and all(map(_is_label, names))
    return list(names) if fits else None


def choose_labels(path, facts, task, classes):
    """(the labels, where they come from); `path` may be None, `facts` is a StateDict's."""
    if path is not None:
        return _given(path, classes), str(path)
    stored = _stored(facts)
    if stored is not None and len(stored) == classes:
        return stored, 'the checkpoint'
    if (task, classes) in _KNOWN:
        dataset, name = _KNOWN[task, classes]
        return _read(pathlib.Path(__file__).with_name(name)), f'{dataset}\'s list'
    return ([f'class_{i}' for i in range(classes)],
            'made up, as the checkpoint has none: --labels gives a file, one a line')
