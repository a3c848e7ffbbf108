"""Tests the files from which a training starts, in any layout, and the files that it writes."""

import json
import types
import unittest

import numpy as np

import checkpoints
import classifier_files
import sparse
from checkpoint.network import Backbone, Detector, Network, expected_tensors
from checkpoint.opened import open_checkpoint
from checkpoint.safetensors_file import read_safetensors
from checkpoint.tensor import CheckpointError, convert
from checkpoint.variants import find_row
from classifier_files import facts_of, open_start, write_classifier
from conversion import SMALL, StrangerTest
from official_files_test import OfficialTest, network
from parameters import parameters

TRUNK = Network('CLASSIFICATION', Backbone(28, 0, (0, 0, 2, 1), False, trunk=16), 3)
KNOWN = dict(lite_trunk=16, dim=28, num_heads=(4, 8), windows=(10, 5))


def config_of(start):
    """Returns a stand-in for the Config that sf_mamba.make() builds from `start.fields`. `start` is
    a Start, that is, the classifier from which a training starts."""
    return types.SimpleNamespace(**start.fields)


class OpenTest(OfficialTest):
    def named(self, arch, shapes):
        """Returns a folder with weights of these shapes. Its config.json contains only the name
        `arch`."""
        folder = self.folder / 'named'
        folder.mkdir(exist_ok=True)
        (folder / 'config.json').write_text(json.dumps({'arch': arch}))
        sparse.write_safetensors(folder / 'model.safetensors', shapes)
        return folder

    def test_official_classifiers_of_both_forms(self):
        for row, (file, repository, arch), _, shapes in self.each_classifier():
            table = find_row(f'mamba_vision_{row}')[0]
            folder = self.folder_of(repository, row)
            sparse.write_safetensors(folder / 'model.safetensors',
                                     {f'model.{name}': shape for name, shape in shapes.items()})
            path = self.folder / f'{file}.pth.tar'
            sparse.write_zip(path, {'state_dict': sparse.views(shapes), 'arch': arch})
            for given in (folder, path):
                start = open_start(given)
                self.assertEqual((start.variant, start.classes, start.size),
                                 (f'mamba_vision_{row}', 1000, table.input_size))
                self.assertEqual(start.fields, dict(
                    dim=table.backbone.dim, in_dim=table.backbone.in_dim,
                    depths=table.backbone.depths, num_heads=table.num_heads,
                    windows=table.windows, layer_scale=table.backbone.layer_scale,
                    tokens='none', swap=True, lite_trunk=0, neck=False))
                self.assertEqual(start.tensors.keys(), shapes.keys())

    def test_a_variant_names_what_nothing_tells(self):
        for row, _, _, shapes in self.each_classifier():
            path = self.folder / 'weights.safetensors'
            sparse.write_safetensors(path, shapes)
            with self.assertRaisesRegex(CheckpointError, '--tokens swap'):
                open_start(path)
            for family, tokens in (('mamba_vision', 'none'), ('sf_mamba', 'data')):
                start = open_start(path, f'{family}_{row}')
                self.assertEqual((start.variant, start.fields['tokens']),
                                 (f'{family}_{row}', tokens))

    def test_a_variant_of_another_network_is_refused(self):
        for row, (_, _, arch), _, shapes in self.each_classifier():
            path = self.named(arch, shapes)
            self.assertEqual(open_start(path, f'mamba_vision_{row}').variant,
                             f'mamba_vision_{row}')
            with self.assertRaisesRegex(CheckpointError, f'--variant sf_mamba_{row} is not what '
                                        f'the checkpoint says: config.json arch {arch}$'):
                open_start(path, f'sf_mamba_{row}')
            for other in ('mamba_vision_s' if row != 's' else 'mamba_vision_t',
                          'mamba_vision_l2_512_21k' if row != 'l2_512_21k' else 'mamba_vision_l2'):
                with self.assertRaisesRegex(CheckpointError, f'--variant {other} is not what the '
                                            f'checkpoint is: mamba_vision_{row}$'):
                    open_start(path, other)

    def test_a_family_alone_is_not_overruled(self):
        shapes = expected_tensors(network('l2', 'CLASSIFICATION', 1000))
        path = self.named('mamba_vision', shapes)
        self.assertEqual(open_start(path, 'mamba_vision_l2_512_21k').size, 512)
        with self.assertRaisesRegex(CheckpointError, 'says: config.json arch mamba_vision$'):
            open_start(path, 'sf_mamba_l2')

    def test_names_of_one_network(self):
        shapes = expected_tensors(network('b', 'CLASSIFICATION', 1000))
        path = self.named('mamba_vision_B', shapes)
        self.assertEqual(open_start(path, 'mamba_vision_b_21k').variant, 'mamba_vision_b_21k')


