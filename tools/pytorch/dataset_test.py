"""Tests that training reads pictures in the same way as the server. Also tests that unreadable
pictures are named and ignored."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import numpy as np
from PIL import Image

import dataset
import pictures
import train_classifier


def write_pictures(folder, count=10):
    """Writes pictures of two classes, which differ in brightness."""
    rng = np.random.default_rng(0)
    for name, level in (('dark', 40), ('light', 200)):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            noise = rng.normal(level, 20, (70, 90, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(noise).save(folder / name / f'{i}.png')


class FoldersTest(unittest.TestCase):
    def test_every_fifth_picture_is_held_out(self):
        with tempfile.TemporaryDirectory() as folder:
            write_pictures(pathlib.Path(folder))
            data = dataset.open_data(pathlib.Path(folder), 32)
        self.assertEqual(data.labels, ['dark', 'light'])
        self.assertEqual(data.validation[0].shape, (4, 32, 32, 3))
        pictures, classes, features = data.draw(np.random.default_rng(0), 12)
        self.assertEqual(pictures.shape, (12, 32 + dataset.MARGIN, 32 + dataset.MARGIN, 3))
        self.assertEqual(len(classes), 12)
        self.assertIsNone(features)
        crops = train_classifier.augment(np.random.default_rng(0), pictures, 32)
        self.assertEqual(tuple(crops.shape), (12, 32, 32, 3))

    def test_one_class_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            write_pictures(pathlib.Path(folder) / 'only')
            with self.assertRaises(ValueError):
                dataset.open_data(pathlib.Path(folder), 32)

    def test_pictures_are_turned_as_they_are_served(self):
        stored = np.arange(6 * 9 * 3, dtype=np.uint8).reshape(6, 9, 3)
        turned = {1: stored, 2: stored[:, ::-1], 3: stored[::-1, ::-1], 4: stored[::-1],
                  5: stored.transpose(1, 0, 2), 6: np.rot90(stored, -1),
                  7: np.rot90(stored, 2).transpose(1, 0, 2), 8: np.rot90(stored)}
        for orientation, expected in turned.items():
            exif = Image.Exif()
            exif[pictures.ORIENTATION] = orientation
            for kind, options in (('PNG', {}), ('WEBP', {'lossless': True})):
                file = io.BytesIO()
                Image.fromarray(stored).save(file, kind, exif=exif, **options)
                seen = pictures.as_served(Image.open(file))
                np.testing.assert_array_equal(np.asarray(seen), expected, f'{kind} {orientation}')

    def test_corrupt_exif_data_turn_nothing(self):
        for exif in (b'', b'Exif\0\0', b'Exif\0\0II*\0', b'Exif\0\0II*\0\xff\xff\xff\xff', b'junk'):
            image = Image.new('RGB', (3, 2))
            image.info['exif'] = exif
            self.assertEqual(pictures.as_served(image).size, (3, 2), exif)

    def test_of_16_bit_grey_the_high_byte_is_learnt(self):
        deep = np.array([[0x0102, 0xfe01, 0x7fff]], np.uint16)
        file = io.BytesIO()
        Image.fromarray(deep).save(file, 'PNG')
        seen = np.asarray(pictures.as_served(Image.open(file)))
        np.testing.assert_array_equal(seen, np.repeat(deep >> 8, 3).reshape(1, 3, 3))

    def test_a_picture_that_cannot_be_decoded_is_named_and_passed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            write_pictures(pathlib.Path(folder), 6)
            path = pathlib.Path(folder, 'dark', '0.png')  # It would be held out.
            whole = path.read_bytes()
            for content, error in ((whole[:900], 'truncated'), (b'', 'cannot identify')):
                path.write_bytes(content)
                with contextlib.redirect_stderr(io.StringIO()) as said:
                    data = dataset.open_data(pathlib.Path(folder), 32)
                self.assertRegex(said.getvalue(), f'^passed over: {path}: .*{error}.*\n$')
                self.assertEqual((data.classes.tolist(), data.validation[1].tolist()),
                                 ([0] * 4 + [1] * 4, [0, 1, 1]))
            pathlib.Path(folder, 'dark', '1.png').write_bytes(b'')
            with contextlib.redirect_stderr(io.StringIO()), \
                    self.assertRaisesRegex(ValueError, 'dark: 4 pictures that can be read'):
                dataset.open_data(pathlib.Path(folder), 32)

    def test_pictures_count_by_content_and_hidden_files_do_not(self):
        with tempfile.TemporaryDirectory() as folder:
            dark = pathlib.Path(folder, 'dark')
            write_pictures(pathlib.Path(folder))
            (dark / '0.png').rename(dark / '0')
            (dark / '1.png').rename(dark / '1.jfif')
            (dark / '._2.png').write_bytes(b'not a picture')
            (dark / 'notes.txt').write_bytes(b'text')
            pathlib.Path(folder, '.cache').mkdir()
            data = dataset.open_data(pathlib.Path(folder), 32)
        self.assertEqual(data.labels, ['dark', 'light'])
        self.assertEqual(len(data.pictures) + len(data.validation[0]), 20)


if __name__ == '__main__':
    unittest.main()
