"""The kinds of checkpoints that people bring; each class is a row of their table, C1 to C7."""

import json
import math
import shutil

import numpy as np

import checkpoints
from checkpoint.network import Detector, Network, expected_tensors
from checkpoint.tensor import convert
from conversion import SMALL, ConvertTest
from official_files_test import mmengine_config
from parameters import parameters

HEADS = ('--num_heads', '4,8')
SWAP = (*HEADS, '--tokens', 'swap')
BOTH = '--tokens swap for SF-Mamba or --tokens none for MambaVision'
CASCADE = Network('DETECTION', SMALL, 5, Detector(3, 4, 1, 4, 16, 32))


def namespace(**attributes):
    return checkpoints.Call('argparse.Namespace', (), attributes, call=b'\x81')


class StrangerTest(ConvertTest):
    def saved(self, **beside):
        return checkpoints.zip_file({'state_dict': self.state(), **beside})

    def named(self, prefix='', arrays=None):
        """The tensors under a prefix; each call's storages have other numbers."""
        self.numbers = getattr(self, 'numbers', 0) + 1000
        return {prefix + name: checkpoints.tensor(str(self.numbers + i), array) for i, (name, array)
                in enumerate((arrays or self.arrays).items())}

    def zeros(self):
        return {name: np.zeros_like(array) for name, array in self.arrays.items()}

    def hugging_face(self, name='hub', **config):
        """A folder with config.json and model.safetensors."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / 'config.json').write_text(json.dumps(config))
        (folder / 'model.safetensors').write_bytes(checkpoints.safetensors_file(
            {f'model.{name}': array for name, array in self.arrays.items()}))
        return folder

    def again(self, data, *flags):
        self.convert(data, *flags, '--force')
        self.assert_converted(self.arrays)


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
            'CLASSIFICATION', SMALL.__class__(16, 8, (1, 1, 3, 2), True, learnable=True), 10)))
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
            self.convert(checkpoints.zip_file(value), '--force')  # The heads stand there too.
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
        inner = {key: config.pop(key) for key in ('crop_pct', 'mean', 'std', 'input_size')}
        self.again(self.hugging_face(**config, pretrained_cfg=inner, img_size=None))
        self.assertIn('  crop_pct: 0.9\n', self.config)
        shutil.rmtree(self.out)
        for wrong in ({'crop_mode': 'border'}, {'crop_pct': 0}, {'mean': [1, 2]},
                      {'mean': [10**400, 1, 1]}, {'std': [0, 1, 1]},
                      {'mean': [1, 2, math.nan]}, {'input_size': [3, 192, 224]},
                      {'image_size': -1}, {'crop_pct': 'x'}):
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
                              ('backbone {', 'not expected'), ('a: [1', 'without an end'),
                              ('$', 'character 0'), ('a{' * 99, 'too many')):
            (first / 'config.textproto').write_text(text)
            self.assert_refused(first, f'config.textproto: .*{message}')


class C2UnknownNamesTest(StrangerTest):
    def test_mmengine_with_multi_step_lr(self):
        value = checkpoints.mmengine(self.state(), ['a'])
        value['param_schedulers'] = [
            {'milestones': checkpoints.Call('collections.Counter', ({27: 1, 33: 1},))}]
        self.again(checkpoints.zip_file(value), *SWAP)
        self.assertIn('note: passed over: collections.Counter (1)', self.printed)

    def test_whatever_stands_beside_the_weights(self):
        call = checkpoints.Call
        for name in ('collections.Counter', 'datetime.datetime', 'my.project.Config', 'os.system',
                     'torch._utils._rebuild_qtensor', 'pathlib.PosixPath',
                     'omegaconf.dictconfig.DictConfig'):
            beside = {'x': [call(name, ('a', 1), {'b': 2}, {'c': 3}), (call(name, call=b'\x81'),)]}
            self.again(self.saved(**beside), *SWAP)
            self.assertIn(f'note: passed over: {name} (2)', self.printed)

    def test_among_the_weights_it_is_refused(self):
        for name in ('collections.Counter', 'os.system', 'torch._utils._rebuild_qtensor'):
            for key in ('norm.bias', 'extra'):
                state = {**self.state(), key: checkpoints.Call(name, (3,))}
                self.assert_refused(checkpoints.zip_file({'state_dict': state}),
                                    f'asks for {name}, which is refused', *SWAP)


class C3WrappersTest(StrangerTest):
    def test_prefixes(self):
        for prefix in ('_orig_mod.', 'module._orig_mod.', '_orig_mod.module.', 'teacher.',
                       'student.', 'net.', 'model.model.', '_fsdp_wrapped_module.', 'a.b.c.',
                       '_forward_module.model.', 'student._orig_mod.backbone.'):
            self.again(checkpoints.zip_file({'state_dict': self.named(prefix)}), *SWAP)

    def test_wrappers_in_the_middle(self):
        for part in ('_orig_mod.', '_fsdp_wrapped_module.', '_checkpoint_wrapped_module.'):
            state = self.named(arrays={name.replace('.blocks.', f'.{part}blocks.'): array
                                       for name, array in self.arrays.items()})
            self.again(checkpoints.zip_file(state), *SWAP)
        twice = {**self.named(), **self.named('_orig_mod.')}
        shutil.rmtree(self.out)
        self.assert_refused(checkpoints.zip_file(twice), 'are both ', *SWAP)

    def test_holders(self):
        for holder in ('state_dict', 'model', 'model_state_dict', 'net', 'params', 'weights',
                       'module', 'generator'):
            self.again(checkpoints.zip_file({'epoch': 3, holder: self.named('module.')}), *SWAP)
            self.assertIn(f'; weights: {holder}; prefix module.\n', self.printed)
        self.again(checkpoints.zip_file({'a': {'b': {'state_dict': self.named()}}}), *SWAP)
        self.assertIn('; weights: a/b/state_dict\n', self.printed)

    def test_a_detector_in_wrappers(self):
        arrays = parameters(expected_tensors(CASCADE))
        for prefix in ('module.', 'model.', '_orig_mod.'):
            self.convert(checkpoints.zip_file({'state_dict': self.named(prefix, arrays)}), *SWAP,
                         '--force')
            self.assert_converted(arrays)

    def test_two_networks_are_chosen_by_prefix(self):
        state = {**self.named('teacher.'), **self.named('student.', self.zeros())}
        count = len(self.arrays)
        data = checkpoints.zip_file({'state_dict': state})
        self.assert_refused(data, rf'2 networks, choose by --prefix: student\. \({count}\), '
                            rf'teacher\. \({count}\)', *SWAP)
        self.again(data, *SWAP, '--prefix', 'teacher')
        self.assertIn('skipped  student.norm.bias  not under teacher., which others are',
                      self.printed)
        self.again(data, *SWAP, '--prefix', 'teacher.')
        shutil.rmtree(self.out)
        self.assert_refused(data, r'begins with x\.; they begin with: teacher\. .*, student\. ',
                            *SWAP, '--prefix', 'x')

    def test_two_networks_are_chosen_by_key(self):
        data = checkpoints.zip_file({'teacher': self.named(),
                                     'student': {'model': self.named('', self.zeros())}})
        count = len(self.arrays)
        self.again(data, *SWAP, '--weights', 'teacher')
        self.assertIn('beside them student/model, which --weights chooses', self.printed)
        shutil.rmtree(self.out)
        self.assert_refused(data, rf'tensors are under: teacher \({count}\), student/model '
                            rf'\({count}\)', *SWAP, '--weights', 'x')
        data = checkpoints.zip_file({'teacher': self.named(), 'student': self.named()})
        self.assert_refused(data, rf'choose by --weights: teacher \({count}\), student', *SWAP)

    def test_copies_of_mmcv(self):
        state = self.named()
        state.update(('ema_' + name.replace('.', '_'), view) for name, view in
                     self.named('', self.zeros()).items())
        self.again(checkpoints.zip_file({'state_dict': state}), *SWAP)
        self.assertIn('skipped  ema_norm_bias  mmcv\'s second copy of a weight', self.printed)

    def test_what_is_found_is_listed(self):
        state = {**self.named('a.'), 'b.x': checkpoints.tensor('b', np.zeros(2))}
        del state['a.head.weight']
        count = len(self.arrays) - 1
        self.assert_refused(checkpoints.zip_file({'net': state}), r'head\.weight: missing .*; '
                            rf'tensors are under net \({count + 1}\); their names begin with '
                            rf'a\. \({count}\), b\. \(1\)', *SWAP)


class C4AveragedTest(StrangerTest):
    def test_averaged_weights_are_taken_as_timm_does(self):
        for key in ('state_dict_ema', 'model_ema'):
            for beside in ({}, {'state_dict': self.named('', self.zeros())}):
                self.again(checkpoints.zip_file({**beside, key: self.named('module.')}), *SWAP)
                self.assertIn(f'weights: {key}, the averaged ones, which timm takes first',
                              self.printed)
            self.assertIn('beside them state_dict, which --weights chooses', self.printed)

    def test_a_flag_chooses(self):
        data = checkpoints.zip_file({'state_dict_ema': self.named('', self.zeros()),
                                     'state_dict': self.named()})
        self.again(data, *SWAP, '--weights', 'state_dict')
        self.assertIn('weights: state_dict; beside them state_dict_ema', self.printed)

    def test_mmengine_keeps_the_averaged_ones_in_state_dict(self):
        self.again(checkpoints.zip_file({'ema_state_dict': self.named('module.', self.zeros()),
                                         'state_dict': self.named()}), *SWAP)


class C5FoldersTest(StrangerTest):
    def sharded(self, form):
        folder = self.folder / form
        folder.mkdir(exist_ok=True)
        (folder / 'config.json').write_text('{"model_type": "mambavision"}')
        items = list(self.arrays.items())
        places = {}
        for i, part in enumerate((items[::2], items[1::2])):
            name = f'shard-{i}.{form}'
            places.update({key: name for key, _ in part})
            data = checkpoints.safetensors_file(dict(part)) if form == 'safetensors' else \
                checkpoints.zip_file(checkpoints.tensors(dict(part)))
            (folder / name).write_bytes(data)
        kind = 'model' if form == 'safetensors' else 'pytorch_model'
        index = folder / f'{kind}.{form}.index.json'
        index.write_text(json.dumps({'metadata': {}, 'weight_map': places}))
        return folder, index, places

    def test_folders_and_files_in_them(self):
        folder = self.hugging_face(model_type='mambavision')
        for path in (folder, folder / 'model.safetensors'):
            self.again(path, *HEADS)
        (folder / 'model.safetensors').rename(folder / 'other.safetensors')
        self.again(folder, *HEADS)

    def test_shards(self):
        for form in ('safetensors', 'bin'):
            folder, index, _ = self.sharded(form)
            for path in (folder, index):
                self.again(path, *HEADS)

    def test_shards_that_are_not_right(self):
        folder, index, places = self.sharded('safetensors')
        first = next(iter(places))
        shutil.copy(folder / 'shard-0.safetensors', self.folder / 'outside.safetensors')
        for change, message in (({first: '../outside.safetensors'}, 'not an index of shards'),
                                ({first: 3}, 'not an index'), ({first: '..'}, '.'),
                                ({first: 'gone.safetensors'}, 'No such file'),
                                ({first: 'shard-1.safetensors'}, f'has no tensor {first}, which'),
                                ({first: index.name}, '.')):
            index.write_text(json.dumps({'weight_map': {**places, **change}}))
            self.assert_refused(folder, message, *HEADS)
        index.write_text('{"weight_map": {')
        self.assert_refused(folder, 'index.json: not the JSON', *HEADS)

    def test_folders_without_a_checkpoint_or_with_several(self):
        folder = self.folder / 'empty'
        folder.mkdir()
        self.assert_refused(folder, 'a folder without .*model.safetensors.* checkpoints: none')
        for name in ('a.pth', 'b.pth.tar'):
            (folder / name).write_bytes(b'x')
        self.assert_refused(folder, r'checkpoints: a\.pth, b\.pth\.tar')


class C6LabelsTest(StrangerTest):
    def test_hugging_faces_labels(self):
        names = [f'tench, Tinca {i}' for i in range(10)]
        config = {'model_type': 'mambavision', 'id2label': {str(i): n for i, n in enumerate(names)}}
        self.again(self.hugging_face(**config), *HEADS)
        self.assertEqual(self.labels, names)
        for wrong in ({'0': 'a'}, {'1': 'a'}, {**config['id2label'], '3': ''}, ['a'], 7):
            self.again(self.hugging_face(**{**config, 'id2label': wrong}), *HEADS)
            self.assertEqual(self.labels[3], 'class_3')

    def test_mmengines_and_mmcvs_labels(self):
        names = [f'name {i}' for i in range(10)]
        for meta in ({'dataset_meta': {'classes': tuple(names)}}, {'CLASSES': tuple(names)},
                     {'dataset_meta': {'CLASSES': names, 'PALETTE': [[1, 2, 3]]}},
                     {'classes': names, 'dataset_meta': None}):
            self.again(self.saved(meta=meta), *SWAP)
            self.assertEqual(self.labels, names)


class C7NoCheckpointTest(StrangerTest):
    def test_what_is_none_is_named(self):
        pointer = (b'version https://git-lfs.github.com/spec/v1\noid sha256:' + b'a' * 64 +
                   b'\nsize 127200000\n')
        page = b'<!DOCTYPE html>\n<html lang="en"><head><title>Sign in</title>' + b' ' * 300
        for data, message in ((pointer, r'a Git LFS pointer to weights of 127\.2 MB'),
                              (page, 'a web page, not a checkpoint'),
                              (b'\n <html>' + bytes(300), 'a web page'), (b'', 'the file is empty'),
                              (b'{"model_type": "mambavision"}', 'JSON, but not an index')):
            self.assert_refused(data, message, *SWAP)
            folder = self.hugging_face(model_type='mambavision')
            (folder / 'model.safetensors').write_bytes(data)
            self.assert_refused(folder, f'model.safetensors: {message}', *HEADS)

    def test_weights_that_are_not_finite(self):
        for value in (np.nan, np.inf, -np.inf):
            for dtype in ('F32', 'F16', 'BF16', 'F64'):
                self.arrays['norm.bias'][3] = value
                state = {name: checkpoints.tensor(name, convert(array, 'F32', dtype), dtype)
                         for name, array in self.arrays.items()}
                self.assert_refused(checkpoints.zip_file(state),
                                    'NaN or infinite values in norm.bias$', *SWAP)
        for name in self.arrays:
            self.arrays[name] = np.full_like(self.arrays[name], np.nan)
        self.assert_refused(checkpoints.zip_file(self.state()),
                            rf'in patch_embed.*, .* and {len(self.arrays) - 5} more', *SWAP)
