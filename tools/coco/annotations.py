"""Reads COCO's JSON, for training and for coco_ap.py.

    files, notes = read([path])                # Ids and names are checked.
    found = objects(files[0], lambda image: image.size)

`notes` are lines to print. If the content is wrong, CocoError is raised. Its line names the file
and the entry.
"""

import collections
import dataclasses
import json
import math
import pathlib

from checkpoint.labels import BLANKS, is_label

ROUNDING = 0.5  # In pixels. A box that extends less beyond its picture is not counted as clipped.
CLIPPED = ('box clipped to its picture', 'boxes clipped to their pictures')
EMPTY = ('box left out, as no area of it is in its picture',
         'boxes left out, as no area of them is in their pictures')
CROWD = ('crowd taken as its box, as its mask is malformed',
         'crowds taken as their boxes, as their masks are malformed')
SHORT = ('polygon passed over, as it has fewer than 3 points',
         'polygons passed over, as they have fewer than 3 points')


class CocoError(ValueError):
    """Raised with a one-line message that says what was found and what was expected."""


@dataclasses.dataclass(frozen=True)
class Image:
    id: int
    file_name: str
    size: tuple     # (width, height), or None if the JSON does not say.


@dataclasses.dataclass(frozen=True)
class Category:
    id: int
    name: str
    parent: str     # COCO's "supercategory", or None.


@dataclasses.dataclass(frozen=True)
class Object:
    image_id: int
    category_id: int
    box: tuple      # x1, y1, x2, y2 in the picture's pixels, clipped to the picture.
    outline: object  # Polygons, run lengths, or None.
    crowd: bool
    area: float


@dataclasses.dataclass
class File:
    path: pathlib.Path
    images: dict      # By id.
    categories: dict  # By id, in the order of the ids.
    rows: list        # (place, image_id, category_id, crowd, JSON object) of each annotation.


@dataclasses.dataclass
class Objects:
    found: list
    counts: collections.Counter  # The numbers of CLIPPED, EMPTY, SHORT and CROWD.

    def note(self, path):
        """Returns a line that says what was changed or left out. Returns '' if nothing was."""
        parts = [f'{self.counts[kind]} {kind[self.counts[kind] > 1]}'
                 for kind in (CLIPPED, EMPTY, SHORT, CROWD) if self.counts[kind]]
        return f'{path}: {"; ".join(parts)}' if parts else ''


def _shown(value):
    text = json.dumps(value)
    return text if len(text) <= 40 else f'{text[:37]}...'


def _whole(row, key, where, least=None):
    """Returns a value of a JSON object as a whole number. The value may be written as 640.0."""
    value = row[key]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or (least is not None and value < least):
        expected = 'a whole number' if least is None else f'a whole number of {least} or more'
        raise CocoError(f'{where}: "{key}" is {_shown(row[key])}, expected {expected}')
    return value


def _text(row, key, where):
    if not isinstance(row[key], str):
        raise CocoError(f'{where}: "{key}" is {_shown(row[key])}, expected text')
    return row[key]


def _finite(values):
    """Returns whether all values are finite numbers."""
    try:
        return all(type(v) is not bool and math.isfinite(v) for v in values)
    except (TypeError, OverflowError):
        return False


def _rows(root, name, keys, path):
    """Yields (place, object) for each entry of the list `name`. Each entry must have these keys."""
    found = root.get(name) if isinstance(root, dict) else None
    if not isinstance(found, list):
        raise CocoError(f'{path}: no list "{name}"')
    for number, row in enumerate(found):
        where = f'{path}: {name}[{number}]'
        for key in keys:
            if not isinstance(row, dict) or key not in row:
                raise CocoError(f'{where} has no "{key}"')
        yield where, row


def _images(root, path):
    images = {}
    for where, row in _rows(root, 'images', ('id', 'file_name'), path):
        size = None
        if row.get('width') is not None and row.get('height') is not None:
            size = _whole(row, 'width', where, 1), _whole(row, 'height', where, 1)
        image = Image(_whole(row, 'id', where), _text(row, 'file_name', where), size)
        if image.id in images:
            raise CocoError(f'{where}: id {image.id} is of two images, '
                            f'{images[image.id].file_name} and {image.file_name}')
        images[image.id] = image
    return images


def _categories(root, path):
    categories = {}
    for where, row in _rows(root, 'categories', ('id', 'name'), path):
        parent = row.get('supercategory')
        name = _text(row, 'name', where).strip(BLANKS)
        if not is_label(name):
            raise CocoError(f'{where}: "name" is {_shown(name)}, expected a line of text')
        category = Category(_whole(row, 'id', where), name,
                            parent.strip(BLANKS) if isinstance(parent, str) else None)
        if category.id in categories:
            raise CocoError(f'{where}: id {category.id} is of two categories, '
                            f'{categories[category.id].name} and {name}')
        categories[category.id] = category
    return dict(sorted(categories.items()))


def _annotations(root, images, categories, path):
    rows = []
    for where, row in _rows(root, 'annotations', ('image_id', 'category_id', 'bbox'), path):
        image, category = (_whole(row, key, where) for key in ('image_id', 'category_id'))
        if type(row.get('id')) is int:  # Only errors use it.
            where = f'{path}: annotation {row["id"]}'
        if category not in categories:
            raise CocoError(f'{where}: category {category} is not in "categories"')
        if image not in images:
            raise CocoError(f'{where}: image {image} is not in "images"')
        crowd = row.get('iscrowd') or 0
        if crowd not in (0, 1):
            raise CocoError(f'{where}: "iscrowd" is {_shown(crowd)}, expected 0 or 1')
        rows.append((where, image, category, bool(crowd), row))
    return rows


