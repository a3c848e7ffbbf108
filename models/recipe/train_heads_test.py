"""What the training of the dense heads promises: its losses, and what it exports."""

import pathlib
import tempfile
import types
import unittest

import numpy as np
import torch
import torch.nn.functional as F

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


class JaccardLossTest(unittest.TestCase):
    def test_of_certain_answers_it_is_what_the_iou_lacks(self):
        class_maps = torch.tensor([[[0, 0, 0, 1], [1, 1, scenes.IGNORE, 2]]])
        answers = torch.tensor([[[0, 0, 1, 1], [1, 0, 3, 2]]])  # IoU 1/2, 1/2 and 1.
        logits = 80 * F.one_hot(answers, 5).movedim(3, 1).float()
        self.assertAlmostEqual(train_heads.jaccard_loss(logits, class_maps).item(), 1 / 3, places=5)
        certain = 80 * F.one_hot(class_maps % scenes.IGNORE, 5).movedim(3, 1).float()
        self.assertLess(train_heads.jaccard_loss(certain, class_maps).item(), 1e-6)

    def test_it_falls_along_its_gradient(self):
        torch.manual_seed(0)
        class_maps = torch.randint(0, 3, (2, 4, 4))
        logits = torch.zeros(2, 3, 4, 4, requires_grad=True)
        before = train_heads.jaccard_loss(logits, class_maps)
        before.backward()
        after = train_heads.jaccard_loss(logits - 5 * logits.grad, class_maps)
        self.assertLess(after.item(), before.item())


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
