"""Which files of a folder are pictures to train with; needs only Python.

    paths = picture_files.listed(folder)
    print(picture_files.others(folder))     # '6 GIF files', or ''.
"""

import collections

SUFFIXES = ('.jpg', '.jpeg', '.jpe', '.jfif', '.png', '.webp', '.bmp')
TAKEN = 'JPEG, PNG, WebP and BMP are taken'
HELD_OUT = 5  # Every fifth picture is for validation where the data do not say.
# Pictures that are not taken, as the server does not take them.
OTHERS = {'.gif': 'GIF', '.tif': 'TIFF', '.tiff': 'TIFF', '.heic': 'HEIC', '.heif': 'HEIC',
          '.avif': 'AVIF', '.jp2': 'JPEG 2000', '.jxl': 'JPEG XL', '.svg': 'SVG'}


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


def listed(folder):
    """The pictures of a folder in the order of their names."""
    return sorted(filter(is_picture, folder.iterdir()))


def others(folder):
    """The pictures of a folder that are of kinds which are not taken: '6 GIF files', or ''."""
    counts = collections.Counter(
        OTHERS[path.suffix.lower()] for path in folder.iterdir()
        if path.suffix.lower() in OTHERS and not path.name.startswith('.')
        and not is_picture(path))
    return ', '.join(f'{count} {kind} file{"s" * (count > 1)}'
                     for kind, count in sorted(counts.items()))


def visible(folder):
    """(sub-folders with files in them, names of those passed over) of a folder: hidden ones are not
    named; empty ones and __MACOSX, which macOS adds to archives, are."""
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
