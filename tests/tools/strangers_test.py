"""Tests the forms of checkpoints that users have. Each class tests one form. evidence_test.py tests
one more."""

import json
import shutil

import numpy as np

import checkpoints
from checkpoint.network import Detector, Network, expected_tensors
from checkpoint.tensor import convert
from conversion import SMALL, StrangerTest
from parameters import parameters

HEADS = ('--num_heads', '4,8')
SWAP = (*HEADS, '--tokens', 'swap')
CASCADE = Network('DETECTION', SMALL, 5, Detector(3, 4, 1, 4, 16, 32))


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
        # An entry that may hold weights is ignored if it contains no network.
        others = {'params': {'scale': checkpoints.tensor('p', np.ones(3))}}
        self.again(checkpoints.zip_file({**others, 'generator': self.named()}), *SWAP)
        self.assertIn('; weights: generator\n', self.printed)
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
        config = {'model_type': 'mambavision',  # The numbers are the classes, in any order.
                  'id2label': {str(i): names[i] for i in reversed(range(10))}}
        self.again(self.hugging_face(**config), *HEADS)
        self.assertEqual(self.labels, names)
        for wrong in ({'0': 'a'}, {'1': 'a'}, {**config['id2label'], '3': ''}, ['a'], 7):
            folder = self.hugging_face(**{**config, 'id2label': wrong})
            self.assertEqual(self.run_it(folder, *HEADS, '--force'), 2)
            self.assertIn('config.json: id2label', self.error)
            (folder / 'labels.txt').write_text('a\n' * 10)  # labels.txt replaces the wrong labels.
            self.again(folder, *HEADS)
            (folder / 'labels.txt').unlink()

    def test_blank_lines_of_labels(self):
        folder = self.hugging_face(model_type='mambavision')
        lines = [f'label {i}' for i in range(10)]
        for end in ('\n', '\r\n'):
            text = '\ufeff' + end.join([*lines, '', ' ', ''])
            (folder / 'labels.txt').write_bytes(text.encode())
            self.again(folder, *HEADS)
            self.assertEqual(self.labels, lines)
        for text, message in (('\n'.join([lines[0], '', *lines[1:]]), 'line 2 is blank, expected a label'),
                              ('a\nb\n', '2 labels, expected one for each of the 10'),
                              ('version https://git-lfs.github.com/spec/v1\n', 'is a Git LFS pointer')):
            (folder / 'labels.txt').write_text(text)
            self.assertEqual(self.run_it(folder, *HEADS, '--force'), 2)
            self.assertIn(f'labels.txt: {message}', self.error)

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
