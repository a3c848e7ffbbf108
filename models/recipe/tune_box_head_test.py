"""Tests the examples of tune_box_head.py: its photographs, their views, and which regions are
background."""

import csv
import unittest

import numpy as np
import torch

import tune_box_head


def pictures(name):
    with open(tune_box_head.HERE / name, encoding='utf-8', newline='') as file:
        return {(row['package'], row['picture'].rpartition('/')[2])
                for row in csv.DictReader(file, delimiter='\t')}


class TuneBoxHeadTest(unittest.TestCase):

    def test_no_held_out_photograph_is_trained_on(self):
        self.assertFalse(pictures('negatives.tsv') & pictures('negatives_held_out.tsv'))

    def test_a_region_has_the_label_of_the_object_that_it_overlaps_by_half(self):
        objects = torch.tensor([[0., 0, 10, 10], [20, 20, 30, 30]])
        regions = torch.tensor([[20., 20, 30, 28], [0, 0, 10, 4], [40, 40, 50, 50]])
        labels, of = tune_box_head.label_regions(regions, objects, torch.tensor([3, 7]), 20)
        self.assertEqual(labels.tolist(), [7, 20, 20])
        self.assertEqual(of[0], 1)

    def test_all_regions_of_a_picture_without_objects_are_background(self):
        labels, _ = tune_box_head.label_regions(
            torch.tensor([[0., 0, 10, 10]]), torch.empty(0, 4),
            torch.empty(0, dtype=torch.int64), 20)
        self.assertEqual(labels.tolist(), [20])

    def test_a_view_has_the_shape_that_was_asked_for(self):
        photo = np.full((64, 200, 3), 128, np.uint8)
        for whole in (True, False):
            found = tune_box_head.view(np.random.default_rng(1), photo, (256, 320), whole)
            self.assertEqual(found.shape, (256, 320, 3))

    def test_batches_have_pictures_of_one_shape_and_lose_none(self):
        shapes = [(4, 4), (4, 8)] * 9 + [(8, 4)]
        examples = [(np.zeros(shape), k, None) for k, shape in enumerate(shapes)]
        found = list(tune_box_head.batches(examples))
        self.assertEqual(sorted(k for batch in found for _, k, _ in batch), list(range(19)))
        self.assertTrue(all(len({x[0].shape for x in batch}) == 1 for batch in found))


if __name__ == '__main__':
    unittest.main()
