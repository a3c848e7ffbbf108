"""Finds COCO's JSON files in a folder of data, and the pictures that they name.

    train, held_out = find(folder)       # Paths; the second is None if the data do not say.
    paths = pictures(file, folder)       # {image id: path} of an annotations.File.

The name of a file or folder tells which part of the data it is, for example
instances_train2017.json, train/ or valid/. If there are several candidates, CocoError names them.
"""

import json
import os
import pathlib
import re

from coco.annotations import CocoError

PARTS = {'train': 'train', 'training': 'train', 'val': 'held out', 'valid': 'held out',
         'validation': 'held out', 'test': 'test', 'testing': 'test'}
KNOWN = re.compile(r'(annotations|result|_annotations\.coco|instances_.*)\.json')
LAYOUTS = ('annotations.json, result.json, annotations/instances_train*.json or '
           'train/_annotations.coco.json')
FLAGS = '--annotations FILE --images DIR'


def part_of(name):
    """Returns the part of the data to which a file or folder of this name belongs. This is a value
    of PARTS, or None if the name does not tell.
    """
    found = {PARTS[word] for word in re.findall('[a-z]+', name.lower()) if word in PARTS}
    return found.pop() if len(found) == 1 else None


def _folders(folder):
    return sorted(path for path in folder.glob('*') if path.is_dir()
                  and not path.name.startswith(('.', '__'))) if folder.is_dir() else []


def _is_coco(path):
    """Returns whether a JSON file of any name has COCO's lists."""
    try:
        root = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(root, dict) and {'images', 'annotations', 'categories'} <= root.keys()


def _files(folder):
    """Returns the files of annotations in a folder. If some are called instances_*, the others are
    ignored, such as captions.
    """
    found = sorted(path for path in folder.glob('*.json')
                   if path.is_file() and not path.name.startswith('.'))
    instances = [path for path in found if path.name.startswith('instances_')]
    return instances or [path for path in found if KNOWN.fullmatch(path.name) or _is_coco(path)]


def find(folder):
    """Returns (the file for training, the file for validation or None)."""
    if not folder.is_dir():
        raise CocoError(f'{folder}: no such folder')
    found = {'train': [], 'held out': [], 'test': [], None: []}
    for path in _files(folder):
        found[part_of(path.stem)].append(path)
    for sub in _folders(folder):
        if sub.name.lower() == 'annotations' or part_of(sub.name) in ('train', 'held out'):
            for path in _files(sub):
                found[part_of(path.stem) or part_of(sub.name)].append(path)
    learnt = found['train'] + found[None]
    for paths in (learnt, found['held out']):
        if len(paths) > 1:
            raise CocoError(f'{folder}: {paths[0]} and {paths[1]} are both annotations to read: '
                            f'choose by {FLAGS}')
    if not learnt:
        raise CocoError(f'{folder}: expected {LAYOUTS}, or {FLAGS}')
    return learnt[0], (found['held out'] or [None])[0]


def _located(folder, name, root):
    """Returns the path of the file `name` in a folder, or None. If `name` begins with the folder's
    own name, the folder is not repeated. Files outside of `root` are ignored.
    """
    for text in dict.fromkeys((name, name.replace('\\', '/'))):
        text = os.path.normpath(text) if text else ''
        first, _, rest = text.partition('/')
        for each in (text, rest if first == folder.name else ''):
            path = pathlib.Path(os.path.normpath(folder / each))
            if each and pathlib.Path(os.path.abspath(path)).is_relative_to(
                    os.path.abspath(root)) and path.is_file():
                return path
    return None


def _places(path, root):
    """Returns groups of folders that may contain the pictures of a JSON file. The most likely group
    comes first.
    """
    split, here = path.stem.removeprefix('instances_'), path.parent
    part = part_of(path.stem) or part_of(here.name)
    folders = _folders(root) + _folders(root / 'images')
    others = [f for f in folders if part_of(f.name) is None and f.name not in ('images', 'maps')]
    groups = [[root / split, root / 'images' / split, root / split / 'images']
              if split != path.stem else [],
              [here / 'images', here, root / 'images', root],
              [f for f in folders if part and part_of(f.name) == part],
              others]
    return [list(dict.fromkeys(f for f in group if f.is_dir())) for group in groups]


def _in(folder, file, root):
    """Returns {image id: path} of the file's pictures that are in a folder."""
    found = {}
    for number, image in file.images.items():
        path = _located(folder, image.file_name, root)
        if path:
            found[number] = path
    return found


def _missing(file, root, folder, found):
    image = next(i for i in file.images.values() if i.id not in found)
    path = pathlib.Path(os.path.abspath(folder / image.file_name))
    if not path.is_relative_to(os.path.abspath(root)):
        return CocoError(f'{file.path}: file_name {image.file_name} is outside {root}')
    if found:
        return CocoError(f'{folder / image.file_name}: no such file, {file.path} names it')
    return CocoError(f'{file.path}: its pictures, such as {image.file_name}, are in no folder of '
                     f'{root}: name theirs by --images DIR')


def pictures(file, root):
    """Returns {image id: path} of all pictures of a file. They must be in one folder of `root`."""
    best = root, {}
    for group in _places(file.path, root):
        whole = []
        for folder in group:
            found = _in(folder, file, root)
            if len(found) > len(best[1]):
                best = folder, found
            if len(found) == len(file.images):
                whole.append((folder, found))
        for folder, found in whole[1:]:
            if not all(os.path.samefile(found[i], whole[0][1][i]) for i in found):
                raise CocoError(f'{file.path}: its pictures are in {whole[0][0]} and in {folder}: '
                                'choose by --images DIR')
        if whole:
            return whole[0][1]
    raise _missing(file, root, *best)


def pictures_in(folder, file):
    """Returns {image id: path} of all pictures of a file. They must be in the folder that --images
    names."""
    found = _in(folder, file, folder)
    if len(found) < len(file.images):
        raise _missing(file, folder, folder, found)
    return found
