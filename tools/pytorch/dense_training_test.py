"""Tests the training of detectors and segmenters. Training can be resumed, exports a model that the
server can load, and reports an error in one line."""

import contextlib
import dataclasses
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F

import configs
import dense_files
import dense_pictures
import dense_training
import detection_loss
import detector
import export
import train_detector
import train_segmenter
import upernet
import user_errors
from map_classes import IGNORE

ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path.append(str(ROOT / 'tests/tools'))

import make_shapes  # noqa: E402

BACKBONE = dict(dim=16, in_dim=8, depths=(1, 1, 2, 2), num_heads=(4, 8), windows=(6, 3),
                layer_scale=True, tokens='none', lite_trunk=0)
CONFIG = detector.Config(classes=2, channels=8, box_stages=1, box_convs=0, box_fcs=2, fc_width=16,
                         mask_convs=1, rpn_candidates=50, proposals=20, anchor_scale=6.0,
                         score_threshold=0.01)
SIDES = (64, 96)


def write_detector(folder, config=CONFIG):
    """Writes a small detector with the classes mug and circle."""
    torch.manual_seed(0)
    model = detector.Detector(BACKBONE, config).eval()
    settings = f'{export.input_text(SIDES)}\n{export.detector_text(config)}'
    export.write(folder, 'DETECTION', BACKBONE, model.state_dict(), ['mug', 'circle'], settings,
                 export.HEADING)
    return model


def write_segmenter(folder):
    torch.manual_seed(0)
    model = upernet.Segmenter(BACKBONE, 8, 3).eval()
    export.write(folder, 'SEGMENTATION', BACKBONE, model.state_dict(), ['background', 'mug', 'cat'],
                 f'{export.input_text(SIDES)}\n{export.segmenter_text(8)}', export.HEADING)
    return model


class TrainerTest(unittest.TestCase):
    """Runs the programs on small pictures."""

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.shared.cleanup)
        photographs = [make_shapes.Image.new('RGB', (80, 80), colour) for colour in ('red', 'grey')]
        cls.data = pathlib.Path(cls.shared.name, 'data')
        with mock.patch.object(make_shapes, 'SIZES', ((90, 64), (64, 70))):
            make_shapes.write(cls.data, 10, photographs)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / 'my run'

    def run_it(self, program, *flags, data=None):
        """Runs a program and returns what it printed. self.said is its standard error."""
        arguments = [program.__name__, '--data', str(data or self.data), '--out', str(self.out),
                     *map(str, flags)]
        printed, said = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, 'argv', arguments), contextlib.redirect_stdout(printed), \
                contextlib.redirect_stderr(said):
            try:
                user_errors.run(program.__name__, program.main)
            except SystemExit as end:
                self.assertEqual(end.code, 2)
        self.said = said.getvalue()
        return printed.getvalue()

    def json(self, change):
        """Returns a folder with the same pictures, whose annotations were changed by `change`."""
        folder = self.folder / 'data'
        folder.mkdir()
        (folder / 'images').symlink_to(self.data / 'images')
        root = json.loads((self.data / 'annotations.json').read_text())
        change(root)
        (folder / 'annotations.json').write_text(json.dumps(root))
        return folder

    def learn(self, program, name, initial, task, served, sides=()):
        """Trains on 8 pictures, which are two steps of 4. Then resumes and trains for two more
        steps. served(start) makes the network that the exported weights must fit. Returns the Start
        of the exported model.
        """
        flags = ('--initial', initial, '--passes', 8, *sides)
        printed = self.run_it(program, *flags)
        folder = self.out / 'model'
        self.assertRegex(printed, rf'(?m)^{name} \d+\.\d%.* of 2 held-out pictures$')
        self.assertRegex(printed, rf'model: {folder}\nnow:\n  \S+/sfmamba_server '
                                  rf'--model=my_run={folder} &\n  \S+/sfmamba \w+ --model=my_run ')
        self.assertEqual(sorted(path.name for path in folder.iterdir()), [
            'CREDITS.md', 'config.textproto', 'labels.txt', 'model.safetensors'])
        self.run_it(program, *flags[:3], 16, *sides, '--resume')
        self.assertEqual([json.loads(line)['passes'] for line in
                          (self.out / 'log.txt').read_text().splitlines()], [8, 16])
        averaged = torch.load(self.out / 'checkpoint.pt', weights_only=True)['state_dict']
        weights = safetensors.torch.load_file(folder / 'model.safetensors')
        for key, value in averaged.items():
            if not key.endswith('num_batches_tracked'):
                torch.testing.assert_close(weights[key.removeprefix('model.')].float(), value,
                                           rtol=1e-3, atol=1e-6)
        start = dense_files.open_start(folder, task)
        dense_files.load(served(start), start, start.labels)
        return start


