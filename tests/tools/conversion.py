"""Runs convert_checkpoint.py on small checkpoints and reads the files that it writes."""

import contextlib
import hashlib
import io
import json
import pathlib
import tempfile
import unittest

import numpy as np

import checkpoints
import convert_checkpoint
from checkpoint.network import Backbone, Network, expected_tensors
from checkpoint.safetensors_file import read_safetensors
from checkpoint.tensor import convert
from parameters import parameters

SMALL = Backbone(dim=16, in_dim=8, depths=(1, 1, 3, 2), layer_scale=True)
CLASSIFIER = Network('CLASSIFICATION', SMALL, 10)


class ConvertTest(unittest.TestCase):
    """Runs convert_checkpoint.py in a temporary folder for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / 'model' / '1'
        self.file = self.folder / 'checkpoint.pth'
        self.arrays = parameters(expected_tensors(CLASSIFIER))

    def run_it(self, data, *flags):
        """Converts a file of these bytes, or an existing path. Returns the exit status. Sets
        self.printed and self.error."""
        if isinstance(data, bytes):
            self.file.write_bytes(data)
        self.given = self.file if isinstance(data, bytes) else data
        output, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(error):
            status = convert_checkpoint.main([str(self.given), '--out', str(self.out), *flags])
        self.printed, self.error = output.getvalue(), error.getvalue()
        return status

    def convert(self, data, *flags):
        self.assertEqual(self.run_it(data, *flags), 0, self.error)
        self.assertEqual(self.error, '')
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         ['config.textproto', 'labels.txt', 'model.safetensors'])
        self.config = (self.out / 'config.textproto').read_text()
        self.labels = (self.out / 'labels.txt').read_text().splitlines()
        weights = (self.out / 'model.safetensors').read_bytes()
        self.assertIn(f'  size_bytes: {len(weights)}\n', self.config)
        self.assertIn(f'  sha256: "{hashlib.sha256(weights).hexdigest()}"\n', self.config)
        self.weights = read_safetensors(memoryview(weights))

    def assert_converted(self, arrays, dtype='F32'):
        """Expects that the written weights are `arrays`, converted from fp32 to `dtype`."""
        self.assertEqual(self.weights.keys(), arrays.keys())
        for name, array in arrays.items():
            self.assertEqual((self.weights[name].dtype, self.weights[name].shape),
                             (dtype, array.shape))
            self.assertEqual(self.weights[name].array().tobytes(),
                             convert(array, 'F32', dtype).tobytes())

    def assert_refused(self, data, message, *flags):
        self.assertEqual(self.run_it(data, *flags), 2)
        self.assertRegex(self.error, message)
        self.assertTrue(self.error.startswith(f'convert_checkpoint: {self.given}: '), self.error)
        self.assertEqual(self.error.count('\n'), 1)
        self.assertFalse(self.out.exists())

    def state(self, **more):
        return {**checkpoints.tensors(self.arrays), **more}


class StrangerTest(ConvertTest):
    """Converts checkpoints in the forms that users have."""

    def saved(self, **beside):
        return checkpoints.zip_file({'state_dict': self.state(), **beside})

    def named(self, prefix='', arrays=None):
        """Returns the tensors with a prefix before their names. Each call uses new storage
        numbers."""
        self.numbers = getattr(self, 'numbers', 0) + 1000
        return {prefix + name: checkpoints.tensor(str(self.numbers + i), array) for i, (name, array)
                in enumerate((arrays or self.arrays).items())}

    def zeros(self):
        return {name: np.zeros_like(array) for name, array in self.arrays.items()}

    def hugging_face(self, name='hub', **config):
        """Returns a folder with config.json and model.safetensors."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / 'config.json').write_text(json.dumps(config))
        (folder / 'model.safetensors').write_bytes(checkpoints.safetensors_file(
            {f'model.{name}': array for name, array in self.arrays.items()}))
        return folder

    def again(self, data, *flags):
        self.convert(data, *flags, '--force')
        self.assert_converted(self.arrays)
