"""Tests that docs/weights.md describes every official file correctly."""

import math
import pathlib
import re
import unittest

from checkpoint.network import expected_tensors
from checkpoint.variants import default_windows, find_row
from official_files_test import CLASSIFIERS, DETECTORS, SEGMENTERS, network

PAGE = pathlib.Path(__file__).parents[2] / 'docs/weights.md'


def size(text):
    """Returns the number of bytes that a text such as "1.17 GB" means."""
    value, unit = re.fullmatch(r'([\d.]+) (MB|GB)', text).groups()
    return float(value) * {'MB': 1e6, 'GB': 1e9}[unit]


class PageTest(unittest.TestCase):
    def setUp(self):
        rows = re.findall(r'^\| `(\w[^`]*)` \| (folder|converter) \| (.*) \|$', PAGE.read_text(),
                          re.MULTILINE)
        self.rows = {name: (how, *cells.split(' | ')) for name, how, cells in rows}
        self.assertEqual(len(self.rows), len(rows))
        self.checked = set()

    def check(self, repository, row, task, classes):
        """Checks the weights, variant and windows in the page's row of the repository. Returns the
        row's other cells. They are how to get the model (folder or converter), the file for the
        converter, and the input."""
        how, file, weights, becomes, windows, given = self.rows[repository]
        variant = re.match(r'`(\w+)`', becomes)[1]
        expected = network(row, task, classes)
        self.assertEqual(find_row(variant)[0].backbone, expected.backbone)
        self.assertEqual(tuple(map(int, windows.split(', '))), default_windows(variant, task))
        count = sum(map(math.prod, expected_tensors(expected).values()))
        self.assertAlmostEqual(size(weights) / (4 * count), 1, delta=0.006)
        self.checked.add(repository)
        return how, file, given

    def test_all_rows(self):
        for row, (file, repository, _) in CLASSIFIERS.items():
            with self.subTest(repository):
                how, found, given = self.check(repository, row, 'CLASSIFICATION', 1000)
                table = find_row(f'mamba_vision_{row}')[0]
                expected = str(table.input_size)
                if table.crop_pct != 1:
                    expected += f', crop {table.crop_pct}'
                if table.resize == 'STRETCH':
                    expected += ', squash'
                self.assertEqual((how, given), ('folder', expected))
                self.assertTrue(found.startswith(f'`{file}.pth.tar`'), found)
        dense = [(row, file.removesuffix('.pth'), 'DETECTION', 80)
                 for row, file in DETECTORS.items()]
        dense += [(row, f'mamba_vision_160k_ade20k-{name}', 'SEGMENTATION', 150)
                  for row, (name, _) in SEGMENTERS.items()]
        for row, repository, task, classes in dense:
            with self.subTest(repository):
                how, _, given = self.check(repository, row, task, classes)
                self.assertEqual(how, 'converter')
                sides = ('800 to 1333' if task == 'DETECTION' else '640 to 2560' if '640' in
                         repository else '512 to 2048')
                self.assertEqual(given, sides)
        self.assertEqual(self.checked, set(self.rows))
        self.assertEqual(len(self.rows), 18)


if __name__ == '__main__':
    unittest.main()