class DetectorTest(TrainerTest):
    def setUp(self):
        super().setUp()
        self.initial = self.folder / 'initial'

    def learn_from(self, config):
        write_detector(self.initial, config)
        return self.learn(train_detector, 'box AP50', self.initial, 'DETECTION',
                          lambda start: detector.Detector(start.backbone, start.detector))

    def test_boxes_and_masks(self):
        start = self.learn_from(CONFIG)
        self.assertEqual(start.labels, ['circle', 'cross', 'square', 'triangle'])
        self.assertEqual(start.detector, dataclasses.replace(CONFIG, classes=4,
                                                             box_stds=CONFIG.box_stds[:1]))
        self.assertEqual((start.sides, start.backbone['windows']), (SIDES, (6, 3)))
        self.assertIn('mask', json.loads((self.out / 'log.txt').read_text().split('\n')[0]))

    def test_a_cascade(self):
        start = self.learn_from(dataclasses.replace(CONFIG, box_stages=3))
        self.assertEqual(start.detector.box_stds, CONFIG.box_stds)

    def test_without_masks_the_mask_head_is_left_out(self):
        write_detector(self.initial)
        data = self.json(lambda root: root['annotations'][3].pop('segmentation'))
        printed = self.run_it(train_detector, '--initial', self.initial, '--passes', 4, data=data)
        self.assertIn('boxes alone: 1 objects have no mask\n', printed)
        self.assertIn('architecture: FASTER_RCNN',
                      (self.out / 'model/config.textproto').read_text())
        start = dense_files.open_start(self.out / 'model', 'DETECTION')
        self.assertEqual(start.detector.mask_convs, 0)

    def test_in_the_layout_of_coco(self):
        write_detector(self.initial)
        folder = self.json(lambda root: None)
        (folder / 'annotations').mkdir()
        for split in ('train', 'val'):
            (folder / f'{split}2017').symlink_to(self.data / 'images')
            (folder / f'annotations/instances_{split}2017.json').write_bytes(
                (folder / 'annotations.json').read_bytes())
        (folder / 'annotations.json').unlink()
        printed = self.run_it(train_detector, '--initial', self.initial, '--passes', 4,
                              data=folder)
        self.assertIn('of 10 held-out pictures', printed)
        # Files in any other place are given by flags.
        path = (folder / 'annotations/instances_val2017.json').rename(folder / 'mine.txt')
        with mock.patch.object(sys, 'argv', [
                'train_detector', '--annotations', str(path), '--images', str(folder / 'images'),
                '--initial', str(self.initial), '--passes', '4', '--out', str(self.out)]):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                train_detector.main()
        self.assertIn('of 2 held-out pictures', printed.getvalue())

    def test_what_was_left_out_is_said_at_the_end(self):
        write_detector(self.initial)
        def change(root):
            root['annotations'][0].update(bbox=[-20, 2, 40, 9])
            root['categories'] += [dict(id=9, name='bird'), dict(id=0, name='shapes')]
            root['categories'][0].update(supercategory='shapes')
        printed = self.run_it(train_detector, '--initial', self.initial, '--passes', 4,
                              data=self.json(change))
        last = printed[printed.index('held-out pictures'):]
        self.assertRegex(last, 'category shapes is left out: .*\n.*: 1 box clipped .*\n'
                               'cannot be learned, .*: bird\n')
        self.assertEqual((self.out / 'model/labels.txt').read_text(),
                         'circle\ncross\nsquare\ntriangle\nbird\n')

    def test_without_held_out_objects_nothing_is_measured(self):
        write_detector(self.initial)
        printed = self.run_it(
            train_detector, '--initial', self.initial, '--passes', 4, data=self.json(
                lambda root: root.update(annotations=[
                    a for a in root['annotations'] if a['image_id'] not in (1, 6)])))
        self.assertIn('nothing to measure of 2 held-out pictures\n', printed)
        self.assertNotIn('AP50', printed)

    # Errors in the annotations, and the line that reports each error. More errors are in
    # tests/tools/coco_files_test.py.
    WRONG = (
        (lambda root: root['images'][0].update(file_name='no.jpg'), r'no\.jpg: no such file'),
        (lambda root: root['images'][1].update(id=1), 'id 1 is of two images'),
        (lambda root: root['annotations'][1].update(category_id=7),
         'annotation 2: category 7 is not in "categories"'),
        (lambda root: root.update(annotations=[]), 'no annotation is left to use\n$'),
        (lambda root: [a.update(bbox=[900, 9, 9, 9]) for a in root['annotations']],
         'boxes left out, .*: no annotation is left to use\n$'),
        (lambda root: root.update(images=root['images'][:4], annotations=[
            a for a in root['annotations'] if a['image_id'] < 5]),
         '^train_detector: 4 pictures that can be decoded, expected 10 or more\n$'),
    )

    def test_what_is_wrong_is_said_in_a_line(self):
        write_detector(self.initial)
        for change, line in self.WRONG:
            folder = self.json(change)
            self.run_it(train_detector, '--initial', self.initial, data=folder)
            self.assertRegex(self.said, line)
            self.assertRegex(self.said, r'^train_detector: [^\n]+\n$')
            (folder / 'annotations.json').unlink()
            (folder / 'images').unlink()
            folder.rmdir()

    def test_what_is_wrong_with_flags_is_said_in_a_line(self):
        write_segmenter(self.initial)
        for flags, line in ((('--initial', self.folder / 'none'), '[Nn]o such file'),
                            (('--resume',), 'checkpoint.pt: no such file: nothing to resume'),
                            (('--sides', 90, 60), '--sides: expected SHORT, 32 or more')):
            self.run_it(train_detector, '--initial', self.initial, *flags)
            self.assertRegex(self.said, f'^train_detector: [^\n]*{line}[^\n]*\n$')

    def test_processes_of_a_run_may_look_at_once_whether_a_folder_can_be_written(self):
        with mock.patch.object(pathlib.Path, 'write_bytes'):  # As if the other removed it.
            user_errors.check_writable(self.folder / 'new')

    def test_a_run_of_other_classes_is_not_gone_on_with(self):
        write_detector(self.initial)
        self.run_it(train_detector, '--initial', self.initial, '--passes', 4)
        data = self.json(lambda root: root['categories'][0].update(name='ball'))
        self.run_it(train_detector, '--initial', self.initial, '--resume', data=data)
        self.assertRegex(self.said, 'has 4 classes, circle, cross, square, ...; the data have 4, '
                                    'ball, ')


