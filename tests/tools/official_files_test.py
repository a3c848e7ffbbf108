"""Tests MambaVision's official files, and forms in which they are often saved again. The tensors
have their true shapes."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import checkpoints
import convert_checkpoint
import sparse
from checkpoint.network import Detector, Network, expected_tensors
from checkpoint.opened import open_checkpoint
from checkpoint.tensor import CheckpointError
from checkpoint.variants import default_windows, find_row

# The names of the file, of the repository and of the model in its package, by variant.
CLASSIFIERS = {
    't': ('mambavision_tiny_1k', 'MambaVision-T-1K', 'mamba_vision_T'),
    't2': ('mambavision_tiny2_1k', 'MambaVision-T2-1K', 'mamba_vision_T2'),
    's': ('mambavision_small_1k', 'MambaVision-S-1K', 'mamba_vision_S'),
    'b': ('mambavision_base_1k', 'MambaVision-B-1K', 'mamba_vision_B'),
    'l': ('mambavision_large_1k', 'MambaVision-L-1K', 'mamba_vision_L'),
    'l2': ('mambavision_large2_1k', 'MambaVision-L2-1K', 'mamba_vision_L2'),
    'b_21k': ('mambavision_base_21k', 'MambaVision-B-21K', 'mamba_vision_B_21k'),
    'l_21k': ('mambavision_large_21k', 'MambaVision-L-21K', 'mamba_vision_L_21k'),
    'l2_512_21k': ('mambavision_L2_21k_240m_512', 'MambaVision-L2-512-21K',
                   'mamba_vision_L2_512_21k'),
    'l3_256_21k': ('mambavision_L3_21k_740m_256', 'MambaVision-L3-256-21K',
                   'mamba_vision_L3_256_21k'),
    'l3_512_21k': ('mambavision_L3_21k_740m_512', 'MambaVision-L3-512-21K',
                   'mamba_vision_L3_512_21k'),
}
DETECTORS = {row: f'cascade_mask_rcnn_mamba_vision_{size}_3x_coco.pth'
             for row, size in (('t', 'tiny'), ('s', 'small'), ('b', 'base'))}
SEGMENTERS = {'t': ('512x512_tiny', (64, 32)), 's': ('512x512_small', (160, 56)),
              'b': ('512x512_base', (64, 32)), 'l3_256_21k': ('640x640_l3_21k', (64, 32))}
CASCADE = Detector(3, 4, 1, 4, 256, 1024)


def network(row, task, classes):
    detector = CASCADE if task == 'DETECTION' else None
    return Network(task, find_row(f'sf_mamba_{row}')[0].backbone, classes, detector,
                   512 if task == 'SEGMENTATION' else 0)


def counters(shapes):
    return {name.replace('running_var', 'num_batches_tracked'): ()
            for name in shapes if name.endswith('running_var')}


def timm(state, arch, **more):
    """Returns a checkpoint in timm's form. Half of it belongs to the optimizer."""
    arguments = {'model': arch, 'input_size': None, 'crop_pct': 0.875, 'amp': True}
    return {'epoch': 299, 'arch': arch, 'state_dict': checkpoints.ordered(state), 'version': 2,
            'optimizer': {'state': {0: {'exp_avg': sparse.views({'a': (9, 9)}, first=9000)['a']}}},
            'args': checkpoints.Call('argparse.Namespace', (), arguments, call=b'\x81'),
            'amp_scaler': {'scale': 65536.0}, 'metric': 82.3, **more}