class StartTest(StrangerTest):
    """Starts from the existing weights of a small network."""

    CONFIG = {'model_type': 'mambavision', 'num_heads': [2, 4, 8, 16],
              'window_size': [8, 8, 12, 6], 'mean': [0.5] * 3, 'std': [0.25, 0.5, 1],
              'input_size': [3, 192, 192]}

    def assert_start(self, start, arrays):
        found = start.arrays()
        self.assertEqual(found.keys(), arrays.keys())
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            self.assertEqual(found[name].dtype, np.float32)
            self.assertTrue(found[name].flags.writeable)

    def write(self, value):
        self.file.write_bytes(checkpoints.zip_file(value))
        return self.file

    def test_any_layout(self):
        for start in (open_start(self.hugging_face(**self.CONFIG)),
                      open_start(self.hugging_face(**self.CONFIG) / 'model.safetensors')):
            self.assert_start(start, self.arrays)
            self.assertEqual((start.size, start.mean, start.std),
                             (192, (0.5,) * 3, (0.25, 0.5, 1)))
            self.assertEqual((start.fields['num_heads'], start.fields['windows']),
                             ((8, 16), (12, 6)))
        facts = facts_of(config_of(start), start, 96)
        for prefix in ('', 'model.', 'module._orig_mod.', 'net.model.'):
            path = self.write({'state_dict': self.named(prefix), 'arch': 'mamba_vision_T',
                               'facts': {'labels': ['a'], 'network': facts}})
            start = open_start(path)
            self.assert_start(start, self.arrays)
            self.assertEqual((start.size, start.fields['tokens'], start.fields['windows']),
                             (96, 'none', (12, 6)))

    def test_other_types(self):
        for dtype in ('F16', 'BF16', 'F64'):
            state = {name: checkpoints.tensor(name, convert(array, 'F32', dtype), dtype)
                     for name, array in self.arrays.items()}
            path = self.write({'state_dict': state, 'arch': 'mamba_vision_T',
                               'args': {'num_heads': 3}, 'facts': {'labels': [], 'network': {
                                   'tokens': 'none', 'num_heads': [4, 8]}}})
            rounded = {name: np.float32(convert(convert(array, 'F32', dtype), dtype, 'F32'))
                       for name, array in self.arrays.items()}
            self.assert_start(open_start(path), rounded)

    def test_what_cannot_be_trained_here_is_refused(self):
        detector = Network('DETECTION', SMALL, 5, Detector(3, 4, 1, 4, 16, 32))
        mambas = Network('CLASSIFICATION', Backbone(16, 8, (1, 1, 3, 2), True, attention=False), 10)
        for made, message in ((detector, 'a model of DETECTION, expected a classifier'),
                              (mambas, 'without attention')):
            arrays = parameters(expected_tensors(made))
            path = self.write({'state_dict': self.named('', arrays), 'arch': 'mamba_vision_T'})
            with self.assertRaisesRegex(CheckpointError, message):
                open_start(path)
        with self.assertRaisesRegex(CheckpointError, 'the attention heads .*--num_heads'):
            open_start(self.write({'state_dict': self.state(), 'arch': 'mamba_vision_T'}))
        self.convert(self.hugging_face(**self.CONFIG), '--attention_windows', '4,0')
        with self.assertRaisesRegex(CheckpointError, 'backbone.attention_windows: can be served'):
            open_start(self.out)
        state = self.state()
        del state['levels.3.blocks.1.mixer.qkv.bias']
        with self.assertRaisesRegex(CheckpointError, 'not a custom: missing *levels.3.blocks.1'):
            open_start(self.write({'state_dict': state, 'facts': {'labels': [], 'network': {
                'num_heads': [4, 8]}}}))

    def test_weights_that_are_not_finite(self):
        self.arrays['norm.bias'][3] = np.nan
        with self.assertRaisesRegex(CheckpointError, 'NaN or infinite values in norm.bias'):
            open_start(self.hugging_face(**self.CONFIG)).arrays()

    def test_an_older_checkpoint_on_a_trunk(self):
        self.arrays = parameters(expected_tensors(TRUNK))
        path = self.write({'state_dict': self.named('model.'), 'facts': {'labels': ['a'] * 3}})
        start = open_start(path, known=(dict(KNOWN, dim=24, lite_trunk=32), KNOWN))
        self.assert_start(start, self.arrays)
        self.assertEqual((start.size, start.fields['tokens'], start.fields['num_heads'],
                          start.fields['windows'], start.fields['lite_trunk']),
                         (160, 'data', (4, 8), (10, 5), 16))

    def test_a_directory_of_ours_and_what_training_writes(self):
        """The files that training writes describe the same network and pictures as the files that
        it has read. Only the classes and the crop of the pictures are new."""
        for tokens in ('swap', 'none'):
            self.convert(self.hugging_face(**self.CONFIG), '--force')
            text = (self.out / 'config.textproto').read_text()
            if tokens == 'swap':
                text = text.replace('tokens: NONE', 'tokens: DATA swap: false')
                (self.out / 'config.textproto').write_text(text)
            start = open_start(self.out)
            self.assertEqual((start.size, start.mean, start.std),
                             (192, (0.5,) * 3, (0.25, 0.5, 1)))
            arrays = start.arrays()
            arrays['head.weight'], arrays['head.bias'] = np.ones((2, 128)), np.zeros(2)
            facts = facts_of(config_of(start), start, start.size)
            trained = self.folder / 'trained/1'
            write_classifier(trained, config_of(start), arrays, ['dark', 'light'], facts)
            again = open_start(trained)
            self.assertEqual((again.fields, again.size, again.mean, again.std, again.classes),
                             (start.fields, start.size, start.mean, start.std, 2))
            self.assertEqual(again.fields['swap'], tokens == 'none')
            self.assertEqual((trained / 'labels.txt').read_text(), 'dark\nlight\n')
            written = read_safetensors(memoryview((trained / 'model.safetensors').read_bytes()))
            for name, tensor in written.items():
                self.assertEqual(tensor.dtype, 'F16' if len(tensor.shape) > 1 else 'F32')
                np.testing.assert_allclose(np.float32(tensor.array()), arrays[name], rtol=1e-3,
                                           atol=1e-6)

    def test_the_converter_knows_a_trained_checkpoint(self):
        """A MambaVision network that training has changed must not become an SF-Mamba network."""
        start = open_start(self.hugging_face(**self.CONFIG))
        for tokens, swap in (('none', True), ('data', True), ('data', False)):
            config = types.SimpleNamespace(**{**start.fields, 'tokens': tokens, 'swap': swap})
            facts = facts_of(config, start, 96)
            path = self.write({'state_dict': self.named('model.'),
                               'facts': {'labels': [f'l{i}' for i in range(10)],
                                         'network': facts}})
            self.convert(path, '--force')
            text = self.config
            for part in (f'tokens: {"NONE" if tokens == "none" else "DATA"}\n',
                         'num_heads: [1, 1, 8, 16]\n  windows: [12, 6]\n',
                         '  size: 96\n  crop_pct: 1.0\n  resize: CENTER_CROP\n'
                         '  mean: [0.5, 0.5, 0.5]\n'):
                self.assertIn(part, text)
            self.assertEqual('swap: false' in text, not swap)

    def test_a_row_of_the_table_is_written_by_its_name(self):
        row = find_row('mamba_vision_t')[0]
        start = classifier_files.Start('mamba_vision_t', dict(
            dim=80, in_dim=32, depths=(1, 3, 8, 4), num_heads=(8, 16), windows=(14, 7),
            layer_scale=False, tokens='none', swap=True, lite_trunk=0, neck=False), 2, 224,
            classifier_files.MEAN, classifier_files.STD, '', {})
        arrays = {name: np.zeros(shape, np.float32) for name, shape in expected_tensors(
            Network('CLASSIFICATION', row.backbone, 2)).items()}
        write_classifier(self.out, config_of(start), arrays, ['a', 'b'],
                         facts_of(config_of(start), start, 224))
        opened = open_checkpoint(self.out)
        self.assertEqual((opened.variant, opened.tokens), ('mamba_vision_t', 'none'))
        self.assertNotIn('mean', (self.out / 'config.textproto').read_text())


if __name__ == '__main__':
    unittest.main()
