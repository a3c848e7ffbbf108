"""Tests the JSON files and layouts that tools/coco reads, and its errors."""

import functools
import json
import operator
import pathlib
import re
import tempfile
import unittest

from coco import annotations, layouts
from coco.annotations import CocoError

SQUARE = [5, 6, 25, 6, 25, 21, 5, 21]


def data(**more):
    """Returns the JSON of three pictures of 64 x 48 pixels. Each shows a cat or a dog."""
    return {
        'images': [{'id': i, 'file_name': f'{i}.jpg', 'width': 64, 'height': 48}
                   for i in (1, 2, 3)],
        'categories': [{'id': 1, 'name': 'cat'}, {'id': 2, 'name': 'dog'}],
        'annotations': [{'id': i, 'image_id': i, 'category_id': 1 + i % 2, 'iscrowd': 0,
                         'bbox': [5, 6, 20, 15], 'area': 300, 'segmentation': [SQUARE]}
                        for i in (1, 2, 3)], **more}


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content=''):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


class AnnotationsTest(FolderTest):
    def read(self, change, crowds=False, size_of=lambda image: image.size):
        """Reads data() after `change` has changed it. Returns (file, notes, objects)."""
        root = data()
        change(root)
        [file], notes = annotations.read([self.write('annotations.json', root)])
        return file, notes, annotations.objects(file, size_of, crowds)

    def first(self, **values):
        """Reads the data after setting these values in the first annotation. Returns the first
        object and the note."""
        _, _, found = self.read(lambda root: root['annotations'][0].update(values))
        return found.found[0], found.note('f').removeprefix('f: ')

    def test_whole_numbers_may_have_a_point(self):
        def change(root):
            for row in root['images']:
                row.update(id=float(row['id']), width=64.0, height=48.0)
            for row in root['categories'] + root['annotations']:
                row.update(id=float(row['id']))
            for row in root['annotations']:
                row.update(image_id=float(row['image_id']), category_id=float(row['category_id']))
            root['annotations'][0].update(
                segmentation={'size': [48.0, 64.0], 'counts': [300.0, 2772.0]})
        file, _, found = self.read(change)
        self.assertEqual([image.size for image in file.images.values()], [(64, 48)] * 3)
        self.assertEqual([(o.image_id, o.category_id) for o in found.found],
                         [(1, 2), (2, 1), (3, 2)])
        self.assertEqual(found.found[0].outline, {'size': [48, 64], 'counts': [300, 2772]})

    # Each entry has a change of the data and the expected error message.
    WRONG = (
        (lambda r: r['images'][1].update(id=1), r'id 1 is of two images, 1\.jpg and 2\.jpg$'),
        (lambda r: r['categories'][1].update(id=1), 'id 1 is of two categories, cat and dog$'),
        (lambda r: r['categories'][1].update(name='cat '),
         'categories 1 and 2 are both named cat$'),
        (lambda r: r['categories'][1].update(name=' '), r'categories\[1\]: "name" is "", expected'),
        (lambda r: r['categories'][1].update(name='a\nb'), r'\[1\]: "name" is "a\\nb", expected'),
        (lambda r: r['categories'][1].pop('name'), r'categories\[1\] has no "name"$'),
        (lambda r: r['categories'][0].update(id='1'), r'categories\[0\]: "id" is "1", expected'),
        (lambda r: r['images'][1].update(id=1.5), r'images\[1\]: "id" is 1\.5, expected a whole'),
        (lambda r: r['images'][1].update(id=[2]), r'images\[1\]: "id" is \[2\], expected a whole'),
        (lambda r: r['images'][1].update(id=True), r'images\[1\]: "id" is true, expected a whole'),
        (lambda r: r['images'][1].update(width=0), r'images\[1\]: "width" is 0, expected .* 1 or'),
        (lambda r: r['images'][1].update(file_name=None), r'"file_name" is null, expected text$'),
        (lambda r: r.pop('images'), 'no list "images"$'),
        (lambda r: r['annotations'][1].update(image_id=70),
         r'annotation 2: image 70 is not in "images"$'),
        (lambda r: r['annotations'][1].update(category_id=7),
         r'annotation 2: category 7 is not in "categories"$'),
        (lambda r: r['annotations'][1].update(iscrowd=2), 'annotation 2: "iscrowd" is 2, expected'),
        (lambda r: r['annotations'][1].update(bbox=[1]), r'annotation 2: "bbox" is \[1\], '),
        (lambda r: r['annotations'][1].update(bbox=[0, 0, float('nan'), 1]),
         r'annotation 2: "bbox" is \[0, 0, NaN, 1\], expected'),
        (lambda r: r['annotations'][1].update(bbox=[0, 0, 1e999, 1]), 'annotation 2: "bbox" is'),
        (lambda r: r['annotations'][1].update(bbox='all'), 'annotation 2: "bbox" is "all"'),
        (lambda r: r['annotations'][1].update(segmentation=[[1, 2, 3, 4, 5, 'x']]),
         'annotation 2: segmentation: expected polygons'),
        (lambda r: r['annotations'][1].update(segmentation=[[1, 2, 3, 4, 5, 6, 7]]),
         'annotation 2: segmentation: expected polygons'),
        (lambda r: r['annotations'][1].update(segmentation=SQUARE),
         'annotation 2: segmentation: expected polygons'),
        (lambda r: r['annotations'][1].update(segmentation=[[1, 2, 3, 4, 5, float('inf')]]),
         'annotation 2: segmentation: expected polygons'),
        (lambda r: r['annotations'][1].update(segmentation={'size': [2, 1], 'counts': [2]}),
         'annotation 2: segmentation: run lengths of 1 x 2 pixels, the picture has 64 x 48'),
        (lambda r: r['annotations'][1].update(segmentation={'size': [48, 64], 'counts': [2]}),
         'annotation 2: segmentation: the run lengths are not of 64 x 48 pixels'),
        (lambda r: r['annotations'][1].update(segmentation={'size': [48, 64], 'counts': 'zzz'}),
         'annotation 2: segmentation: the run lengths are not of 64 x 48 pixels'),
        (lambda r: r['annotations'][1].update(segmentation={'counts': [2]}),
         'annotation 2: segmentation: expected "size"'),
    )

    def test_what_is_wrong_is_named(self):
        for change, line in self.WRONG:
            with self.subTest(line), self.assertRaisesRegex(CocoError, line) as raised:
                self.read(change)
            self.assertNotIn('\n', str(raised.exception))
        for text in ('', '{"images": [', '[]', '[' * 100000):
            with self.assertRaises(CocoError):
                annotations.read([self.write('annotations.json', text)])

    def contents(self, case):
        """Returns the objects of a file with the values of the case."""
        root = {'images': [{'id': 1, 'file_name': '1.png', 'width': 64, 'height': 48}],
                'annotations': [{'id': 5, 'image_id': 1, 'category_id': 2,
                                 'bbox': [10, 10, 20, 15]}],
                'categories': [{'id': 2, 'name': 'cat'}, {'id': 3, 'name': 'dog'}]}
        for pointer, value in case['set'].items():
            *way, key = (int(part) if part.isdigit() else part for part in pointer[1:].split('/'))
            place = functools.reduce(operator.getitem, way, root)
            if isinstance(place, list) and key == len(place):
                place.append(value)
            else:
                place[key] = value
        [file], _ = annotations.read([self.write('a.json', root)])
        return annotations.objects(file, lambda image: image.size).found

    def test_contents(self):
        """tests/client/eval/coco_file_test.cc reads the same contents."""
        for case in json.loads(pathlib.Path('tests/testdata/coco/contents.json').read_bytes()):
            with self.subTest(case):
                if 'refused' in case:
                    with self.assertRaises(CocoError):
                        self.contents(case)
                    continue
                found = [(list(o.box), o.outline is not None) for o in self.contents(case)]
                self.assertEqual(found, [] if 'nothing_left' in case else
                                 [(case['box'], case['mask'])])

    def test_what_may_be_missing(self):
        for outline in (None, [], [[]], {}):
            self.assertIsNone(self.first(segmentation=outline)[0].outline)
        for area in (None, '', -1):
            found, note = self.first(area=area, iscrowd=None)
            self.assertEqual((found.area, found.crowd, note), (300, False, ''))

    def test_ids_of_annotations_are_only_for_errors(self):
        for change in (lambda r: r['annotations'][1].update(id=1),
                       lambda r: r['annotations'][1].update(id='second'),
                       lambda r: r['annotations'][1].pop('id')):
            _, _, found = self.read(change)
            self.assertEqual([o.image_id for o in found.found], [1, 2, 3])
        with self.assertRaisesRegex(CocoError, r'annotations\[1\]: "bbox" is \[1\], '):
            self.read(lambda r: (r['annotations'][1].pop('id'),
                                 r['annotations'][1].update(bbox=[1])))

    def test_sizes_may_come_from_elsewhere(self):
        def change(root):
            for row in root['images']:
                row.pop('width')
            root['annotations'][0].update(bbox=[50, 6, 20, 15])
        _, _, found = self.read(change, size_of=lambda image: image.size or (64, 48))
        self.assertEqual(found.found[0].box, (50, 6, 64, 21))
        # Run lengths have a size of their own, [height, width]. It must be the picture's size,
        # which size_of() returns.
        runs = {'size': [48, 64], 'counts': [3072]}
        _, _, found = self.read(lambda root: (change(root), root['annotations'][1].update(
            segmentation=runs)))
        self.assertEqual(found.found[1].outline, runs)

    def test_what_reaches_outside_is_clipped_and_counted(self):
        for box, expected, note in (
                ([-3, -4, 10, 10], (0, 0, 7, 6), '1 box clipped'),
                ([60, 40, 10, 30], (60, 40, 64, 48), '1 box clipped'),
                ([0, 0, 64.2, 48], (0, 0, 64, 48), '')):
            found, said = self.first(bbox=box)
            self.assertEqual(found.box, expected)
            self.assertTrue(said.startswith(note) if note else not said, said)
        for box in ([70, 6, 20, 15], [5, 6, 0, 15], [5, 6, 20, -1], [-30, 6, 20, 15]):
            found, said = self.first(bbox=box)
            self.assertEqual((found.image_id, said[:14]), (2, '1 box left out'))

    def test_short_polygons_are_passed_over_and_counted(self):
        found, note = self.first(segmentation=[SQUARE, [7, 7, 8, 8], [1, 2]])
        self.assertEqual((found.outline, note[:9]), ([SQUARE], '2 polygon'))
        self.assertIsNone(self.first(segmentation=[[7, 7, 8, 8]])[0].outline)

    def test_crowds_are_left_out_or_boxes_where_their_masks_are_malformed(self):
        def change(root):
            root['annotations'][0].update(iscrowd=1, segmentation={'size': [9], 'counts': 'x'})
        self.assertEqual([o.image_id for o in self.read(change)[2].found], [2, 3])
        _, _, found = self.read(change, crowds=True)
        self.assertEqual([(o.image_id, o.crowd, bool(o.outline)) for o in found.found],
                         [(1, True, False), (2, False, True), (3, False, True)])
        self.assertIn('1 crowd taken as its box', found.note('f'))

    def test_a_parent_without_annotations_is_left_out(self):
        def change(name, **more):
            return lambda root: root.update(categories=[
                {'id': 0, 'name': name, 'supercategory': 'none', **more},
                {'id': 1, 'name': 'cat', 'supercategory': 'pets'},
                {'id': 2, 'name': 'dog', 'supercategory': 'pets'}])
        file, notes, _ = self.read(change('pets'))
        self.assertEqual([c.name for c in file.categories.values()], ['cat', 'dog'])
        self.assertRegex('\n'.join(notes), '^[^\n]*category pets is left out[^\n]*$')
        file, notes, _ = self.read(change('birds'))
        self.assertEqual((len(file.categories), notes), (3, []))
        # A category that has annotations in the held-out part counts as a class.
        paths = []
        for name, category in (('a.json', 1), ('b.json', 0)):
            root = data()
            change('pets')(root)
            root['annotations'][0]['category_id'] = category
            paths.append(self.write(name, root))
        files, notes = annotations.read(paths)
        self.assertEqual(([len(file.categories) for file in files], notes), ([3, 3], []))

    def test_a_parent_may_have_the_name_of_its_only_child(self):
        """Roboflow gives the parent category the name of the project."""
        file, _, _ = self.read(lambda root: root.update(
            categories=[{'id': 0, 'name': 'cat', 'supercategory': 'none'},
                        {'id': 1, 'name': 'cat', 'supercategory': 'cat'},
                        {'id': 2, 'name': 'dog', 'supercategory': 'cat'}]))
        self.assertEqual(list(file.categories), [1, 2])
        # In COCO, the category person is its own parent.
        file, _, _ = self.read(lambda root: root['categories'].append(
            {'id': 3, 'name': 'person', 'supercategory': 'person'}))
        self.assertEqual(list(file.categories), [1, 2, 3])