def config(row, **more):
    """Returns the contents of Hugging Face's config.json in its short form."""
    row = find_row(f'mamba_vision_{row}')[0]
    backbone = row.backbone
    name = 'MambaVisionModelForImageClassification'
    return {'architectures': [name], 'auto_map': {'AutoConfig': 'configuration_mambavision.'
                                                  'MambaVisionConfig'},
            'depths': list(backbone.depths), 'dim': backbone.dim, 'in_dim': backbone.in_dim,
            'drop_path_rate': 0.2, 'layer_scale': 1e-5 if backbone.layer_scale else None,
            'layer_scale_conv': None, 'mlp_ratio': 4, 'model_type': 'mambavision',
            'num_heads': [row.num_heads[0] // 4, row.num_heads[0] // 2, *row.num_heads],
            'window_size': [8, 8, *row.windows], 'torch_dtype': 'float32', **more}


def mmengine_config(row, windows, kind='MM_mamba_vision'):
    """Returns the text of a configuration as mmengine saves it."""
    row = find_row(f'mamba_vision_{row}')[0]
    return f'''\
auto_scale_lr = dict(base_batch_size=16, enable=False)
log_processor = dict(by_epoch=True, type='LogProcessor', window_size=50)
model = dict(
    backbone=dict(
        depth=50,
        depths={row.backbone.depths},
        dim={row.backbone.dim},
        init_cfg=dict(checkpoint='torchvision://resnet50', type='Pretrained'),
        norm_cfg=dict(requires_grad=True, type='BN'),
        num_heads=(2, 4, *{row.num_heads}),
        pretrained=
        '/ckpts/mambavision_tiny_1k.pth.tar',
        type='{kind}',
        window_size=(
            8,
            8,
            {windows[0]},
            {windows[1]},
        )),
    neck=dict(in_channels=[80, 160, 320, 640], type='FPN'),
    type='CascadeRCNN')
'''.replace(f'(2, 4, *{row.num_heads})', f'(2, 4, {row.num_heads[0]}, {row.num_heads[1]})')


def epoch_file(state, classes, row, windows):
    """Returns the checkpoint that mmengine's runner saves after an epoch. The schedule has a
    MultiStepLR."""
    value = checkpoints.mmengine(state, classes)
    value['meta']['cfg'] = mmengine_config(row, windows)
    milestones = checkpoints.Call('collections.Counter', ({27: 1, 33: 1},))
    value['param_schedulers'] = [{'milestones': milestones, 'gamma': 0.1, 'last_step': 36}]
    return value


class OfficialTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        read = mock.patch('checkpoint.tensor.Storage.elements',
                          side_effect=AssertionError('data was read'))
        read.start()
        self.addCleanup(read.stop)

    def assert_is(self, path, name, expected, **flags):
        opened = open_checkpoint(path, **flags)
        self.assertEqual((opened.variant, opened.tokens), (name, 'none'))
        self.assertEqual(opened.network, expected)
        self.assertEqual({name: t.shape for name, t in opened.tensors.items()},
                         expected_tensors(expected))
        printed = io.StringIO()
        arguments = [part for key, value in flags.items() for part in (f'--{key}', value)]
        with contextlib.redirect_stdout(printed):
            self.assertEqual(convert_checkpoint.main([str(path), '--dry_run', '--quiet',
                                                      *arguments]), 0)
        self.assertIn(f'found: {opened.evidence}\n', printed.getvalue())
        return opened

    def each_classifier(self):
        for row, names in CLASSIFIERS.items():
            with self.subTest(row):
                expected = network(row, 'CLASSIFICATION', 1000)
                yield row, names, expected, expected_tensors(expected)

    def folder_of(self, name, row, **more):
        folder = self.folder / name
        folder.mkdir()
        (folder / 'config.json').write_text(json.dumps(config(row, **more)))
        return folder


class FileTest(OfficialTest):
    def test_classifiers_of_timm(self):
        for row, (file, _, arch), expected, shapes in self.each_classifier():
            path = self.folder / f'{file}.pth.tar'
            state = {**sparse.views(shapes), **sparse.views(counters(shapes), 'I64', 5000)}
            sparse.write_zip(path, timm(state, arch))
            opened = self.assert_is(path, f'mamba_vision_{row}', expected)
            self.assertIn(f'by arch {arch} and args.model {arch}; windows', opened.evidence)
            # The file's arguments contain the crop_pct of the training. Inference crops pictures in
            # another way, so this crop_pct is not used.
            self.assertEqual(opened.choice.picture, {})

    def test_classifiers_without_arch(self):
        """The weights alone do not tell the family, so --tokens is needed. The file's name tells
        the windows."""
        for row, (file, _, _), expected, shapes in self.each_classifier():
            path = self.folder / f'{file}.pth.tar'
            sparse.write_zip(path, {'state_dict': sparse.views(shapes)})
            with self.assertRaisesRegex(CheckpointError, '--tokens swap .* or --tokens none'):
                open_checkpoint(path)
            self.assert_is(path, f'mamba_vision_{row}', expected, tokens='none')

    def test_classifiers_of_hugging_face(self):
        for row, (_, repository, _), expected, shapes in self.each_classifier():
            folder = self.folder_of(repository, row)
            sparse.write_safetensors(folder / 'model.safetensors',
                                     {f'model.{name}': shape for name, shape in shapes.items()})
            for path in (folder, folder / 'model.safetensors'):
                opened = self.assert_is(path, f'mamba_vision_{row}', expected)
                self.assertIn('model_type mambavision', opened.evidence)
                self.assertIsNone(opened.choice.windows)
                self.assertIsNone(opened.choice.num_heads)

    def test_detectors(self):
        for row, file in DETECTORS.items():
            expected = network(row, 'DETECTION', 80)
            state = sparse.views(expected_tensors(expected))
            path = self.folder / file
            sparse.write_zip(path, epoch_file(state, ['a'] * 80, row, (112, 56)))
            opened = self.assert_is(path, f'mamba_vision_{row}', expected)
            self.assertIn('by meta.cfg backbone MM_mamba_vision; windows 112,56 by meta.cfg',
                          opened.evidence)
            self.assertEqual(opened.labels, ['a'] * 80)
            sparse.write_zip(path, {'state_dict': state})
            with self.assertRaisesRegex(CheckpointError, '--tokens swap .* or --tokens none'):
                open_checkpoint(path)

    def test_segmenters(self):
        for row, (size, windows) in SEGMENTERS.items():
            path = self.folder / f'mamba_vision_160k_ade20k-{size}.pth'
            expected = network(row, 'SEGMENTATION', 150)
            state = {**sparse.views(expected_tensors(expected)), **sparse.views(
                {'auxiliary_head.conv_seg.weight': (150, 256, 1, 1)}, first=5000)}
            sparse.write_zip(path, epoch_file(state, ['a'] * 150, row, windows))
            opened = self.assert_is(path, f'mamba_vision_{row}', expected)
            self.assertIn('windows {},{} by meta.cfg'.format(*windows), opened.evidence)
            self.assertEqual(windows, default_windows(f'mamba_vision_{row}', 'SEGMENTATION'))

    def test_sizes_that_only_windows_tell(self):
        for row, other in (('l2', 'l2_512_21k'), ('l3_256_21k', 'l3_512_21k')):
            expected = network(row, 'CLASSIFICATION', 1000)
            shapes = expected_tensors(expected)
            both = (row, other)
            path = self.folder / f'{row}.pth'
            sparse.write_zip(path, {'state_dict': sparse.views(shapes), 'arch': 'mamba_vision'})
            with self.assertRaisesRegex(CheckpointError, 'the shapes fit several variants: ' + ', '
                                        .join(rf'mamba_vision_{name} \(.* pixels\)'
                                              for name in both) + '; name yours by --variant'):
                open_checkpoint(path)
            for name in both:
                self.assert_is(path, f'mamba_vision_{name}', network(
                    name, 'CLASSIFICATION', 1000), variant=f'mamba_vision_{name}')
            folder = self.folder_of(f'{row}_named', row, arch=CLASSIFIERS[other][2])
            sparse.write_safetensors(folder / 'model.safetensors', shapes)
            with self.assertRaisesRegex(CheckpointError, 'config.json: window_size: .*, expected '
                                        rf'windows of mamba_vision_{other} \(.*names it'):
                open_checkpoint(folder)
            self.assert_is(folder, f'mamba_vision_{other}', network(
                other, 'CLASSIFICATION', 1000), variant=f'mamba_vision_{other}')

    def test_a_small_detector_under_the_name_of_the_tiny_one(self):
        expected = network('s', 'DETECTION', 80)
        path = self.folder / DETECTORS['t']
        sparse.write_zip(path, epoch_file(sparse.views(expected_tensors(expected)), ['a'] * 80, 's',
                                          (112, 56)))
        opened = self.assert_is(path, 'mamba_vision_s', expected)
        self.assertEqual(opened.choice.notes, [
            f'the name {DETECTORS["t"]}; but the tensors have dim 96, depths [3, 3, 7, 5], as s'])


class ResavedTest(OfficialTest):
    """Reads the tiny classifier in the forms in which other programs save it."""

    def setUp(self):
        super().setUp()
        self.expected = network('t', 'CLASSIFICATION', 1000)
        self.shapes = expected_tensors(self.expected)

    def prefixed(self, prefix, dtype='F32', first=0):
        return sparse.views({prefix + name: shape for name, shape in self.shapes.items()}, dtype,
                            first)

    def assert_tiny(self, path, *origins):
        opened = self.assert_is(path, 'mamba_vision_t', self.expected)
        for origin in origins:
            self.assertIn(origin, opened.evidence)
        return opened

    def test_layouts(self):
        arch = {'arch': 'mamba_vision_T'}
        raw = self.prefixed('', first=3000)
        wrapped = sparse.views({name.replace('.blocks.', '.blocks._fsdp_wrapped_module.'): shape
                                for name, shape in self.shapes.items()})
        for name, value, origin in (
                ('torch.compile', {**arch, 'state_dict': self.prefixed('_orig_mod.')},
                 'weights: state_dict'),
                ('averaged', timm(raw, 'mamba_vision_T', state_dict_ema=self.prefixed('module.')),
                 'weights: state_dict_ema, the averaged ones, which timm takes first; beside them '
                 'state_dict, which --weights chooses; prefix module.'),
                ('lightning', {'state_dict': self.prefixed('net.model.'), 'callbacks': {},
                               'pytorch-lightning_version': '2.4.0',
                               'hyper_parameters': {'model_name': 'mamba_vision_T'}},
                 'prefix net.model.'),
                ('deepspeed', {'module': self.prefixed('module._orig_mod.'),
                               'ds_version': '0.15', 'args': arch}, 'weights: module; prefix'),
                ('fsdp', {**arch, 'model': wrapped}, 'weights: model'),
                ('fp16', {**arch, 'model_state_dict': self.prefixed('', 'F16')},
                 'weights: model_state_dict'),
                ('bf16', {**arch, 'state_dict': self.prefixed('', 'BF16')},
                 'weights: state_dict')):
            with self.subTest(name):
                sparse.write_zip(self.folder / name, value)
                self.assert_tiny(self.folder / name, origin)

    def test_hugging_faces_layouts(self):
        names = [f'model.{name}' for name in self.shapes]
        shapes = dict(zip(names, self.shapes.values()))
        parts = {'00001': names[:100], '00002': names[100:]}
        for kind, form in (('model', 'safetensors'), ('pytorch_model', 'bin')):
            folder = self.folder_of(kind, 't')
            shards = {}
            for number, part in parts.items():
                file = folder / f'{kind}-{number}-of-00002.{form}'
                shards.update(dict.fromkeys(part, file.name))
                of_part = {name: shapes[name] for name in part}
                if form == 'bin':
                    sparse.write_zip(file, sparse.views(of_part, 'BF16'))
                else:
                    sparse.write_safetensors(file, of_part, 'BF16')
            index = folder / f'{kind}.{form}.index.json'
            index.write_text(json.dumps({'metadata': {'total_size': 1}, 'weight_map': shards}))
            for path in (folder, index):
                self.assert_tiny(path, 'model_type mambavision', 'prefix model.')
            with self.assertRaisesRegex(CheckpointError, 'one of several shards: give their index'):
                open_checkpoint(file)
        folder = self.folder_of('whole', 't')
        sparse.write_zip(folder / 'pytorch_model.bin', sparse.views(shapes, 'F16'))
        self.assert_tiny(folder)

    def test_a_folder_of_timms(self):
        """timm publishes models with tensor names without a prefix and with another config.json."""
        folder = self.folder / 'timm'
        folder.mkdir()
        pretrained = {'input_size': [3, 224, 224], 'crop_pct': 1.0, 'crop_mode': 'center',
                      'interpolation': 'bicubic', 'mean': [0.485, 0.456, 0.406],
                      'std': [0.229, 0.224, 0.225], 'num_classes': 1000}
        (folder / 'config.json').write_text(json.dumps(
            {'architecture': 'mamba_vision_T', 'num_classes': 1000, 'pretrained_cfg': pretrained}))
        sparse.write_safetensors(folder / 'model.safetensors', self.shapes, 'F16')
        opened = self.assert_tiny(folder, 'config.json architecture mamba_vision_T')
        self.assertEqual(opened.choice.picture, {})

    def test_a_cache_of_hugging_faces(self):
        """A snapshot contains links to files without suffixes. The snapshot's name has no
        meaning."""
        names = {str(i): f'label {i}' for i in range(1000)}
        blobs = self.folder_of('blobs', 't', id2label=names)
        (blobs / 'config.json').rename(blobs / '0a1b')
        sparse.write_safetensors(blobs / '2c3d', {
            f'model.{name}': shape for name, shape in self.shapes.items()})
        snapshot = self.folder / 'snapshots/4e5f'
        snapshot.mkdir(parents=True)
        for name, blob in (('config.json', '0a1b'), ('model.safetensors', '2c3d')):
            (snapshot / name).symlink_to(f'../../blobs/{blob}')
        for path in (snapshot, snapshot / 'model.safetensors'):
            opened = self.assert_tiny(path, 'model_type mambavision')
            self.assertEqual(opened.labels, list(names.values()))


if __name__ == '__main__':
    unittest.main()
