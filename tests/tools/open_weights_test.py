"""Tests that MambaOut, EfficientViM and VMamba are recognized by their tensors, with each of the
names in use."""

import json
import pathlib
import tempfile
import unittest

import numpy as np

import checkpoints
from checkpoint.files import read_files
from checkpoint.open_names import MAMBAOUT, family_of, own_names
from checkpoint.open_weights import fields_of, read_open_weights
from checkpoint.state_dict import read_state_dict
from checkpoint.tensor import CheckpointError
from checkpoint.vmamba import hugging_face_names

FIXTURES = pathlib.Path(__file__).parents[1] / 'testing/testdata/open_weights'


def state_of(name):
    return read_state_dict(read_files(FIXTURES / f'{name}.safetensors').value).tensors


def read(name):
    """Returns (family, shapes by the network's own names) of a fixture."""
    tensors = state_of(name)
    family = family_of(tensors.keys())
    return family, {key: tensor.shape for key, tensor in own_names(family, tensors).items()}


def mambaout(**changed):
    """Returns the shapes of test_mambaout that decide which network it is, and a few more."""
    shapes = {'head.fc.weight': (2, 256), 'stem.conv1.weight': (8, 3, 3, 3)}
    for k, (width, depth) in enumerate(zip((16, 32, 48, 64), (1, 1, 3, 1))):
        for j in range(depth):
            block = f'stages.{k}.blocks.{j}.'
            shapes.update({f'{block}norm.weight': (width,), f'{block}ls.gamma': (width,),
                           f'{block}fc1.weight': (6 * width, width),
                           f'{block}fc2.weight': (width, 3 * width),
                           f'{block}conv.weight': (width, 1, 7, 7)})
    return {name: np.zeros(shape, 'f4') for name, shape in {**shapes, **changed}.items()}


class NamesTest(unittest.TestCase):
    def test_other_names_are_those_of_the_same_network(self):
        for pair in (('vmamba_hf', 'vmamba_old_names'),
                     ('mambaout_plain', 'mambaout_original_names'),
                     ('efficientvim_dist_odd', 'efficientvim_upstream')):
            (family, first), (other, second) = map(read, pair)
            self.assertEqual(family, other)
            same = [{name: len(shape) for name, shape in shapes.items()
                     if '.blocks.1.' not in name and '_dist' not in name}
                    for shapes in (first, second)]
            self.assertEqual(*same)

    def test_hugging_face_s_names_are_made_and_read(self):
        stored = read_files(FIXTURES / 'vmamba_hf.safetensors').value
        arrays = {name: tensor.array() for name, tensor in state_of('vmamba_hf').items()}
        self.assertIn('layers.0.blocks.0.op.dt_projs_weight', arrays)
        again = hugging_face_names(arrays)
        self.assertEqual(again.keys(), stored.keys())
        for name, array in again.items():
            np.testing.assert_array_equal(array, stored[name].array())

    def test_fields_follow_from_the_shapes(self):
        for name, expected in (
                ('vmamba_s2_odd', dict(dim=10, depths=(1, 2, 1, 1), ratio=2)),
                ('mambaout_rw_gelu', dict(
                    widths=(12, 24, 36, 48), depths=(1, 1, 1, 1), hidden=(30, 60, 90, 120),
                    conv=(15, 30, 45, 60), rw=True)),
                ('efficientvim_dist_odd', dict(widths=(16, 24, 40), depths=(1, 1, 1),
                                               states=(9, 7, 5), distilled=True))):
            self.assertEqual(fields_of(*read(name)), expected)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def read(self, arrays, config=None, variant=None):
        (self.folder / 'model.safetensors').write_bytes(checkpoints.safetensors_file(arrays))
        if config is not None:
            (self.folder / 'config.json').write_text(json.dumps(config))
        return read_open_weights(self.folder, variant)

    def test_the_architecture_tells_what_shapes_do_not(self):
        picture = dict(input_size=[3, 96, 96], crop_pct=0.5, crop_mode='squash')
        found = self.read(mambaout(), dict(
            architecture='test_mambaout.in1k', label_names=['a', 'b'], pretrained_cfg=picture))
        self.assertEqual((found.family, found.variant, found.fields['activation'], found.labels),
                         (MAMBAOUT, 'test_mambaout', 'silu', ['a', 'b']))
        self.assertEqual(found.picture, dict(
            resize='STRETCH', size=96, crop_pct=0.5, mean=(0.485, 0.456, 0.406),
            std=(0.229, 0.224, 0.225)))
        self.assertEqual(found.evidence, 'test_mambaout, a classifier of 2 classes: '
                                         'by config.json architecture')

    def test_what_is_in_doubt_is_an_error(self):
        named = {'architecture': 'test_mambaout'}
        for arrays, config, variant, message in (
                (mambaout(), {}, None, 'nothing tells the activation: give --variant, test_mamba'),
                (mambaout(), named, 'mambaout_tiny', 'the evidence does not agree: --variant is '
                                                     'mambaout_tiny, but config.json archi'),
                (mambaout(), {'architecture': 'mambaout_rw_t'}, None, 'expected one of mambaout_f'),
                (mambaout(**{'stages.3.blocks.0.fc2.weight': (64, 191)}), named, None,
                 r'has hidden \(48, 96, 144, 192\), but the weights have .* 191\)')):
            with self.assertRaisesRegex(CheckpointError, message):
                self.read(arrays, config, variant)

    def test_more_blocks_are_taken(self):
        more = {name.replace('blocks.0', 'blocks.1'): array.shape for name, array in
                mambaout().items() if name.startswith('stages.0')}
        self.assertEqual(self.read(mambaout(**more), {'architecture': 'test_mambaout'})
                         .fields['depths'], (2, 1, 3, 1))

    def test_other_networks_are_none_of_these(self):
        self.assertIsNone(self.read({'patch_embed.conv_down.0.weight': np.zeros(1, 'f4')}))


if __name__ == '__main__':
    unittest.main()