class SegmenterTest(TrainerTest):
    def setUp(self):
        super().setUp()
        self.initial = self.folder / 'initial'
        write_segmenter(self.initial)

    def test_maps(self):
        start = self.learn(
            train_segmenter, 'mean IoU', self.initial, 'SEGMENTATION',
            lambda start: upernet.Segmenter(start.backbone, start.channels, len(start.labels)))
        self.assertEqual(start.labels, ['background', 'circle', 'cross', 'square', 'triangle'])

    def ade20k(self):
        """Returns a folder in ADE20K's layout. All pictures are in its training part and also in
        its validation part.
        """
        folder = self.folder / 'ade'
        for kind, source in (('images', 'images'), ('annotations', 'maps')):
            (folder / kind).mkdir(parents=True)
            for split in ('training', 'validation'):
                (folder / kind / split).symlink_to(self.data / source)
        return folder

    def test_in_the_layout_of_ade20k(self):
        printed = self.run_it(train_segmenter, '--initial', self.initial, '--passes', 4,
                              '--zero_is_ignored', data=self.ade20k())
        self.assertIn('of 10 held-out pictures', printed)
        self.assertEqual((self.out / 'model/labels.txt').read_text(),
                         'class_0\nclass_1\nclass_2\nclass_3\n')

    def test_what_is_wrong_is_said_in_a_line(self):
        folder = self.folder / 'data'
        (folder / 'maps').mkdir(parents=True)
        (folder / 'images').symlink_to(self.data / 'images')
        self.run_it(train_segmenter, '--initial', self.initial, data=folder)
        self.assertRegex(self.said, r'^train_segmenter: \S+/001\.jpg: no map \S+/maps/001\.png\n$')
        maps = {path.name: path.read_bytes() for path in (self.data / 'maps').iterdir()}
        coloured = make_shapes.Image.new('RGB', (90, 64))
        for image, line in ((coloured, r'001\.png: expected a PNG of class numbers'),
                            (coloured.convert('L').resize((9, 9)), r'001\.png: 9 x 9 pixels, ')):
            for name, content in maps.items():
                (folder / 'maps' / name).write_bytes(content)
            image.save(folder / 'maps/001.png')
            self.run_it(train_segmenter, '--initial', self.initial, data=folder)
            self.assertRegex(self.said, f'^train_segmenter: [^\n]*{line}[^\n]*\n$')
        (folder / 'maps/001.png').write_bytes(maps['001.png'])
        (folder / 'labels.txt').write_text('background\ncircle\n')
        self.run_it(train_segmenter, '--initial', self.initial, data=folder)
        self.assertRegex(self.said, r'maps/\d+\.png: has class \d, \S+labels\.txt names 2\n$')
        (folder / 'labels.txt').write_bytes('Hintergrund\nKäse\n'.encode('latin-1'))
        self.run_it(train_segmenter, '--initial', self.initial, data=folder)
        self.assertRegex(self.said, r'^train_segmenter: [^\n]+labels.txt: byte 13 is not UTF-8\n$')


