"""Tests what training reads without PyTorch: labels, folders of classifiers, and classes of
maps."""

import json
import pathlib
import tempfile
import unittest

import numpy as np

from checkpoint.labels import read_labels
from checkpoint.tensor import CheckpointError
from class_folders import open_folders, too_few
from map_classes import check_taught, labels_of
from user_errors import UserError


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content=b''):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


class LabelsTest(FolderTest):
    def test_a_file_is_read_as_the_server_reads_it(self):
        """tests/server/repository/model_directory_test.cc reads the same cases."""
        for case in json.loads(pathlib.Path('tests/testdata/labels/cases.json').read_bytes()):
            path = self.write('labels.txt', case['text'].encode())
            with self.subTest(case['text']):
                if 'labels' in case:
                    self.assertEqual(read_labels(path), case['labels'])
                    continue
                with self.assertRaisesRegex(CheckpointError,
                                            rf'labels.txt: line {case["wrong_line"]}\b'):
                    read_labels(path)

    def test_a_byte_that_is_not_utf8_is_named(self):
        with self.assertRaisesRegex(CheckpointError, 'labels.txt: byte 3 is not UTF-8'):
            read_labels(self.write('labels.txt', b'abc\xff'))


class ClassFoldersTest(FolderTest):
    def pictures(self, *folders):
        for folder in folders:
            for i in range(3):
                self.write(f'{folder}/{i}.jpg')

    def found(self):
        """Reads DATA. Returns its labels, the folders with training pictures, and the folders with
        held-out pictures."""
        found = open_folders(self.folder)
        for paths in (found.train, found.held_out or ()):
            self.assertTrue(all(path.parent.name == found.labels[k] for path, k in paths))
        self.notes = '\n'.join(found.notes)
        return (found.labels, *(paths and sorted({
            str(path.parent.relative_to(self.folder)) for path, _ in paths})
            for paths in (found.train, found.held_out)))

    def test_a_folder_for_each_class(self):
        self.pictures('cat', 'dog')
        self.assertEqual(self.found(), (['cat', 'dog'], ['cat', 'dog'], None))
        self.assertEqual(self.notes, '')

    def test_parts_to_learn_from_and_held_out(self):
        for train, held_out in (('train', 'val'), ('Train', 'Valid'), ('training', 'validation')):
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                self.folder, outer = pathlib.Path(folder), self.folder
                self.pictures(f'{train}/cat', f'{train}/dog', f'{held_out}/cat',
                              f'{held_out}/dog', 'test/cat')
                self.assertEqual(self.found(), (
                    ['cat', 'dog'], [f'{train}/cat', f'{train}/dog'],
                    [f'{held_out}/cat', f'{held_out}/dog']))
                self.assertIn('not used: test', self.notes)
                self.folder = outer
        self.pictures('train/cat', 'train/dog')
        self.assertEqual(self.found(), (['cat', 'dog'], ['train/cat', 'train/dog'], None))
        self.pictures('val/cow')
        with self.assertRaisesRegex(UserError, 'val/cow: .*train has no such class'):
            self.found()
        self.pictures('valid/cat')
        with self.assertRaisesRegex(UserError, 'val and valid are both there'):
            self.found()

    def test_a_train_may_be_a_class(self):
        self.pictures('bus', 'train')
        self.assertEqual(self.found(), (['bus', 'train'], ['bus', 'train'], None))

    def test_what_holds_no_pictures_is_passed_over_in_a_line(self):
        self.pictures('cat', 'dog', '.cache')
        self.write('__MACOSX/cat/._0.jpg')
        self.write('new/.DS_Store')
        (self.folder / 'empty').mkdir()
        self.assertEqual(self.found()[0], ['cat', 'dog'])
        self.assertEqual(self.notes.count('\n'), 0)
        for name in ('__MACOSX', 'empty', 'new'):
            self.assertIn(name, self.notes)

    def test_other_kinds_of_pictures_are_named(self):
        self.pictures('dog')
        for name in ('cat/0.gif', 'cat/1.GIF', 'cat/2.tif', 'cat/.3.gif'):
            self.write(name, b'GIF89a')
        self.assertEqual(self.found(), (['cat', 'dog'], ['dog'], None))
        for text in (self.notes, str(too_few(self.folder / 'cat', 0, 5))):
            self.assertRegex(text, '/cat: .*2 GIF files, 1 TIFF file.*JPEG, PNG, WebP')


class Map:
    def __init__(self, *pixels):
        self.map, self.counts = 'maps/1.png', np.bincount(pixels, minlength=256)


class MapClassesTest(FolderTest):
    def labels(self, *maps):
        return labels_of(self.folder, {each: each.counts for each in maps})

    def test_each_number_has_a_name(self):
        self.assertEqual(self.labels(Map(0, 255), Map(1, 2)), ['class_0', 'class_1', 'class_2'])
        self.write('labels.txt', b'bg\nroad\nlane\n\n')
        self.assertEqual(self.labels(Map(0, 255), Map(1)), ['bg', 'road', 'lane'])

    def test_numbers_without_a_name_are_refused(self):
        for maps, line in (((Map(255),), 'no pixel of the maps has a class'),
                           ((Map(0, 100), Map(200)), 'has class 200, none has class 1: write')):
            with self.assertRaisesRegex(UserError, line):
                self.labels(*maps)
        self.write('labels.txt', b'bg\nroad\n')
        with self.assertRaisesRegex(UserError, r'maps/1\.png: has class 254, .*txt names 2'):
            self.labels(Map(0, 254))

    def taught(self, learnt, held_out):
        return '\n'.join(check_taught(['bg', 'road', 'lane'], Map(*learnt).counts,
                                      Map(*held_out).counts))

    def test_what_cannot_be_learned_or_measured_is_said(self):
        self.assertEqual(self.taught((0, 1, 2, 255), (0, 1, 2)), '')
        for learnt, held_out, line in (
                ((0, 1, 255), (0, 1), '^cannot be learned .* 2 "lane"; 255 is ignored'),
                ((0, 1), (0, 1, 2), '^cannot be learned .* 2 "lane"$'),
                ((0, 1, 2), (0, 2), '^cannot be measured.* 1 "road"$')):
            self.assertRegex(self.taught(learnt, held_out), line)

    def test_a_single_class_is_refused(self):
        with self.assertRaisesRegex(UserError, '0 "bg" alone, none 1 "road", 2 "lane": expected '
                                    'two .*255 is ignored'):
            self.taught((0, 255), (0, 1))


if __name__ == '__main__':
    unittest.main()
