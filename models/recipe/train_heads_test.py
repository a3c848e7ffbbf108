"""Tests train_heads.py: the weights of pixels, and a start from exported models."""

import pathlib
import tempfile
import types
import unittest

import numpy as np
import torch

import export
import scenes
import train_heads


class PixelWeightsTest(unittest.TestCase):
    def test_frequent_classes_weigh_less(self):
        class_map = np.zeros((10, 10), np.uint8)
        class_map[0, :4] = 1
        class_map[1:4] = 2
        class_map[9] = scenes.IGNORE
        data = types.SimpleNamespace(
            draw=lambda rng, shape: types.SimpleNamespace(class_map=class_map))
        weights = train_heads.pixel_weights(data, 3, seed=0)
        self.assertEqual(tuple(weights.shape), (4,))
        background, rare, between, absent = weights.tolist()
        counts = [(class_map == k).sum() for k in (0, 1)]
        self.assertAlmostEqual(rare / background,
                               (counts[1] / counts[0]) ** train_heads.FREQUENCY_POWER, places=4)
        self.assertTrue(background < between < rare < absent < float('inf'))


class ExportedHeadsTest(unittest.TestCase):
    def test_training_goes_on_from_exported_models(self):
        torch.manual_seed(0)
        heads, others = (train_heads.Heads(2) for _ in range(2))
        with tempfile.TemporaryDirectory() as folder:
            export.write_heads(pathlib.Path(folder), 3, heads, ['one', 'two'],
                               train_heads.TASKS)
            train_heads.start_from_models(others, pathlib.Path(folder), 3)
        wanted = heads.state_dict()
        for key, value in others.state_dict().items():
            if not key.endswith('num_batches_tracked'):
                self.assertTrue(torch.allclose(value, wanted[key], rtol=1e-3, atol=1e-6), key)


if __name__ == '__main__':
    unittest.main()
