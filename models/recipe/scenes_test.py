"""Tests that the labels of composed scenes describe the picture. Also tests which anchors and
regions the detector's losses use. The objects are discs."""

import unittest

import numpy as np
import torch

import detection_loss
import detector
import scenes


def disc(side=64):
    """Returns a disc with a soft rim, as premultiplied RGBA."""
    y, x = np.mgrid[0:side, 0:side] - (side - 1) / 2
    alpha = np.clip(side / 2 - 2 - np.hypot(x, y), 0, 1)[..., None]
    return (np.concatenate([alpha * [1, 0.5, 0.2], alpha], axis=2) * 255).astype(np.uint8)


def random_scene(seed, count=4, shape=(96, 128)):
    rng = np.random.default_rng(seed)
    objects = [(int(rng.integers(20)), disc(), rng.uniform(20, 60)) for _ in range(count)]
    return scenes.compose_scene(rng, objects, [], shape), objects


class SceneTest(unittest.TestCase):
    def test_boxes_are_tight_around_masks_that_never_overlap(self):
        for seed in range(10):
            scene, _ = random_scene(seed)
            self.assertLessEqual(scene.masks.sum(axis=0).max(), 1)
            for box, mask in zip(scene.boxes.astype(int), scene.masks):
                inside = mask[box[1]:box[3], box[0]:box[2]]
                self.assertEqual(inside.sum(), mask.sum())
                for edge in (inside[0], inside[-1], inside[:, 0], inside[:, -1]):
                    self.assertTrue(edge.any())

    def test_class_map_has_each_mask_s_class(self):
        for seed in range(10):
            scene, _ = random_scene(seed)
            for label, mask in zip(scene.labels, scene.masks):
                seen = scene.class_map[mask == 1]
                self.assertTrue(np.isin(seen, [label + 1, scenes.IGNORE]).all())
                self.assertGreater((seen == label + 1).mean(), 0.8)

    def test_hidden_objects_have_no_label(self):
        rng = np.random.default_rng(0)
        objects = [(0, disc(), 20), *[(1, disc(), 96)] * 3]
        scene = scenes.compose_scene(rng, objects, [], (96, 96))
        self.assertNotIn(0, scene.labels.tolist())

    def test_same_seed_same_scene(self):
        first, second = random_scene(3)[0], random_scene(3)[0]
        np.testing.assert_array_equal(first.picture, second.picture)
        np.testing.assert_array_equal(first.class_map, second.class_map)


class MatchingTest(unittest.TestCase):
    def test_each_object_has_an_anchor_and_negatives_are_far(self):
        config = detector.Config(anchor_scale=4)
        anchors = torch.cat(detector.anchors(config, [(24 >> i, 32 >> i) for i in range(4)]))
        boxes = torch.tensor([[10.0, 12, 40, 50], [60, 20, 120, 90]])
        rows, objects, negative = detection_loss.match_anchors(anchors, boxes)
        self.assertEqual(set(objects.tolist()), {0, 1})
        self.assertFalse(set(rows.tolist()) & set(negative.tolist()))
        iou = detection_loss.torchvision.ops.box_iou(anchors[negative], boxes)
        self.assertLess(iou.max().item(), detection_loss.RPN_NEGATIVE)

    def test_regions_without_objects_are_background(self):
        rois, labels, objects = detection_loss.sample_rois(
            torch.rand(80, 4), torch.empty(0, 4), torch.empty(0, dtype=torch.int64), 20)
        self.assertEqual(len(objects), 0)
        self.assertTrue((labels == 20).all() and len(rois) == len(labels))

    def test_the_losses_of_a_scene_fall(self):
        torch.manual_seed(0)
        config = detector.Config(classes=20, channels=8, fc_width=16, box_stages=1, box_convs=0,
                                 box_fcs=2, mask_convs=1, anchor_scale=4, finest_scale=28,
                                 rpn_candidates=50, proposals=20)
        heads = detector.DetectionHeads([4, 4, 4, 4], config)
        batch = scenes.collate([random_scene(1)[0]])
        maps = [torch.randn(1, 4, 24 >> i, 32 >> i) for i in range(4)]
        optimiser = torch.optim.Adam(heads.parameters(), lr=3e-3)
        totals = []
        for _ in range(25):
            loss = sum(detection_loss.detection_loss(heads, maps, batch).values())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            totals.append(loss.item())
        self.assertLess(totals[-1], 0.7 * totals[0])


if __name__ == '__main__':
    unittest.main()