class VMambaTest(TrainerTest):
    """Tests that detectors and segmenters can begin with a classifier's backbone."""

    INITIAL = ROOT / 'tests/testing/testdata/open_weights/vmamba_hf.safetensors'
    FIELDS = dict(family='vmamba', dim=8, depths=(1, 1, 1, 1), ratio=1)

    def check(self, program, name, task, served):
        start = self.learn(program, name, self.INITIAL, task, served,
                           ('--sides', *map(str, SIDES)))
        self.assertEqual((start.backbone, start.sides), (self.FIELDS, SIDES))
        self.assertIn('backbone {\n  variant: "vmamba_t_s1l8"\n  dim: 8\n  depths: [1, 1, 1, 1]\n}',
                      (self.out / 'model/config.textproto').read_text())

    def test_a_detector(self):
        self.check(train_detector, 'box AP50', 'DETECTION',
                   lambda start: detector.Detector(start.backbone, start.detector))

    def test_a_segmenter(self):
        self.check(train_segmenter, 'mean IoU', 'SEGMENTATION', lambda start: upernet.Segmenter(
            start.backbone, start.channels, len(start.labels)))

    def test_a_checkpoint_of_mmdetection(self):
        """Compares the numbers of tensors and parameters with mmdetection's Mask R-CNN on
        VMamba-T."""
        model = detector.Detector(dict(self.FIELDS, dim=96, depths=(2, 2, 8, 2)), detector.Config(
            box_stages=1, box_convs=0, box_fcs=2, mask_convs=4))
        self.assertEqual((len(model.state_dict()), sum(p.numel() for p in model.parameters())),
                         (322, 49_755_312))


