"""Compares the dense heads with golden tensors; see tests/testing/testdata/heads/README.md."""

import pathlib
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

import configs
import detector
import pyramid
import upernet

HEADS = pathlib.Path(__file__).parents[2] / 'tests/testing/testdata/heads'


def load(name):
    return load_file(HEADS / f'{name}.safetensors')


def weights(tensors, *prefixes):
    return {key: value for key, value in tensors.items() if key.startswith(prefixes)}


def near(test, got, expected):
    test.assertEqual(got.shape, expected.shape)
    error = ((got - expected).abs() / (1 + expected.abs())).max().item() if got.numel() else 0
    test.assertLessEqual(error, 1e-4)


class DetectorTest(unittest.TestCase):
    def check(self, name, **fields):
        t = load(name)
        config = detector.Config(classes=5, channels=12, fc_width=24,
                                 rpn_candidates=int(t['in.rpn_nms_pre']),
                                 proposals=int(t['in.rpn_max_per_img']),
                                 max_detections=int(t['in.rcnn_max_per_img']), **fields)
        maps = [t[f'in.feat.{i}'] for i in range(4)]
        heads = detector.DetectionHeads([m.shape[1] for m in maps], config).eval()
        heads.load_state_dict(weights(t, 'neck.', 'rpn_head.', 'roi_head.'))
        with torch.inference_mode():
            for i, level in enumerate(heads.neck(maps)):
                near(self, level, t[f'out.fpn.{i}'])
            results = heads.detect(maps, t['in.img_shape'].tolist())
        for i, (boxes, scores, labels, masks) in enumerate(results):
            boxes = boxes / t['in.scale_factor'][i].repeat(2)
            near(self, torch.cat([boxes, scores[:, None]], dim=1), t[f'out.dets.{i}'])
            self.assertTrue(labels.equal(t[f'out.labels.{i}']))
            pasted = detector.paste(masks, boxes, t['in.ori_shape'][i].tolist(), 0.5)
            wrong = (pasted != t[f'out.masks.{i}'].bool()).float().mean().item()
            self.assertLessEqual(wrong, 1e-3)

    def test_cascade_mask_rcnn(self):
        self.check('cascade_mask_rcnn')

    def test_mask_rcnn(self):
        self.check('mask_rcnn', box_stages=1, box_convs=0, box_fcs=2)

    def test_encode_undoes_decode(self):
        rng = np.random.default_rng(0)
        corners = torch.from_numpy(rng.uniform(0, 50, (2, 30, 2))).float()
        sides = torch.from_numpy(rng.uniform(5, 40, (2, 30, 2))).float()
        boxes, targets = torch.cat([corners, corners + sides], dim=2)
        stds = (0.1, 0.1, 0.2, 0.2)
        got = detector.decode(boxes, detector.encode(boxes, targets, stds), stds, (100, 100))
        torch.testing.assert_close(got, targets, atol=1e-3, rtol=1e-4)


class UperNetTest(unittest.TestCase):
    def test_golden_maps(self):
        t = load('upernet')
        maps = [t[f'in.feat.{i}'] for i in range(4)]
        head = upernet.DecodeHead([m.shape[1] for m in maps], 16, 7).eval()
        head.load_state_dict({key.removeprefix('decode_head.'): value
                              for key, value in weights(t, 'decode_head.').items()})
        with torch.inference_mode():
            near(self, head.pool(maps[3]), t['out.psp'])
            near(self, head.feature(maps), t['out.feature'])
            logits = head(maps)
        near(self, logits, t['out.logits'])
        size, picture = t['in.img_shape'].tolist(), t['in.ori_shape'].tolist()
        for wanted, key in ((size, 'out.pred_img'), (picture, 'out.pred_ori')):
            got = upernet.class_map(logits, size, wanted)
            self.assertLessEqual((got != t[key].long()).float().mean().item(), 1e-3)

    def test_golden_windows(self):
        t = load('upernet')
        crop, stride = t['slide.crop_stride'].tolist()
        got = upernet.windows_of(t['in.img_shape'].tolist(), (crop, crop), (stride, stride))
        self.assertEqual([list(window) for window in got], t['slide.windows'].tolist())

    def test_recorded_slides(self):
        t = load('slide')
        for case in range(3):
            size, crop, stride, picture = t[f'{case}.sizes'].tolist()
            logits = iter(t[f'{case}.logits'])
            mean = upernet.slide(lambda _, logits=logits: next(logits)[None], size, crop, stride)
            near(self, mean[0, :2], t[f'{case}.mean'])
            got = upernet.class_map(mean, size, picture)[0]
            self.assertTrue(got.equal(t[f'{case}.map'].long()))


class BackboneTest(unittest.TestCase):
    def test_a_trunk_and_statistics_do_not_learn(self):
        torch.manual_seed(0)
        backbone = pyramid.Backbone(**configs.BACKBONE).train()
        before = {key: value.clone() for key, value in backbone.trunk.state_dict().items()}
        sum(x.square().mean() for x in backbone(torch.rand(1, 3, 64, 64))).backward()
        for key, value in backbone.trunk.state_dict().items():
            self.assertTrue(value.equal(before[key]), key)
        learnt = {name.split('.')[0] for name, p in backbone.named_parameters()
                  if p.grad is not None}
        self.assertEqual(learnt, {'levels', 'outnorm0', 'outnorm1', 'outnorm2', 'outnorm3'})


if __name__ == '__main__':
    unittest.main()
