"""Tells which files of a folder are pictures to train with. Needs only Python.

    paths = picture_files.listed(folder)
    print(picture_files.others(folder))     # '6 GIF files', or ''.
"""

import collections

SUFFIXES = ('.jpg', '.jpeg', '.jpe', '.jfif', '.png', '.webp', '.bmp')
TAKEN = 'JPEG, PNG, WebP and BMP are taken'
HELD_OUT = 5  # Every fifth picture is for validation if the data do not say which are.
# Formats that training does not accept, because the server does not.
OTHERS = {'.gif': 'GIF', '.tif': 'TIFF', '.tiff': 'TIFF', '.heic': 'HEIC', '.heif': 'HEIC',
          '.avif': 'AVIF', '.jp2': 'JPEG 2000', '.jxl': 'JPEG XL', '.svg': 'SVG'}


def is_picture(path):
    """Returns whether a file is accepted. It must not be hidden, and it must be a picture by its
    name or its first bytes.
    """
    if path.name.startswith('.') or not path.is_file():
        return False
    if path.suffix.lower() in SUFFIXES:
        return True
    with path.open('rb') as file:
        start = file.read(12)
    return (start.startswith((b'\xff\xd8', b'\x89PNG\r\n\x1a\n'))
            or start[:4] + start[8:] == b'RIFFWEBP')


def listed(folder):
    """Returns the pictures of a folder in the order of their names."""
    return sorted(filter(is_picture, folder.iterdir()))


def others(folder):
    """Returns the number of pictures of a folder in formats that are not accepted: '6 GIF files',
    or ''.
    """
    counts = collections.Counter(
        OTHERS[path.suffix.lower()] for path in folder.iterdir()
        if path.suffix.lower() in OTHERS and not path.name.startswith('.')
        and not is_picture(path))
    return ', '.join(f'{count} {kind} file{"s" * (count > 1)}'
                     for kind, count in sorted(counts.items()))


def visible(folder):
    """Returns (sub-folders that have files, names of ignored sub-folders) of a folder.

    The second list has the empty sub-folders and __MACOSX, which macOS adds to archives. Hidden
    sub-folders are in neither list.
    """
    found, passed_over = [], []
    for path in sorted(folder.iterdir()):
        if not path.is_dir() or path.name.startswith('.'):
            continue
        empty = all(inner.name.startswith('.') for inner in path.iterdir())
        if empty or path.name == '__MACOSX':
            passed_over.append(path.name)
        else:
            found.append(path)
    return found, passed_over
