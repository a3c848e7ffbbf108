"""Tests training from nothing by the published recipe, with torchrun and at a tiny size."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch
from PIL import Image

import classifier_files
import imagenet_data
import imagenet_recipe as recipes
import sf_mamba
from dataset_test import write_pictures
from lamb import Lamb
from user_errors import UserError

HERE = pathlib.Path(__file__).parent
# The program with variant T replaced by a network that is small enough for a test.
PROGRAM = f'''
import sys
sys.path.insert(0, {str(HERE)!r})
import sf_mamba, train_imagenet, user_errors
sf_mamba.VARIANTS['T'] = dict(dim=16, in_dim=8, depths=(1, 1, 3, 2), num_heads=(4, 8))
user_errors.run('train_imagenet', train_imagenet.main)
'''


class TorchrunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        write_pictures(self.folder / 'data/train', 12)
        write_pictures(self.folder / 'data/val', 4)
        (self.folder / 'program.py').write_text(PROGRAM)

    def torchrun(self, *flags):
        command = [sys.executable, '-B', '-m', 'torch.distributed.run', '--standalone',
                   '--nproc_per_node=2', self.folder / 'program.py',
                   f'--data={self.folder}/data', '--variant=T', f'--out={self.folder}/run',
                   '--size=32', '--batch=8', '--part=2', '--workers=1', '--rate=0.02', *flags]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def log(self):
        return [json.loads(line) for line in (self.folder / 'run/log.txt').read_text().splitlines()]

    def test_two_processes_train_resume_and_export(self):
        broken = self.folder / 'data/val/dark/0.png'
        broken.write_bytes(broken.read_bytes()[:500])
        first = self.torchrun('--passes=80', f'--export={self.folder}/models/t/1')
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout.count('accuracy '), 1)  # Only one process prints.
        self.assertIn('of 8 held-out pictures', first.stdout)
        self.assertIn('passed over, named above', first.stdout)
        self.assertIn(f'passed over: {broken}', first.stderr)
        start = classifier_files.open_start(self.folder / 'models/t/1')
        self.assertEqual((start.fields['dim'], start.fields['windows'], start.size, start.classes),
                         (16, (2, 1), 32, 2))
        # A longer run has another schedule. This only tests that the run goes on.
        again = self.torchrun('--passes=160', '--resume')
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual([row['passes'] for row in self.log()], [80, 160])
        self.assertTrue(all(np.isfinite(row['loss']) for row in self.log()))
        self.assertIn('mesa', self.log()[-1])  # MESA counts after a quarter of the run.

    def test_a_batch_that_cannot_be_divided_is_a_line(self):
        result = self.torchrun('--passes=80', '--part=3')
        self.assertIn('train_imagenet: a batch of 8 is no multiple of 3 pictures on each of 2 '
                      'processes', result.stderr)


class DataTest(unittest.TestCase):
    def order(self, **changed):
        """Returns the keys (epoch, number) of all parts of the first eight steps."""
        fields = {**dict(count=10, batch=8, part=2, seed=3), **changed}
        parts = fields['batch'] // fields['part'] // fields.get('processes', 1)
        return [key for part, _ in zip(imagenet_data.Order(**fields), range(8 * parts))
                for key in part]

    def test_an_epoch_is_every_picture_once(self):
        keys = self.order()
        self.assertEqual(len(keys), 64)
        for epoch in range(6):
            self.assertEqual(sorted(number for e, number in keys if e == epoch), list(range(10)))
        self.assertNotEqual(keys[:10], [(0, number) for _, number in keys[10:20]])

    def test_processes_share_the_pictures(self):
        ranks = [self.order(rank=rank, processes=2) for rank in (0, 1)]
        self.assertEqual([key for pair in zip(*ranks) for key in pair], self.order())

    def test_a_later_start_goes_on_in_the_order(self):
        self.assertEqual(self.order(first=5)[:24], self.order()[40:])

    def test_a_picture_becomes_the_same_whoever_reads_it(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write_pictures(folder, 3)
            (folder / 'dark/1.png').write_bytes(b'')
            files = [(str(folder / f'dark/{i}.png'), i) for i in range(3)]
            transform = recipes.augmentation(16)
            with contextlib.redirect_stderr(io.StringIO()):
                results = [next(iter(imagenet_data.batches(
                    files, transform, imagenet_data.Order(3, 3, 3, seed), workers)))
                    for seed, workers in ((0, 0), (0, 1), (1, 0))]
        for a, b in zip(*results[:2]):
            self.assertTrue(a.equal(b))
        self.assertEqual(tuple(results[0][0].shape), (3, 3, 16, 16))
        self.assertFalse(results[0][0].equal(results[2][0]))
        # The next picture replaces the one that cannot be read.
        self.assertEqual(sorted(results[0][1].tolist()), [0, 2, 2])
        self.assertEqual(results[0][2].sum().item(), 1)

    def test_folders_that_do_not_agree_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for part, classes in (('train', 'ab'), ('val', 'ac')):
                for name in classes:
                    (folder / part / name).mkdir(parents=True)
                    Image.new('RGB', (4, 4)).save(folder / part / name / 'x.JPEG')
            with self.assertRaisesRegex(UserError, 'train and val have other classes: b'):
                imagenet_data.ImageFolders(folder, 32)


class RecipeTest(unittest.TestCase):
    def test_the_schedule_is_the_published_one(self):
        for recipe in recipes.RECIPES.values():
            share = recipes.schedule(recipe)
            total = recipes.EPOCHS + recipes.COOLDOWN
            for epoch, rate in ((0, 1e-6), (recipe.warmup / 2, 2.5005e-3), (155, 2.5025e-3),
                                (310, 5e-6), (320, 5e-6)):
                self.assertAlmostEqual(share(epoch / total) * recipes.RATE, rate, places=9)

    def test_mixed_pictures_have_shares_of_two_classes(self):
        torch.manual_seed(0)
        mix, kinds = recipes.mixing(3), set()
        pictures = torch.arange(4.0).view(4, 1, 1, 1).expand(4, 3, 8, 8)
        for _ in range(20):
            mixed, shares = mix(pictures, torch.tensor([0, 1, 2, 0]))
            self.assertTrue(shares.sum(1).allclose(torch.ones(4)))
            kinds.add(bool((mixed.frac() == 0).all()))  # CutMix keeps values, MixUp blends them.
        self.assertEqual(kinds, {True, False})

    def test_mesa_is_nothing_between_equals(self):
        logits = torch.randn(4, 5)
        self.assertAlmostEqual(recipes.mesa_loss(logits, logits).item(), 0, places=4)
        self.assertGreater(recipes.mesa_loss(logits, -logits).item(), 1)

    def test_stochastic_depth_leaves_out_whole_residuals(self):
        model = sf_mamba.make('T', drop_path=0.2)
        shares = [m.left_out for m in model.modules() if isinstance(m, sf_mamba.Block)]
        np.testing.assert_allclose(shares, np.linspace(0, 0.2, 16), atol=1e-6)
        block, x = sf_mamba.Block(), torch.ones(4000, 2, 3)
        block.left_out = 0.25
        y = block.train().residual(x)
        self.assertEqual(len(y.view(4000, 6).unique(dim=1)[0]), 1)
        self.assertAlmostEqual((y == 0).float().mean().item(), 0.25, delta=0.03)
        self.assertAlmostEqual(y.mean().item(), 1, delta=0.05)
        self.assertIs(block.eval().residual(x), x)


class LambTest(unittest.TestCase):
    def test_two_steps_by_the_formula(self):
        rng = np.random.default_rng(0)
        start, gradients = rng.normal(size=(3, 4)), rng.normal(size=(2, 3, 4))
        decayed, plain = (torch.nn.Parameter(torch.from_numpy(start.copy())) for _ in range(2))
        optimiser = Lamb([dict(params=[decayed], lr=0.1, weight_decay=0.05),
                          dict(params=[plain], lr=0.1, weight_decay=0.0)], eps=1e-8)
        expected, m, v = [start.copy(), start.copy()], 0, 0
        for t, gradient in enumerate(gradients, 1):
            decayed.grad, plain.grad = torch.from_numpy(gradient), torch.from_numpy(gradient)
            optimiser.step()
            g = gradient / max(1, np.sqrt(2 * (gradient**2).sum()))  # The norm of both gradients.
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            r = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            u = r + 0.05 * expected[0]
            expected[0] = expected[0] - 0.1 * np.linalg.norm(expected[0]) / np.linalg.norm(u) * u
            expected[1] = expected[1] - 0.1 * r
        np.testing.assert_allclose(decayed.detach().numpy(), expected[0], rtol=1e-9)
        np.testing.assert_allclose(plain.detach().numpy(), expected[1], rtol=1e-9)


if __name__ == '__main__':
    unittest.main()
