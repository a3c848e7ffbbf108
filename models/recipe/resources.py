"""Extracts the pictures of Qt's resource archives (.rcc), in which some children's games store
their pictures.

    python resources.py --out PICTURES --short 150 /usr/share/gcompris-qt/rcc/*.rcc

PICTURES receives the photographs and drawings. Their names are made from the paths in the archives.
Pictures with an alpha channel become PNG files, which are stamps for make_maps.py. JPEG files are
copied, and other pictures without an alpha channel become JPEG files.
"""

import argparse
import io
import pathlib
import struct
import sys
import zlib

from PIL import Image

MAGIC = b'qres'
ZLIB, FOLDER, ZSTD = 1, 2, 4  # Flags of an entry.
SUFFIXES = {'.jpg', '.jpeg', '.png', '.webp'}
LARGEST = 256 << 20           # Bytes after which the decompression of an entry stops.


def unpack(fields, data, place):
    """Returns the big-endian fields at a place. Raises ValueError if they end outside the
    archive."""
    if not 0 <= place <= len(data) - struct.calcsize(fields):
        raise ValueError(f'a part at byte {place}, expected within {len(data)} bytes')
    return struct.unpack_from(fields, data, place)


def content(data, place, flags):
    """Returns the bytes of an entry, decompressed."""
    size, = unpack('>I', data, place)
    stored = data[place + 4:place + 4 + size]
    if len(stored) < size:
        raise ValueError(f'an entry of {size} bytes at byte {place}, expected within {len(data)}')
    if flags & ZSTD:
        raise ValueError(f'an entry packed with zstd at byte {place}, expected zlib or none')
    if not flags & ZLIB:
        return stored
    try:
        return zlib.decompressobj().decompress(stored[4:], LARGEST)
    except zlib.error as error:
        raise ValueError(f'an entry at byte {place} that zlib does not unpack: {error}') from error


def entries(data):
    """Yields (path, bytes) of each file in an archive. Raises ValueError if it is damaged."""
    magic, version, tree, contents, names = unpack('>4s4I', data, 0)
    if magic != MAGIC or not 1 <= version <= 3:
        raise ValueError(f'begins with {magic!r}, version {version}, expected {MAGIC!r}, 1 to 3')
    size = 14 if version == 1 else 22
    left, seen = [(0, '')], set()
    while left:
        node, folder = left.pop()
        if node in seen:
            raise ValueError(f'entry {node} is in two folders, expected one')
        seen.add(node)
        name_at, flags, first, second = unpack('>IHII', data, tree + node * size)
        path = folder
        if node:  # The root has no name.
            length, = unpack('>H', data, names + name_at)
            name, = unpack(f'>{2 * length}s', data, names + name_at + 6)
            path = f'{folder}/{name.decode("utf-16-be", "replace")}'
        if flags & FOLDER:
            if first > len(data) // size:
                raise ValueError(f'a folder of {first} entries, expected {len(data) // size} at most')
            left += [(second + i, path) for i in range(first)]
        else:
            yield path.lstrip('/'), content(data, contents + second, flags)


def file_name(path, suffix):
    """Returns a file name without folders for an entry at this path of an archive."""
    stem = pathlib.PurePosixPath(path).with_suffix('')
    return '_'.join(part for part in stem.parts if part not in ('/', '..')) + suffix


def save(path, stored, out, short):
    """Writes an entry if it is a picture whose short side has at least `short` pixels. Returns
    whether it was written."""
    if pathlib.PurePosixPath(path).suffix.lower() not in SUFFIXES:
        return False
    try:
        with Image.open(io.BytesIO(stored)) as image:
            image.load()
    except (OSError, ValueError, Image.DecompressionBombError):
        return False
    if min(image.size) < short:
        return False
    alpha = 'A' in image.getbands() or 'transparency' in image.info
    name = file_name(path, '.png' if alpha else '.jpg')
    if not alpha and image.format == 'JPEG':
        (out / name).write_bytes(stored)
    else:
        image.convert('RGBA' if alpha else 'RGB').save(out / name, quality=95)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('archives', nargs='+', type=pathlib.Path)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--short', type=int, default=150, help='least short side, pixels')
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for archive in args.archives:
        try:
            count = sum(save(path, stored, args.out, args.short)
                        for path, stored in entries(archive.read_bytes()))
            print(f'{archive.name}: {count} pictures')
        except ValueError as error:
            print(f'{archive.name}: {error}', file=sys.stderr)


if __name__ == '__main__':
    main()
