"""Tests which network a checkpoint has if the shapes of its tensors fit several networks."""

import dataclasses
import math
import shutil

import checkpoints
from checkpoint.network import Detector, Network, expected_tensors
from conversion import SMALL, StrangerTest
from official_files_test import mmengine_config
from parameters import parameters

HEADS = ('--num_heads', '4,8')
BOTH = '--tokens swap for SF-Mamba or --tokens none for MambaVision'
CASCADE = Network('DETECTION', SMALL, 5, Detector(3, 4, 1, 4, 16, 32))


def namespace(**attributes):
    return checkpoints.Call('argparse.Namespace', (), attributes, call=b'\x81')


class C1EvidenceTest(StrangerTest):
    def assert_tokens(self, data, tokens, source, *flags):
        self.again(data, *HEADS, *flags)
        self.assertIn(f'  tokens: {tokens}\n', self.config)
        self.assertRegex(self.printed, f'\nfound: custom, a classifier of 10 classes: .*{source}')

    def test_no_evidence_is_refused(self):
        for data in (self.saved(), self.saved(arch='resnet50', args=namespace(model='vit')),
                     self.saved(meta={'cfg': 'model = dict(backbone=dict(type="ResNet"))'}),
                     self.saved(facts={}, meta={'cfg': 'model = dict(', 'config': 3}),
                     checkpoints.safetensors_file(self.arrays),
                     self.hugging_face(model_type='swin')):
            self.assert_refused(data, BOTH, *HEADS)

    def test_mamba_vision(self):
        config = mmengine_config('t', (10, 5))
        for beside, source in (
                ({'arch': 'mamba_vision_T'}, 'by arch mamba_vision_T'),
                ({'args': namespace(model='mamba_vision_L3_512_21k')}, r'by args\.model mamba'),
                ({'args': {'arch': 'mambavision_tiny_1k'}}, r'by args\.arch mamba'),
                ({'hyper_parameters': {'model_name': 'MambaVision-T-1K'}},
                 r'by hyper_parameters\.model_name'),
                ({'meta': {'cfg': config}}, r'by meta\.cfg backbone MM_mamba_vision'),
                ({'meta': {'config': config}}, r'by meta\.config backbone MM_mamba_vision'),
                ({'meta': {'cfg': 'm = {"backbone": {"type": "MambaVision"}}'}},
                 r'by meta\.cfg backbone MambaVision')):
            self.assert_tokens(self.saved(**beside), 'NONE', source)
        for config in ({'model_type': 'mambavision'}, {'arch': 'mamba_vision_T'},
                       {'architectures': ['MambaVisionModelForImageClassification']}):
            self.assert_tokens(self.hugging_face(**config), 'NONE', r'by config\.json ')

    def test_sf_mamba(self):
        for beside, source in (
                ({'arch': 'sf_mamba_t'}, 'by arch sf_mamba_t'),
                ({'meta': {'cfg': mmengine_config('t', (84, 42), 'MM_SFMamba')}},
                 r'by meta\.cfg backbone MM_SFMamba'),
                ({'facts': {'labels': ['a'] * 10}}, 'by facts written by tools/pytorch')):
            self.assert_tokens(self.saved(**beside), 'DATA', source)
        self.assert_tokens(self.hugging_face(model_type='sf_mamba'), 'DATA', r'config\.json')
        self.arrays = parameters(expected_tensors(Network(
            'CLASSIFICATION', dataclasses.replace(SMALL, learnable=True), 10)))
        self.assert_tokens(self.saved(), 'LEARNABLE', 'by the tensors aux_head')
        shutil.rmtree(self.out)
        self.assert_refused(self.saved(), 'aux_head are SF-Mamba', *HEADS, '--tokens', 'none')
        self.assert_refused(self.saved(arch='mamba_vision_T'), BOTH, *HEADS)

    def test_tokens_that_do_not_swap(self):
        self.again(self.saved(facts={'depth': 3, 'swap': False}), *HEADS)
        self.assertIn('  swap: false\n', self.config)
        self.again(self.saved(facts={'depth': 3, 'swap': True}), *HEADS)
        self.assertNotIn('swap', self.config)

    def test_a_contradiction_is_refused(self):
        data = self.saved(arch='mamba_vision_T', args=namespace(model='sf_mamba_t'))
        self.assert_refused(data, 'args.model sf_mamba_t is SF-Mamba .* but arch '
                            f'mamba_vision_T is MambaVision .*{BOTH}', *HEADS)

    def test_a_flag_decides(self):
        data = self.saved(arch='mamba_vision_T', args=namespace(model='sf_mamba_t'))
        self.assert_tokens(data, 'DATA', r'SF-Mamba \(--tokens swap\) as the flags say, against '
                           'arch mamba_vision_T', '--tokens', 'swap')
        self.assert_tokens(self.saved(), 'NONE', r'MambaVision \(--tokens none\) as the flags say',
                           '--tokens', 'none')

    def test_a_configuration_is_only_parsed(self):
        mark = self.folder / 'mark'
        attack = f'__import__("os").mkdir({str(mark)!r})'
        for cfg in (f'{attack}\nmodel = dict(backbone=dict(type={attack}))', '-' * 60000 + '1',
                    f'model = dict(backbone=dict(type="mamba_vision", x={attack}))',
                    '(' * 30000, 'a.' * 30000, 'x = """', '\0'):
            self.run_it(self.saved(meta={'cfg': cfg}), *HEADS, '--force')
        self.assertFalse(mark.exists())

    def test_windows_of_a_detector(self):
        arrays = parameters(expected_tensors(CASCADE))
        for windows in ((112, 56), (50, 25)):
            value = checkpoints.mmengine(checkpoints.tensors(arrays), ['a'] * 5)
            value['meta']['cfg'] = mmengine_config('t', windows)
            # The file also contains the numbers of heads.
            self.convert(checkpoints.zip_file(value), '--force')
            self.assertIn('  num_heads: [1, 1, 8, 16]\n  windows: [{}, {}]\n'.format(*windows),
                          self.config)
        self.convert(checkpoints.zip_file(value), '--force', '--windows', '8,4', *HEADS)
        self.assertIn('  num_heads: [1, 1, 4, 8]\n  windows: [8, 4]\n', self.config)

    def test_pictures_of_a_classifier(self):
        config = {'model_type': 'mambavision', 'num_heads': [2, 4, 8, 16],
                  'window_size': [8, 8, 12, 6], 'crop_pct': 0.9, 'crop_mode': 'squash',
                  'mean': [0.5, 0.5, 0.5], 'std': [0.25, 0.5, 1], 'input_size': [3, 192, 192]}
        self.again(self.hugging_face(**config))
        self.assertIn('num_heads: [1, 1, 8, 16]\n  windows: [12, 6]\n', self.config)
        self.assertIn('input {\n  size: 192\n  crop_pct: 0.9\n  resize: STRETCH\n'
                      '  mean: [0.5, 0.5, 0.5]\n  std: [0.25, 0.5, 1]\n}\n', self.config)
        self.again(self.hugging_face(**config, interpolation='bicubic'))
        inner = {key: config.pop(key) for key in ('crop_pct', 'mean', 'std', 'input_size')}
        self.assertNotIn('interpolation', self.printed)
        self.again(self.hugging_face(**config, pretrained_cfg=inner, img_size=None))
        self.assertIn('  crop_pct: 0.9\n', self.config)
        shutil.rmtree(self.out)
        for wrong in ({'crop_mode': 'border'}, {'crop_pct': 0}, {'mean': [1, 2]},
                      {'mean': [10**400, 1, 1]}, {'std': [0, 1, 1]},
                      {'mean': [1, 2, math.nan]}, {'input_size': [3, 192, 224]},
                      {'image_size': -1}, {'crop_pct': 'x'}, {'interpolation': 'bilinear'}):
            self.assert_refused(self.hugging_face(**{**config, **wrong}), 'config.json: ')

    def test_any_value_in_config_json(self):
        config = {'model_type': 'mambavision', 'num_heads': [2, 4, 8, 16], 'dim': 16,
                  'depths': [1, 1, 3, 2], 'window_size': [8, 8, 12, 6], 'crop_pct': 0.9,
                  'crop_mode': 'center', 'mean': [0.5] * 3, 'std': [0.5] * 3, 'img_size': 96,
                  'architectures': ['x'], 'pretrained_cfg': {'mean': None}, 'id2label': {}}
        statuses = []
        for key in config:
            for value in (None, True, -1, 10**400, 0.5, 'x', [], [[1]], ['x'] * 4, {}, {'a': [{}]}):
                folder = self.hugging_face(**{**config, key: value})
                statuses.append(self.run_it(folder, '--dry_run'))
                self.assertFalse(self.out.exists())
        self.assertEqual(set(statuses), {0, 2})

    def test_a_configuration_of_ours_beside_config_json(self):
        """This configuration may say how the model is served. It must not describe the network,
        because config.json does that."""
        folder = self.hugging_face(model_type='mambavision', num_heads=[2, 4, 8, 16],
                                   window_size=[8, 8, 12, 6])
        own = folder / 'config.textproto'
        settings = 'precision: AUTO # As measured.\nbatching { max_batch_size: 8 }\n'
        (folder / 'labels.txt').write_text(''.join(f'label {i}\n' for i in range(10)))
        for text in (settings, 'weights { size_bytes: 3 }\n' + settings):
            own.write_text(text)
            self.again(folder)
            self.assertIn('  windows: [12, 6]\n', self.config)
            self.assertIn('}\n' + settings + 'weights {\n  size_bytes', self.config)
            self.assertEqual(self.config.count('weights'), 1)
            self.assertEqual(self.labels[9], 'label 9')
        complete = self.config
        shutil.rmtree(self.out)
        for text in ('backbone { variant: "custom" }', 'input { size: 96 }',
                     'backbone { windows: [3, 3] } weights { sha256: "a" }', 'backbone: 3'):
            own.write_text(text)
            self.assert_refused(folder, 'config.textproto beside config.json: (backbone|input): '
                                'expected only batching, default_for_task, precision, weights')
        own.write_text(complete)  # A complete config.textproto needs no config.json.
        self.again(folder)
        self.assertIn('by config.textproto variant custom', self.printed)

    def test_a_model_directory_of_ours(self):
        self.convert(self.saved(arch='mamba_vision_T'), *HEADS, '--input_size', '96')
        first = self.folder / 'first'
        self.out.rename(first)
        (first / 'config.textproto').write_text(
            (first / 'config.textproto').read_text() + '\nprecision: AUTO # As measured.\n'
            'batching { max_batch_size: 8 }\n')
        (first / 'labels.txt').write_text(''.join(f'label {i}\n' for i in range(10)))
        for given in (first, first / 'model.safetensors'):
            self.convert(given, '--dtype', 'bf16', '--force')
            self.assert_converted(self.arrays, 'BF16')
            self.assertIn('MambaVision (--tokens none) by config.textproto variant custom',
                          self.printed)
            for part in ('  tokens: NONE\n', 'precision: AUTO # As', 'max_batch_size: 8 }\n'):
                self.assertIn(part, self.config)
            self.assertEqual(self.config.count('weights {'), 1)
            self.assertEqual(self.labels[9], 'label 9')
        shutil.rmtree(self.out)
        self.assert_refused(first, 'config.textproto .* without --tokens, --windows', '--tokens',
                            'none', '--windows', '3,3')
        for text, message in (('backbone { variant: "vim_s" }', 'variant vim_s: expected one'),
                              ('precision: AUTO', 'variant None: expected one'),
                              ('backbone: 3', 'backbone: expected a message'),
                              ('backbone { variant: "custom" } input { size: 0 }', 'input size'),
                              ('backbone { variant: "custom" } input { mean: ["x"] }', 'numbers'),
                              ('backbone {', 'not expected'), ('a: [1', 'without an end'),
                              ('$', 'character 0'), ('a{' * 99, 'too many')):
            (first / 'config.textproto').write_text(text)
            self.assert_refused(first, f'config.textproto: .*{message}')