class StartTest(unittest.TestCase):
    def test_what_is_exported_begins_with_the_same_answers(self):
        images = torch.rand(1, 3, 64, 96)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            model = write_detector(folder / 'd')
            start = dense_files.open_start(folder / 'd', 'DETECTION')
            again = detector.Detector(start.backbone, start.detector).eval()
            self.assertEqual(dense_files.load(again, start, ['mug', 'circle']), [])
        with torch.inference_mode():
            for expected, got in zip(*(m(images, [(64, 96)])[0] for m in (model, again))):
                torch.testing.assert_close(got, expected, rtol=0.02, atol=0.02)

    def test_classes_of_the_same_name_keep_their_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            write_detector(pathlib.Path(folder))
            start = dense_files.open_start(folder, 'DETECTION')
        model = detector.Detector(start.backbone, dataclasses.replace(start.detector, classes=3))
        self.assertEqual(dense_files.load(model, start, ['cat', 'circle', 'dog']), ['cat', 'dog'])
        for layer, each, rest in (('fc_cls', 1, 1), ('fc_reg', 4, 0)):
            old = torch.from_numpy(start.arrays[f'roi_head.bbox_head.{layer}.weight'])
            new = getattr(model.roi_head.bbox_head, layer).weight.detach()
            mug, circle = old[:each], old[each:2 * each]
            mean = (mug + circle) / 2
            self.assertFalse(mug.equal(circle))
            torch.testing.assert_close(new, torch.cat([mean, circle, mean, old[2 * each:]]))
            self.assertEqual(len(old), 2 * each + rest)

    def test_of_another_task_the_backbone_alone_is_used(self):
        with tempfile.TemporaryDirectory() as folder:
            write_segmenter(pathlib.Path(folder))
            start = dense_files.open_start(folder, 'DETECTION', (128, 160))
        self.assertEqual((start.sides, start.backbone['windows']), ((128, 160), (10, 5)))
        self.assertEqual(start.labels, [])
        config = dataclasses.replace(start.detector, classes=3)
        self.assertEqual(config, detector.Config(classes=3, **configs.DETECTOR))
        dense_files.load(detector.Detector(start.backbone, config), start, ['a', 'b', 'c'])

    def test_of_the_default_models(self):
        for name, task, heads in (
                ('everyday', 'DETECTION', detector.Config(**configs.DETECTOR)),
                ('everyday_segmenter', 'SEGMENTATION', None),
                ('everyday_detector', 'DETECTION', detector.Config(
                    classes=20, box_stds=detector.Config.box_stds[:1], **configs.DETECTOR))):
            folder = ROOT / 'models' / name / '1'
            start = dense_files.open_start(folder, task)
            self.assertEqual(start.backbone, dict(configs.BACKBONE, layer_scale=False,
                                                  tokens='data', swap=True))
            self.assertEqual((start.sides, start.detector), ((256, 320), heads))
            if name == 'everyday':  # All layers of a classifier are used, except the last ones.
                model = detector.Detector(start.backbone, heads)
                dense_files.load(model, start, [str(k) for k in range(heads.classes)])
                for key, value in model.backbone.state_dict().items():
                    if 'outnorm' not in key and not key.endswith('num_batches_tracked'):
                        np.testing.assert_array_equal(value, start.arrays[f'backbone.{key}'])
            else:
                settings = export.detector_text(heads) if heads else \
                    export.segmenter_text(start.channels)
                text = export.config_text(
                    task, start.backbone, len(start.labels),
                    f'{export.input_text(start.sides)}\n{settings}', folder / 'model.safetensors')
                self.assertEqual(text,
                                 (folder / 'config.textproto').read_text())


