"""Compares DetectorScore's figures with those of pycocotools on random cases."""

import contextlib
import importlib.util
import io
import json
import pathlib
import random
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path('tests/client/eval/score_results')
CASES = 60


def polygon(chance, box):
    """Returns a polygon of 3 to 8 points in and around a box."""
    x, y, width, height = box
    return [round(side + chance.uniform(-0.1, 1.1) * length, 2)
            for _ in range(chance.randint(3, 8))
            for side, length in ((x, width), (y, height))]


class Case:
    """A random case: objects, and detections that are often near them."""

    def __init__(self, seed):
        from pycocotools import mask
        self.chance, self.mask = random.Random(seed), mask
        self.images = [{'id': i, 'file_name': f'{i}.png', 'width': self.chance.randint(8, 90),
                        'height': self.chance.randint(8, 90)} for i in (9, 4, 7)]
        self.categories = [{'id': i, 'name': f'class {i}'} for i in (5, 2, 11)]
        self.annotations, self.results = [], []
        for image in self.images:
            for _ in range(self.chance.choice((0, 1, 4, 12))):
                self.annotations.append(self.object(image))
            for _ in range(self.chance.choice((0, 3, 20, 250))):
                self.results.append(self.detection(image))

    def box(self, image):
        x, y = self.chance.randrange(image['width']), self.chance.randrange(image['height'])
        return [x, y, self.chance.randint(1, image['width'] - x),
                self.chance.randint(1, image['height'] - y)]

    def object(self, image):
        box = self.box(image)
        outline = [polygon(self.chance, box) for _ in range(self.chance.choice((1, 1, 2)))]
        crowd = int(self.chance.random() < 0.2)
        if crowd:
            packed = self.runs(outline, image)
            outline = packed if self.chance.random() < 0.5 else {
                'size': packed['size'], 'counts': self.counts(packed)}
        return {'id': len(self.annotations) + 1, 'image_id': image['id'], 'iscrowd': crowd,
                'category_id': self.chance.choice(self.categories[:2])['id'], 'bbox': box,
                'area': box[2] * box[3], 'segmentation': outline}

    def runs(self, outline, image):
        size = image['height'], image['width']
        packed = self.mask.merge(self.mask.frPyObjects(outline, *size))
        return {'size': list(size), 'counts': packed['counts'].decode()}

    def counts(self, packed):
        """Returns the run lengths of a compressed mask as a list."""
        counts, last = [0], 0
        for pixel in self.mask.decode(packed).T.flatten().tolist():
            if pixel != last:
                counts.append(0)
                last = pixel
            counts[-1] += 1
        return counts

    def detection(self, image):
        near = [a for a in self.annotations if a['image_id'] == image['id']]
        box, category = self.box(image), self.chance.choice(self.categories)['id']
        outline = [polygon(self.chance, box)]
        if near and self.chance.random() < 0.7:
            target = self.chance.choice(near)
            category = target['category_id']
            box = [side + self.chance.choice((0, 0, 0, 1, 2)) for side in target['bbox']]
            if isinstance(target['segmentation'], list):
                outline = [[v + self.chance.choice((0, 0, 1)) for v in p]
                           for p in target['segmentation']]
        return {'image_id': image['id'], 'category_id': category, 'bbox': box,
                'score': self.chance.randint(1, 16) / 16,  # Many scores are equal.
                'segmentation': self.runs(outline, image)}


def expected(truth, results, kind):
    """Returns the figures that pycocotools computes."""
    from pycocotools.cocoeval import COCOeval
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(truth, truth.loadRes(results), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    classes = {}
    for k, category in enumerate(evaluation.params.catIds):
        precision = evaluation.eval['precision'][:, :, k, 0, -1]
        if (precision > -1).any():
            classes[truth.cats[category]['name']] = precision.mean()
    return {'ap': evaluation.stats[0], 'ap50': evaluation.stats[1], 'classes': classes}


@unittest.skipUnless(importlib.util.find_spec('pycocotools'), 'pycocotools is not installed')
class AveragePrecisionTest(unittest.TestCase):
    def check(self, case):
        from pycocotools.coco import COCO
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ('annotations.json', 'results.json')]
            paths[0].write_text(json.dumps({key: getattr(case, key) for key in (
                'images', 'annotations', 'categories')}))
            paths[1].write_text(json.dumps(case.results))
            got = json.loads(subprocess.check_output([PROGRAM, paths[0], folder, paths[1]]))
            with contextlib.redirect_stdout(io.StringIO()):
                truth = COCO(paths[0])
        for name, kind in (('box', 'bbox'), ('mask', 'segm')):
            wanted = expected(truth, case.results, kind)
            self.assertEqual(got[name]['classes'].keys(), wanted['classes'].keys())
            for label, precision in wanted['classes'].items():
                self.assertAlmostEqual(got[name]['classes'][label], precision, delta=1e-6)
            for key in ('ap', 'ap50'):
                self.assertAlmostEqual(got[name][key], wanted[key], delta=1e-6)

    def test_random_cases_have_the_figures_of_pycocotools(self):
        checked = 0
        for seed in range(CASES):
            case = Case(seed)
            objects = [a for a in case.annotations if not a['iscrowd']]
            if not objects or not case.results:
                continue
            with self.subTest(seed=seed):
                self.check(case)
            checked += 1
        self.assertGreater(checked, CASES / 2)


if __name__ == '__main__':
    unittest.main()
