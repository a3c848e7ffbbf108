"""Tests VMamba's checkpoints in the forms of its authors, of mmdetection and mmsegmentation, and of
Hugging Face."""

import json

import numpy as np

import checkpoints
from checkpoint.network import Detector, Network, expected_tensors
from checkpoint.open_weights import read_open_weights
from checkpoint.tensor import CheckpointError
from checkpoint.vmamba import ROWS, Backbone, hugging_face_names
from conversion import ConvertTest
from parameters import parameters

SMALL = Backbone(dim=8, ratio=1, depths=(1, 1, 2, 1))
CLASSIFIER = Network('CLASSIFICATION', SMALL, 5)
MASK_RCNN = Network('DETECTION', SMALL, 3, Detector(1, 0, 2, 4, 16, 32))
UPERNET = Network('SEGMENTATION', SMALL, 4, None, 16)


class VMambaTest(ConvertTest):
    def setUp(self):
        super().setUp()
        self.arrays = parameters(expected_tensors(CLASSIFIER))

    def test_a_classifier_as_its_authors_save_it(self):
        self.convert(checkpoints.zip_file({'model': self.state(), 'epoch': 299,
                                           'max_accuracy': 82.6}))
        self.assert_converted(self.arrays)
        self.assertEqual(self.config.split('weights')[0], '''\
# proto-file: sfmamba/v1/config.proto
# proto-message: sfmamba.v1.ModelConfig
task: CLASSIFICATION
backbone {
  variant: "vmamba_t_s1l8"
  dim: 8
  depths: [1, 1, 2, 1]
}
num_classes: 5
''')
        self.assertIn('found: vmamba_t_s1l8, a classifier of 5 classes: VMamba by the tensors',
                      self.printed)

    def test_the_average_comes_first(self):
        other = {name: checkpoints.tensor(f'other{i}', np.zeros_like(array))
                 for i, (name, array) in enumerate(self.arrays.items())}
        self.convert(checkpoints.zip_file({'model': other, 'model_ema': self.state()}))
        self.assert_converted(self.arrays)

    def older(self):
        """Returns the arrays with the names and shapes of older files."""
        old = {}
        for name, array in self.arrays.items():
            if '.blocks.' in name:
                name = name.replace('.op.', '.self_attention.').replace('.norm.', '.ln_1.')
                if name.endswith(('_proj.weight', 'fc1.weight', 'fc2.weight')):
                    array = array[:, :, None, None]
            old[name.replace('classifier.', '')] = array
        return old

    def test_older_names_and_shapes(self):
        self.convert(checkpoints.zip_file({'model': checkpoints.tensors(self.older())}))
        self.assert_converted(self.arrays)

    def test_older_names_of_detectors_and_segmenters(self):
        for network in (MASK_RCNN, UPERNET):
            self.arrays = parameters(expected_tensors(network))
            self.assertIn('backbone.layers.0.blocks.0.self_attention.A_logs', self.older())
            state = checkpoints.tensors(self.older())
            self.convert(checkpoints.zip_file({'state_dict': state}), '--force')
            self.assert_converted(self.arrays)

    def hugging_face(self, **config):
        """Returns a folder in the layout of Hugging Face's repositories."""
        folder = self.folder / 'hub'
        folder.mkdir(exist_ok=True)
        (folder / 'config.json').write_text(json.dumps(dict(dict(
            model_type='vmamba', architectures=['VMambaForImageClassification'], dims=8,
            depths=[1, 1, 2, 1], patch_size=4,
            id2label={i: f'label {i}' for i in range(5)}), **config)))
        (folder / 'model.safetensors').write_bytes(
            checkpoints.safetensors_file(hugging_face_names(self.arrays)))
        return folder

    def test_hugging_face_s_folders(self):
        self.convert(self.hugging_face(embed_dim=8, crop_pct=1.0))
        self.assert_converted(self.arrays)
        self.assertEqual(self.labels, [f'label {i}' for i in range(5)])
        self.assertIn('variant: "vmamba_t_s1l8"', self.config)
        self.assertIn('crop_pct: 1', self.config)

    def test_a_config_that_contradicts_the_weights_is_refused(self):
        for config, message in (
                ({'depths': [1, 1, 5, 1]}, r'depths: got \[1,1,5,1\], expected \[1,1,2,1\], as the '
                                           'weights have it'),
                ({'dims': [8, 16, 32, 65]}, r'dims: got .*, expected \[8,16,32,64\]'),
                ({'model_type': 'vim'}, 'model_type: got "vim", expected "vmamba"')):
            folder = self.hugging_face(**config)
            self.assert_refused(folder, f'config.json: {message}')
            with self.assertRaisesRegex(CheckpointError, message):
                read_open_weights(folder)

    def test_the_variants_are_told_by_their_shapes(self):
        for name, backbone in ROWS.items():
            shapes = expected_tensors(Network('CLASSIFICATION', backbone, 1000))
            self.assertEqual(sum(map(np.prod, shapes.values())),
                             {'vmamba_t_s1l8': 30_249_064, 'vmamba_t_s2l5': 30_705_832,
                              'vmamba_s_s2l15': 50_147_752, 'vmamba_s_s1l20': 49_012_840,
                              'vmamba_b_s2l15': 88_557_800, 'vmamba_b_s1l20': 86_614_504}[name])

    def test_detectors_and_segmenters(self):
        for network, task in ((MASK_RCNN, 'DETECTION'), (UPERNET, 'SEGMENTATION')):
            self.arrays = parameters(expected_tensors(network))
            names = ['a', 'b', 'c', 'd'][:network.classes]
            auxiliary = checkpoints.tensor('auxiliary', np.zeros(3, np.float32))
            state = self.state(**{'auxiliary_head.conv_seg.bias': auxiliary})
            self.convert(checkpoints.zip_file(checkpoints.mmengine(state, names)), '--force')
            self.assert_converted(self.arrays)
            self.assertEqual(self.labels, names)
            self.assertIn(f'task: {task}\nbackbone {{\n  variant: "vmamba_t_s1l8"\n', self.config)

    def test_other_versions_are_refused_by_a_tensor(self):
        block = 'layers.0.blocks.0.'
        for name, shape, message in (
                (f'{block}op.in_proj.weight', (16, 8), 'has 16 rows, expected 8, .* a gate'),
                ('patch_embed.0.weight', (4, 3, 4, 4), 'is 4 pixels a side, expected 3'),
                (f'{block}op.conv2d.weight', (24, 1, 3, 3), 'in_proj.weight has 8 rows'),
                ('layers.0.downsample.reduction.weight', (16, 32), 'reduction.weight: VMamba v2 '),
                (f'{block}op.conv2d.bias', (8,), 'conv2d.bias: VMamba v2 has none'),
                (f'{block}op.out_norm.0.weight', (8,), 'out_norm.0.weight: VMamba v2 has none'),
                (f'{block}op.A_logs', (32, 20), 'A_logs has 20 states, expected 1')):
            arrays = {**self.arrays, name: np.zeros(shape, np.float32)}
            self.assert_refused(checkpoints.zip_file({'model': checkpoints.tensors(arrays)}),
                                message)
            with self.assertRaisesRegex(CheckpointError, message):
                read_open_weights(self.file)

    def test_flags_of_other_families_are_refused(self):
        data = checkpoints.zip_file({'model': self.state()})
        self.assert_refused(data, 'leave out --variant and --tokens', '--tokens', 'none')