class LossTest(unittest.TestCase):
    def test_jaccard_of_certain_answers_is_what_the_iou_lacks(self):
        class_maps = torch.tensor([[[0, 0, 0, 1], [1, 1, IGNORE, 2]]])
        answers = torch.tensor([[[0, 0, 1, 1], [1, 0, 3, 2]]])  # IoU 1/2, 1/2 and 1.
        logits = 80 * F.one_hot(answers, 5).movedim(3, 1).float()
        self.assertAlmostEqual(dense_training.jaccard_loss(logits, class_maps).item(), 1 / 3,
                               places=5)
        certain = 80 * F.one_hot(class_maps % IGNORE, 5).movedim(3, 1).float()
        self.assertLess(dense_training.jaccard_loss(certain, class_maps).item(), 1e-6)

    def test_jaccard_falls_along_its_gradient(self):
        torch.manual_seed(0)
        class_maps = torch.randint(0, 3, (2, 4, 4))
        logits = torch.zeros(2, 3, 4, 4, requires_grad=True)
        before = dense_training.jaccard_loss(logits, class_maps)
        before.backward()
        after = dense_training.jaccard_loss(logits - 5 * logits.grad, class_maps)
        self.assertLess(after.item(), before.item())

    def test_maps_without_a_class_teach_nothing(self):
        model = upernet.Segmenter(BACKBONE, 8, 3)
        start = dense_files.Start(BACKBONE, None, 8, SIDES, (0.5,) * 3, (0.5,) * 3, [], '', '', {})
        learner = train_segmenter.Learner(model, start, torch.ones(3))
        losses = learner.losses(torch.zeros(2, 64, 96, 3, dtype=torch.uint8),
                                torch.full((2, 64, 96), IGNORE, dtype=torch.uint8))
        sum(losses.values()).backward()
        self.assertFalse(any(p.grad.any() for p in model.parameters() if p.grad is not None))

    def test_pictures_without_objects_teach_the_background(self):
        torch.manual_seed(0)
        model = detector.Detector(BACKBONE, dataclasses.replace(CONFIG, box_stages=3))
        empty = dense_pictures.Placement((1, 1), (0, 0), (96, 64))
        boxes, masks = empty.boxes(())[0], empty.masks((), (96, 64))
        batch = dict(pictures=torch.zeros(2, 64, 96, 3), boxes=[torch.from_numpy(boxes)] * 2,
                     labels=[torch.empty(0, dtype=torch.int64)] * 2,
                     masks=[torch.from_numpy(masks)] * 2)
        losses = detection_loss.detection_loss(
            model, model.backbone(torch.rand(2, 3, 64, 96)), batch)
        self.assertEqual((losses['box'], losses['rpn_box'], 'mask' in losses), (0, 0, False))
        sum(losses.values()).backward()
        self.assertTrue(model.roi_head.bbox_head[2].fc_cls.bias.grad.any())

    def test_a_cascade_refines_towards_the_object(self):
        config = dataclasses.replace(CONFIG, box_stages=3)
        rois = torch.tensor([[0, 10., 10, 30, 30], [1, 5, 5, 9, 9]])
        goal = torch.tensor([[12., 8, 40, 36]])
        moves = torch.zeros(2, 2, 4)
        moves[0, 1] = detector.encode(rois[:1, 1:], goal, config.box_stds[0])[0]
        scores = torch.tensor([[0., 1, 5], [0, 1, 5]])
        first, second = detection_loss.refine(config, 0, rois, scores, moves, (64, 64), 2)
        torch.testing.assert_close(first, goal)
        torch.testing.assert_close(second, rois[1:, 1:])


if __name__ == '__main__':
    unittest.main()
