"""What tools/coco_ap.py says of detections by class."""

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
    def score(self, detections):
        """The report on two pictures with two cups and a chair."""
        truth = boxes((1, 'cup', [10, 10, 20, 20], {'id': 1}),
                      (2, 'cup', [30, 30, 20, 20], {'id': 2}),
                      (1, 'chair', [40, 10, 20, 20], {'id': 3}), area=400, iscrowd=0)
        annotations = {'images': [{'id': i, 'width': 99, 'height': 99} for i in (1, 2)],
                       'annotations': truth,
                       'categories': [{'id': n, 'name': label} for label, n in NUMBERS.items()]}
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ('annotations.json', 'found.json')]
            for path, content in zip(paths, (annotations, detections)):
                path.write_text(json.dumps(content))
            return json.loads(subprocess.check_output([sys.executable, '-B', PROGRAM, *paths]))

    def test_each_class_that_can_be_found_has_its_figure(self):
        report = self.score(boxes((1, 'cup', [10, 10, 20, 20], {'score': 0.9}),
                                  (2, 'cup', [60, 60, 20, 20], {'score': 0.8}),
                                  (1, 'chair', [40, 10, 20, 20], {'score': 0.7}),
                                  (2, 'lamp', [1, 1, 9, 9], {'score': 0.6})))
        # Half of the cups: right up to a recall of a half, 51 of 101 points of the curve.
        self.assertEqual(report['box']['classes'], {'cup': 0.505, 'chair': 1.0})
        self.assertAlmostEqual(report['box']['ap'], (51 / 101 + 1) / 2)

    def test_nothing_found_is_zero(self):
        self.assertEqual(self.score([])['box'], {'ap': 0.0, 'ap50': 0.0, 'classes': {}})


if __name__ == '__main__':
    unittest.main()
