"""Tests the report of tools/coco_ap.py on detections by class."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).parents[2] / 'tools/coco_ap.py'
NUMBERS = {'cup': 7, 'chair': 9, 'lamp': 3}


def boxes(*rows, **more):
    return [{'image_id': image, 'category_id': NUMBERS[label], 'bbox': box, **more, **score}
            for image, label, box, score in rows]


@unittest.skipUnless(importlib.util.find_spec('pycocotools'), 'pycocotools is not installed')
class CocoApTest(unittest.TestCase):
    def score(self, detections, change=lambda root: None):
        """Scores the detections in two pictures with two cups and a chair. Returns the report, or
        None if the program fails. `change` may change the annotations. Sets self.said to the
        program's standard error."""
        truth = boxes((1, 'cup', [10, 10, 20, 20], {'id': 1}),
                      (2, 'cup', [30, 30, 20, 20], {'id': 2}),
                      (1, 'chair', [40, 10, 20, 20], {'id': 3}), area=400, iscrowd=0)
        annotations = {'images': [{'id': i, 'file_name': f'{i}.jpg', 'width': 99, 'height': 99}
                                  for i in (1, 2)],
                       'annotations': truth,
                       'categories': [{'id': n, 'name': label} for label, n in NUMBERS.items()]}
        change(annotations)
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ('annotations.json', 'found.json')]
            for path, content in zip(paths, (annotations, detections)):
                path.write_text(json.dumps(content))
            done = subprocess.run([sys.executable, '-B', PROGRAM, *paths], capture_output=True,
                                  text=True)
        self.said = done.stderr
        self.assertIn(done.returncode, (0, 2), self.said)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def test_each_class_that_can_be_found_has_its_figure(self):
        report = self.score(boxes((1, 'cup', [10, 10, 20, 20], {'score': 0.9}),
                                  (2, 'cup', [60, 60, 20, 20], {'score': 0.8}),
                                  (1, 'chair', [40, 10, 20, 20], {'score': 0.7}),
                                  (2, 'lamp', [1, 1, 9, 9], {'score': 0.6})))
        # One of two cups was found. The precision is 1 up to a recall of 0.5, which is 51 of 101
        # points of the curve.
        self.assertEqual(report['box']['classes'], {'cup': 0.505, 'chair': 1.0})
        self.assertAlmostEqual(report['box']['ap'], (51 / 101 + 1) / 2)

    def test_nothing_found_is_zero(self):
        self.assertEqual(self.score([])['box'], {'ap': 0.0, 'ap50': 0.0, 'classes': {}})

    FOUND = boxes((1, 'cup', [10, 10, 20, 20], {'score': 0.9}),
                  (2, 'cup', [30, 30, 20, 20], {'score': 0.8}),
                  (1, 'chair', [40, 10, 20, 20], {'score': 0.7}))

    def test_annotations_are_read_as_training_reads_them(self):
        def each(**values):
            return lambda root: [a.update(values) for a in root['annotations']]

        def without(*keys):
            return lambda root: [row.pop(key, None) for key in keys
                                 for row in root['annotations'] + root['images']]
        for change in (each(segmentation=[]), each(segmentation=[[]]), each(segmentation=None),
                       each(id=1), each(segmentation=[[1, 2, 3, 4]]),
                       without('iscrowd'), without('area', 'iscrowd', 'width', 'height'),
                       lambda root: root['annotations'][0].update(image_id=1.0, category_id=7.0),
                       lambda root: root['annotations'].append({
                           **root['annotations'][0], 'id': 9, 'bbox': [200, 9, 9, 9]}),
                       lambda root: root['categories'].append({'id': 5, 'name': 'things'})):
            report = self.score(self.FOUND, change)
            self.assertEqual((report['box']['ap'], 'mask' in report), (1, False), self.said)
        self.score(self.FOUND, lambda root: root['annotations'][0].update(bbox=[10, 10, 90, 20]))
        self.assertIn('1 box clipped', self.said)

    def test_masks_are_scored_where_all_objects_have_them(self):
        def masks(root):
            for a in root['annotations']:
                x, y, wide, high = a['bbox']
                a['segmentation'] = [[x, y, x + wide, y, x + wide, y + high, x, y + high], [1, 1]]
        found = [{**row, 'segmentation': {'size': [99, 99], 'counts': [0, 9801]}}
                 for row in self.FOUND]
        self.assertEqual(self.score(found, masks)['mask']['ap'], 0)
        # A crowd without run lengths gets its box as the mask.
        self.assertEqual(self.score(found, lambda root: (masks(root), root['annotations'].append(
            {'id': 4, 'image_id': 1, 'category_id': 3, 'iscrowd': 1, 'bbox': [0, 0, 9, 9]})))[
                'objects'], 4)
        report = self.score(found, lambda root: (masks(root),
                                                 root['annotations'][0].pop('segmentation')))
        self.assertNotIn('mask', report)
        self.assertIn('1 of 3 objects have no mask', self.said)

    def test_what_is_wrong_is_said_in_a_line(self):
        for found, change, line in (
                (self.FOUND, lambda root: root['images'][1].update(id=1), 'id 1 is of two images'),
                (self.FOUND, lambda root: root['annotations'].clear(), 'no annotation is left'),
                ([{}], lambda root: None, r'\[0\] is {}, expected image_id'),
                ({}, lambda root: None, 'expected a list of detections'),
                (boxes((8, 'cup', [1, 1, 9, 9], {'score': 1})), lambda root: None,
                 'expected image_id of an image')):
            self.assertIsNone(self.score(found, change))
            self.assertRegex(self.said, f'^coco_ap: .*{line}.*\n$')


if __name__ == '__main__':
    unittest.main()
