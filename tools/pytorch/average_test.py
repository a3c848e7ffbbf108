"""Tests the average of two models: means, bits that stay, and a folder that the server accepts."""

import hashlib
import pathlib
import subprocess
import sys
import tempfile
import unittest

import safetensors.torch
import torch

import average

CONFIG = 'num_classes: 2\nweights {\n  size_bytes: 1\n  sha256: "00"\n}\n'


class AverageTest(unittest.TestCase):
    def test_weights_are_means_and_equal_ones_keep_their_bits(self):
        frozen = torch.tensor([0.1, 65504.0]).half()
        first = {'a': torch.tensor([1.0, 2.0]), 'frozen': frozen}
        second = {'a': torch.tensor([3.0, -2.0]), 'frozen': frozen.clone()}
        result = average.mean(first, second)
        self.assertEqual(result['a'].tolist(), [2, 0])
        self.assertTrue(torch.equal(result['frozen'], frozen))
        self.assertEqual(result['frozen'].dtype, torch.float16)

    def test_models_that_differ_in_layers_are_refused_by_name(self):
        a, b = {'x': torch.zeros(2)}, {'x': torch.zeros(3)}
        with self.assertRaisesRegex(ValueError, r'x: expected \[2\] in both models, got \[3\]'):
            average.mean(a, b)
        with self.assertRaisesRegex(ValueError, 'y: expected in both models, is in one'):
            average.mean(a, {**a, 'y': torch.zeros(1)})

    def test_a_missing_model_is_a_line(self):
        with tempfile.TemporaryDirectory() as root:
            result = subprocess.run([sys.executable, '-B', average.__file__, '--of', f'{root}/a',
                                     f'{root}/b', f'--out={root}/out'], capture_output=True,
                                    text=True)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r'\Aaverage: .*/a/model.safetensors\n\Z')

    def test_damaged_weights_are_named(self):
        with tempfile.TemporaryDirectory() as root:
            path = pathlib.Path(root) / average.WEIGHTS
            path.write_bytes(b'x')
            with self.assertRaisesRegex(average.UserError, f'{path}: not a safetensors file'):
                average.average([path.parent] * 2, path.parent / 'out')

    def test_the_folder_has_the_sum_of_its_weights(self):
        with tempfile.TemporaryDirectory() as root:
            folders = []
            for i in range(2):
                folder = pathlib.Path(root) / str(i)
                folder.mkdir()
                (folder / 'config.textproto').write_text(CONFIG)
                safetensors.torch.save_file({'a': torch.tensor([float(i)])},
                                            folder / average.WEIGHTS)
                folders.append(folder)
            out = pathlib.Path(root) / 'out'
            average.average(folders, out)
            data = (out / average.WEIGHTS).read_bytes()
            text = (out / 'config.textproto').read_text()
            self.assertIn(f'size_bytes: {len(data)}\n', text)
            self.assertIn(f'sha256: "{hashlib.sha256(data).hexdigest()}"', text)
            self.assertIn('num_classes: 2', text)
            self.assertEqual(safetensors.torch.load_file(out / average.WEIGHTS)['a'].tolist(), [0.5])

    def test_folders_of_public_weights_have_no_sum(self):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / 'model'
            folder.mkdir()
            (folder / 'config.json').write_text('{}')
            safetensors.torch.save_file({'a': torch.tensor([1.0])}, folder / average.WEIGHTS)
            out = pathlib.Path(root) / 'out'
            average.average([folder] * 2, out)
            self.assertEqual((out / 'config.json').read_text(), '{}')
            self.assertEqual(safetensors.torch.load_file(out / average.WEIGHTS)['a'].tolist(), [1])


if __name__ == '__main__':
    unittest.main()