def _read_file(path):
    try:
        root = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise CocoError(f'{path}: not JSON: {error}') from error
    images, categories = _images(root, path), _categories(root, path)
    return File(path, images, categories, _annotations(root, images, categories, path))


def _leave_out_parents(files):
    """Removes categories that only group other categories and have no annotation, such as
    Roboflow's first one. Returns their names."""
    names = {}
    used = {category for file in files for _, _, category, _, _ in file.rows}
    for file in files:
        categories = file.categories.values()
        parents = {(c.id, c.name) for c in categories if c.id not in used and any(
            other.parent == c.name and other.id != c.id for other in categories)}
        for number, name in parents:
            del file.categories[number]
            names[name] = None
    return list(names)


def _check_names(file):
    ids = {}
    for category in file.categories.values():
        other = ids.setdefault(category.name, category.id)
        if other != category.id:
            raise CocoError(f'{file.path}: categories {other} and {category.id} are both named '
                            f'{category.name}')


def read(paths):
    """Returns (Files, notes) for files that belong together, such as one for training and one for
    validation.
    """
    files = [_read_file(pathlib.Path(path)) for path in paths]
    parents = _leave_out_parents(files)
    for file in files:
        _check_names(file)
    notes = [f'{files[0].path}: category {name} is left out: it groups others and has no '
             'annotation' for name in parents]
    return files, notes


def unpack(text):
    """Unpacks COCO's run lengths. Each character has five bits. From the fourth run on, a value is
    the difference from the run length two places before."""
    counts, value, shift = [], 0, 0
    for character in text.encode():
        bits = character - 48
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
        value = shift = 0
    return counts


def _run_lengths(outline, size, where):
    """Checks a mask that COCO stores as run lengths. Returns it with whole numbers. `size` is the
    picture's (width, height), or None if it is unknown. If it is known, the mask's "size", [height,
    width], must be the same.
    """
    found, counts = outline.get('size'), outline.get('counts')
    try:
        high, wide = (_whole({'size': v}, 'size', where, 1) for v in found)
        if not isinstance(counts, str):
            counts = [_whole({'counts': v}, 'counts', where, 0) for v in counts]
        runs = unpack(counts) if isinstance(counts, str) else counts
    except (TypeError, ValueError):
        raise CocoError(f'{where}: segmentation: expected "size", height and width, and "counts", '
                        'run lengths of 0 or more') from None
    if size not in (None, (wide, high)):
        raise CocoError(f'{where}: segmentation: run lengths of {wide} x {high} pixels, the '
                        f'picture has {size[0]} x {size[1]}')
    if sum(runs) != wide * high or min(runs) < 0:
        raise CocoError(f'{where}: segmentation: the run lengths are not of {wide} x {high} pixels')
    return {'size': [high, wide], 'counts': counts}


def _outline(outline, size, where, counts):
    """Returns the annotation's mask, or None if it has none."""
    if outline in (None, [], {}):
        return None
    if isinstance(outline, dict):
        return _run_lengths(outline, size, where)
    if not isinstance(outline, list) or not all(
            isinstance(p, list) and len(p) % 2 == 0 and _finite(p) for p in outline):
        raise CocoError(f'{where}: segmentation: expected polygons, each a list of x, y, x, y, ...')
    counts[SHORT] += sum(0 < len(p) < 6 for p in outline)
    return [p for p in outline if len(p) >= 6] or None


def _box(row, size, where, counts):
    """Returns the box, clipped to the picture. Returns None if nothing of it is left."""
    box = row['bbox']
    if not isinstance(box, list) or len(box) != 4 or not _finite(box):
        raise CocoError(f'{where}: "bbox" is {_shown(box)}, expected x, y, width and height')
    x, y, wide, high = map(float, box)
    limits = size + size if size else (math.inf,) * 4
    corners = (x, y, x + wide, y + high)
    clipped = tuple(min(max(v, 0.0), float(limit)) for v, limit in zip(corners, limits))
    if not (clipped[2] > clipped[0] and clipped[3] > clipped[1]):
        counts[EMPTY] += 1
        return None
    counts[CLIPPED] += max(abs(a - b) for a, b in zip(corners, clipped)) > ROUNDING
    return clipped


def objects(file, size_of, crowds=False):
    """Returns the Objects of a file. Includes and checks crowds only if `crowds`. size_of(Image)
    returns the picture's (width, height), or None if it is unknown.
    """
    sizes = {number: size_of(image) for number, image in file.images.items()}
    result = Objects([], collections.Counter())
    for where, image, category, crowd, row in file.rows:
        if crowd and not crowds:
            continue
        box = _box(row, sizes[image], where, result.counts)
        if box is None:
            continue
        try:
            outline = _outline(row.get('segmentation'), sizes[image], where, result.counts)
        except CocoError:
            if not crowd:
                raise
            outline = None
            result.counts[CROWD] += 1
        area = row.get('area')
        if not _finite([area]) or area < 0:
            area = (box[2] - box[0]) * (box[3] - box[1])
        result.found.append(Object(image, category, box, outline, crowd, area))
    return result
