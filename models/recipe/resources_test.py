"""Tests that resources.py finds every file of an archive by its path, refuses archives that are cut
short, and saves only pictures."""

import io
import pathlib
import struct
import tempfile
import unittest
import zlib

import numpy as np
from PIL import Image

import resources


def picture(size=(200, 160), mode='RGB', form='PNG'):
    noise = np.random.default_rng(0).integers(0, 255, (*size[::-1], len(mode)), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, form)
    return file.getvalue()


def archive(files, version=3, flags=0):
    """Returns a qres archive with a folder `pictures`, which has the files. Their entries have these
    `flags`."""
    names, tree, contents = b'', [], b''

    def add_name(name):
        nonlocal names
        place = len(names)
        names += struct.pack('>HI', len(name), 0) + name.encode('utf-16-be')
        return place

    time = b'' if version == 1 else bytes(8)
    tree.append(struct.pack('>IHII', 0, resources.FOLDER, 1, 1) + time)
    tree.append(struct.pack('>IHII', add_name('pictures'), resources.FOLDER, len(files), 2) + time)
    for name, data in files.items():
        stored = struct.pack('>I', len(data)) + zlib.compress(data) if flags & resources.ZLIB else data
        tree.append(struct.pack('>IHII', add_name(name), flags, 0, len(contents)) + time)
        contents += struct.pack('>I', len(stored)) + stored
    head = 20 if version < 3 else 24
    tree = b''.join(tree)
    places = head, head + len(tree), head + len(tree) + len(contents)
    return struct.pack('>4s4I', b'qres', version, *places) + bytes(head - 20) + tree + contents + names


class EntriesTest(unittest.TestCase):
    def test_files_have_their_paths_in_every_version_packed_or_not(self):
        files = {'a.png': b'one', 'ä.txt': b'two' * 500, 'empty': b''}
        for version in (1, 2, 3):
            for flags in (0, resources.ZLIB):
                got = dict(resources.entries(archive(files, version, flags)))
                self.assertEqual(got, {f'pictures/{k}': v for k, v in files.items()},
                                 (version, flags))

    def test_what_is_cut_short_or_changed_is_refused_or_read_but_never_hangs(self):
        data = archive({'a.png': b'one' * 50, 'b.png': b'two' * 50}, flags=resources.ZLIB)
        for size in range(0, len(data), 7):
            with self.assertRaises(ValueError, msg=size):
                list(resources.entries(data[:size]))
        rng = np.random.default_rng(0)
        refused = 0
        for _ in range(2000):
            changed = bytearray(data)
            for place in rng.integers(0, len(data), 3):
                changed[place] = rng.integers(256)
            try:
                list(resources.entries(bytes(changed)))
            except ValueError:
                refused += 1
        self.assertGreater(refused, 500)

    def test_a_folder_within_itself_is_refused(self):
        data = bytearray(archive({'a.png': b'one'}))
        data[24 + 22 + 10:24 + 22 + 14] = struct.pack('>I', 1)  # The folder is its own first entry.
        with self.assertRaisesRegex(ValueError, 'in two folders, expected one'):
            list(resources.entries(bytes(data)))

    def test_an_entry_longer_than_the_archive_is_refused(self):
        data = archive({'a.png': b'one' * 50})
        long = data.replace(struct.pack('>I', 150) + b'one', struct.pack('>I', 1 << 20) + b'one')
        with self.assertRaisesRegex(ValueError, r'of 1048576 bytes at byte \d+, expected within'):
            list(resources.entries(long))

    def test_other_files_and_packings_are_named(self):
        with self.assertRaisesRegex(ValueError, "begins with b'RIFF', .*, expected b'qres'"):
            list(resources.entries(b'RIFF' + bytes(40)))
        with self.assertRaisesRegex(ValueError, 'version 9, expected'):
            list(resources.entries(b'qres' + struct.pack('>4I', 9, 20, 20, 20)))
        with self.assertRaisesRegex(ValueError, 'zstd .* expected zlib or none'):
            list(resources.entries(archive({'a': b'x'}, flags=resources.ZSTD)))


class SaveTest(unittest.TestCase):
    def test_pictures_are_kept_by_kind_and_others_left(self):
        files = {'photo.webp': picture(form='WEBP'), 'stamp.png': picture(mode='RGBA'),
                 'photo2.jpg': picture(form='JPEG'), 'small.jpg': picture((149, 300), form='JPEG'),
                 'text.txt': b'text', 'broken.png': picture()[:300], 'not.jpg': b'not a picture'}
        with tempfile.TemporaryDirectory() as name:
            out = pathlib.Path(name)
            kept = [path for path, stored in resources.entries(archive(files))
                    if resources.save(path, stored, out, 150)]
            written = {path.name: path.read_bytes() for path in out.iterdir()}
            modes = {name: Image.open(io.BytesIO(data)).mode for name, data in written.items()}
        self.assertEqual(len(kept), 3)
        self.assertEqual(modes, {'pictures_photo.jpg': 'RGB', 'pictures_stamp.png': 'RGBA',
                                 'pictures_photo2.jpg': 'RGB'})
        self.assertEqual(written['pictures_photo2.jpg'], files['photo2.jpg'])

    def test_names_stay_in_the_folder(self):
        self.assertEqual(resources.file_name('../../etc/a.b.webp', '.jpg'), 'etc_a.b.jpg')
        self.assertEqual(resources.file_name('/a/b', '.png'), 'a_b.png')


if __name__ == '__main__':
    unittest.main()