class LayoutsTest(FolderTest):
    def lay_out(self, files, file_name='1.jpg'):
        """Returns a new folder with these files. Each JSON file contains one image, except
        info.json."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        root = data(images=[{'id': 1, 'file_name': file_name}], annotations=[])
        for name in files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({} if name == 'info.json' else root)
                            if path.suffix == '.json' else name)
        return folder

    def located(self, folder):
        path, _ = layouts.find(folder)
        [file], _ = annotations.read([path])
        return layouts.pictures(file, folder)[1].relative_to(folder)

    def test_layouts(self):
        """tests/client/eval/coco_layout_test.cc finds the same files."""
        for case in json.loads(pathlib.Path('tests/testdata/coco/layouts.json').read_bytes()):
            with self.subTest(case['files']):
                folder = self.lay_out(case['files'])
                if 'refused' in case:
                    with self.assertRaises(CocoError) as raised:
                        layouts.find(folder)
                    for name in (*case['refused'], '--images DIR'):
                        self.assertIn(name, str(raised.exception))
                    continue
                held_out = case['held_out']
                self.assertEqual(layouts.find(folder), (folder / case['train'],
                                                        held_out and folder / held_out))
                self.assertEqual(self.located(folder), pathlib.Path(case['pictures'], '1.jpg'))

    def test_a_name_may_begin_with_its_folder(self):
        for name in ('images/1.jpg', r'images\1.jpg', './images/1.jpg'):
            for files in (('result.json', 'images/1.jpg'), ('annotations.json', 'images/1.jpg'),
                          ('annotations/instances_default.json', 'images/1.jpg')):
                folder = self.lay_out(files, name)
                self.assertEqual(self.located(folder), pathlib.Path('images/1.jpg'))
                [file], _ = annotations.read([folder / files[0]])
                self.assertEqual(layouts.pictures_in(folder / 'images', file),
                                 {1: folder / 'images/1.jpg'})

    def test_nothing_outside_the_folder_is_read(self):
        folder = self.lay_out(('inner/annotations.json', 'inner/images/2.jpg', '1.jpg'))
        for name in ('../1.jpg', '../../1.jpg', str(folder / '1.jpg'), '/etc/passwd'):
            self.write(folder / 'inner/annotations.json',
                       data(images=[{'id': 1, 'file_name': name}], annotations=[]))
            with self.assertRaisesRegex(CocoError, 'file_name .* is outside'):
                self.located(folder / 'inner')

    def test_folders_that_both_have_all_pictures_are_named(self):
        folder = self.lay_out(('annotations.json', '1.jpg', 'images/1.jpg'))
        with self.assertRaisesRegex(CocoError, '/images and .*--images DIR'):
            self.located(folder)

    def test_what_is_not_there_is_named(self):
        for files, line in (((), 'expected annotations.json, result.json, .*--annotations FILE'),
                            (('annotations/instances_val.json',), 'expected annotations.json'),
                            (('annotations.json', 'images/2.jpg'), '1.jpg.* --images DIR')):
            with self.assertRaisesRegex(CocoError, line):
                self.located(self.lay_out(files))
        with self.assertRaisesRegex(CocoError, 'none: no such folder'):
            layouts.find(self.folder / 'none')
        folder = self.lay_out(('annotations.json', 'images/1.jpg'))
        self.write(folder / 'annotations.json', data())
        with self.assertRaisesRegex(CocoError, re.escape(f'{folder}/images/2.jpg: no such file')):
            self.located(folder)


if __name__ == '__main__':
    unittest.main()
