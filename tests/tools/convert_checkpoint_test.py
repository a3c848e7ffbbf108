import contextlib
import io
import shutil
from unittest import mock

import numpy as np

import checkpoints
import convert_checkpoint
from checkpoint.model_directory import config_text
from checkpoint.network import Detector, Network, expected_tensors
from checkpoint.tensor import convert
from checkpoint.variants import find_row
from conversion import SMALL, ConvertTest
from parameters import parameters

SEGMENTER = Network('SEGMENTATION', SMALL, 4, None, 16)
CASCADE = Network('DETECTION', SMALL, 5, Detector(3, 4, 1, 4, 16, 32))
HEADS = ('--num_heads', '4,8', '--tokens', 'swap')


class FormatTest(ConvertTest):
    def test_every_format_gives_the_same_weights(self):
        state = {'state_dict': checkpoints.ordered(self.state())}
        for data in (checkpoints.zip_file(state), checkpoints.legacy_file(state),
                     checkpoints.safetensors_file(self.arrays)):
            self.convert(data, *HEADS, '--force')
            self.assert_converted(self.arrays)

    def test_prefixes_of_wrappers_are_stripped(self):
        for prefix in ('module.', 'model.', 'module.model.', 'backbone.', 'encoder.'):
            state = checkpoints.tensors({prefix + k: v for k, v in self.arrays.items()})
            self.convert(checkpoints.zip_file({'model': state}), *HEADS, '--force')
            self.assert_converted(self.arrays)

    def test_only_the_encoder_of_a_larger_model_is_kept(self):
        state = checkpoints.tensors({'encoder.' + k: v for k, v in self.arrays.items()})
        state['projector.weight'] = checkpoints.tensor('p', np.zeros(3, np.float32))
        self.convert(checkpoints.zip_file(state), *HEADS)
        self.assert_converted(self.arrays)
        self.assertIn('skipped  projector.weight  not under encoder.', self.printed)

    def test_the_state_dict_comes_before_the_model(self):
        other = {name: np.zeros_like(array) for name, array in self.arrays.items()}
        self.convert(checkpoints.zip_file({'model': checkpoints.tensors(
            {'other.' + name: array for name, array in other.items()}),
                                           'state_dict': self.state()}), *HEADS)
        self.assert_converted(self.arrays)
        self.assertIn('skipped  model  not the weights', self.printed)
        self.assertNotIn('skipped  state_dict', self.printed)

    def test_types(self):
        data = checkpoints.zip_file(self.state())
        for flag, dtype in (('fp32', 'F32'), ('fp16', 'F16'), ('bf16', 'BF16')):
            self.convert(data, *HEADS, '--dtype', flag, '--force')
            self.assert_converted(self.arrays, dtype)

    def test_stored_types_stay_but_for_doubles(self):
        half = {k: checkpoints.tensor(k, convert(v, 'F32', 'BF16'), 'BF16')
                for k, v in self.arrays.items()}
        self.convert(checkpoints.zip_file(half), *HEADS)
        self.assert_converted(self.arrays, 'BF16')
        double = checkpoints.tensors({k: v.astype(np.float64) for k, v in self.arrays.items()})
        self.convert(checkpoints.zip_file(double), *HEADS, '--force')
        self.assert_converted(self.arrays)

    def test_what_half_precision_cannot_hold_stays_fp32(self):
        self.arrays['norm.running_var'][3] = 1e6
        self.convert(checkpoints.zip_file(self.state()), *HEADS, '--dtype', 'fp16')
        self.assertEqual(self.weights['norm.running_var'].dtype, 'F32')
        self.assertEqual(self.weights['norm.weight'].dtype, 'F16')
        self.assertIn('note: 1 tensors stay fp32', self.printed)

    def test_a_projection_stored_as_a_convolution(self):
        name = 'levels.2.blocks.0.mixer.dt_proj.weight'
        state = self.state(**{name: checkpoints.tensor('dt', self.arrays[name][:, :, None])})
        self.convert(checkpoints.zip_file(state), *HEADS)
        self.assert_converted(self.arrays)


class ConfigTest(ConvertTest):
    def test_a_custom_classifier(self):
        self.convert(checkpoints.zip_file(self.state()), *HEADS, '--input_size', '96')
        self.assertEqual(self.config.split('weights')[0], '''\
# proto-file: sfmamba/v1/config.proto
# proto-message: sfmamba.v1.ModelConfig
task: CLASSIFICATION
backbone {
  variant: "custom"
  dim: 16
  in_dim: 8
  depths: [1, 1, 3, 2]
  layer_scale: true
  tokens: DATA
  num_heads: [1, 1, 4, 8]
  windows: [6, 3]
}
num_classes: 10
input {
  size: 96
}
''')
        self.assertEqual(self.labels, [f'class_{i}' for i in range(10)])
        self.assertIn('made up', self.printed)

    def test_windows_cover_a_picture_of_any_side(self):
        self.convert(checkpoints.zip_file(self.state()), *HEADS, '--input_size', '100')
        self.assertIn('  windows: [7, 4]\n', self.config)

    def test_what_is_the_servers_default_is_not_written(self):
        options = convert_checkpoint.Options('sf_mamba_t', 'swap')
        row = find_row('sf_mamba_t')[0].backbone

        def text(channels, fc_width):
            detector = Detector(3, 4, 1, 4, channels, fc_width)
            return config_text(Network('DETECTION', row, 80, detector), options, 1, 'a')
        self.assertIn('detector {\n  architecture: CASCADE_MASK_RCNN\n}\n', text(256, 1024))
        self.assertIn('  channels: 255\n}\n', text(255, 1024))
        self.assertIn('  fc_width: 1023\n}\n', text(256, 1023))
        segmenter = config_text(Network('SEGMENTATION', row, 150, None, 512), options, 1, 'a')
        self.assertNotIn('channels', segmenter)

    def test_flags_that_shapes_do_not_tell(self):
        self.convert(checkpoints.zip_file(self.state()), '--num_heads', '4,8', '--tokens', 'none',
                     '--windows', '8,4', '--attention_windows', '4,0')
        for line in ('tokens: NONE', 'windows: [8, 4]', 'attention_windows: [4, 0]'):
            self.assertIn(f'  {line}\n', self.config)

    def test_custom_shapes_need_the_attention_heads(self):
        self.assert_refused(checkpoints.zip_file(self.state()),
                            r'dim 16, in_dim 8, depths \[1, 1, 3, 2\], .*--num_heads',
                            '--tokens', 'swap')

    def test_a_variant_by_flag_that_the_tensors_are_not(self):
        self.assertEqual(self.run_it(checkpoints.zip_file(self.state()), '--variant',
                                     'mamba_vision_t'), 1)
        self.assertIn('not a mamba_vision_t', self.error)
        self.assertIn('note: the flags: variant t; but the tensors have dim 16, depths '
                      '[1, 1, 3, 2], as no variant of the table', self.printed)

    def test_a_variant_of_the_other_family(self):
        for variant, tokens in (('sf_mamba_t', 'none'), ('mamba_vision_t', 'swap')):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as error:
                convert_checkpoint.main(['x', '--out', 'y', '--variant', variant, '--tokens',
                                         tokens])
            self.assertEqual(error.exception.code, 2)


class DenseTest(ConvertTest):
    def test_a_cascade_from_mmengine(self):
        arrays = parameters(expected_tensors(CASCADE))
        state = checkpoints.tensors(arrays)
        state['backbone.patch_embed.conv_down.1.num_batches_tracked'] = checkpoints.tensor(
            'n', np.int64(90))
        names = ['cat', 'dog', 'traffic light', 'tree', 'ünïcode']
        self.convert(checkpoints.zip_file(checkpoints.mmengine(state, names)), *HEADS)
        self.assert_converted(arrays)
        self.assertIn('task: DETECTION\n', self.config)
        self.assertIn('detector {\n  architecture: CASCADE_MASK_RCNN\n  channels: 16\n'
                      '  fc_width: 32\n}\n', self.config)
        self.assertEqual(self.labels, names)
        for line in ('skipped  optimizer  not the weights', 'skipped  message_hub  not the weights',
                     'num_batches_tracked  a counter', 'note: passed over: mmengine.logging.'
                     'history_buffer.HistoryBuffer (1)'):
            self.assertIn(line, self.printed)

    def test_detectors_of_one_stage(self):
        for masks, architecture in ((4, 'MASK_RCNN'), (0, 'FASTER_RCNN')):
            network = Network('DETECTION', SMALL, 80, Detector(1, 0, 2, masks, 16, 32))
            arrays = parameters(expected_tensors(network))
            self.convert(checkpoints.zip_file(checkpoints.tensors(arrays)), *HEADS, '--force')
            self.assert_converted(arrays)
            self.assertIn(f'architecture: {architecture}\n', self.config)
            self.assertEqual((self.labels[0], self.labels[79]), ('person', 'toothbrush'))

    def test_a_cascade_without_masks_is_no_architecture_of_the_list(self):
        network = Network('DETECTION', SMALL, 5, Detector(3, 4, 1, 0, 16, 32))
        arrays = parameters(expected_tensors(network))
        self.convert(checkpoints.zip_file(checkpoints.tensors(arrays)), *HEADS)
        self.assert_converted(arrays)
        self.assertNotIn('architecture', self.config)

    def test_a_segmenter_without_its_auxiliary_head(self):
        arrays = parameters(expected_tensors(SEGMENTER))
        state = checkpoints.tensors(arrays)
        state['auxiliary_head.conv_seg.bias'] = checkpoints.tensor('x', np.zeros(4, np.float32))
        self.convert(checkpoints.zip_file({'state_dict': state}), *HEADS)
        self.assert_converted(arrays)
        self.assertIn('segmenter {\n  channels: 16\n}\n', self.config)
        self.assertIn('skipped  auxiliary_head.conv_seg.bias  a head that', self.printed)

    def test_the_classes_of_ade20k(self):
        network = Network('SEGMENTATION', SMALL, 150, None, 16)
        arrays = parameters(expected_tensors(network))
        self.convert(checkpoints.zip_file(checkpoints.tensors(arrays)), *HEADS)
        self.assertEqual((len(self.labels), self.labels[0], self.labels[149]),
                         (150, 'wall', 'flag'))


class LabelsTest(ConvertTest):
    def labels_file(self, text):
        path = self.folder / 'names.txt'
        path.write_bytes(text)
        return '--labels', str(path)

    def test_labels_of_a_file(self):
        names = [f'näme {i}' for i in range(10)]
        self.convert(checkpoints.zip_file(self.state()), *HEADS,
                     *self.labels_file('\n'.join(names).encode()))
        self.assertEqual(self.labels, names)

    def test_labels_that_do_not_fit(self):
        data = checkpoints.zip_file(self.state())
        for text, message in ((b'a\nb\n', '2 labels, expected .* 10 classes'),
                              (b'a\n\n' * 5, 'line 2 is blank, expected a label'),
                              (b'\xff\n' * 10, 'not UTF-8')):
            self.assert_refused(data, message, *HEADS, *self.labels_file(text))

    def test_stored_names_that_do_not_fit_are_not_used(self):
        for names in (['a'], ['a'] * 9 + [''], ['a'] * 9 + ['b\nc'], ['a'] * 9 + [3]):
            data = checkpoints.zip_file({'state_dict': self.state(),
                                         'meta': {'dataset_meta': {'classes': names}}})
            self.convert(data, *HEADS, '--force')
            self.assertEqual(self.labels[9], 'class_9')


class ReportTest(ConvertTest):
    def assert_not_loading(self, state, *lines):
        self.assertEqual(self.run_it(checkpoints.zip_file(state), *HEADS), 1)
        for line in lines:
            self.assertIn(line + '\n', self.printed)
        self.assertFalse(self.out.exists())

    def test_every_key_has_a_line(self):
        state = {'module.' + key: value for key, value in self.state().items()}
        self.convert(checkpoints.zip_file(state), *HEADS)
        lines = self.printed.splitlines()
        self.assertEqual(sum(line.startswith('used ') for line in lines), len(self.arrays) + 1)
        self.assertIn('used     module.head.bias  F32 [10], as head.bias', lines)

    def test_quiet_keeps_the_summary_and_the_problems(self):
        self.convert(checkpoints.zip_file(self.state()), *HEADS, '--quiet')
        self.assertEqual(len(self.printed.splitlines()), 3)
        self.assertIn(f'used {len(self.arrays)}, skipped 0, missing 0', self.printed)
        state = self.state()
        del state['norm.bias']
        self.run_it(checkpoints.zip_file(state), *HEADS, '--quiet', '--force')
        self.assertIn('missing  norm.bias  expected [128]\n', self.printed)

    def test_what_does_not_load_is_named_and_not_written(self):
        state = self.state(**{'extra\x1b.weight': checkpoints.tensor('x', np.zeros(3, np.float32)),
                              'norm.bias': checkpoints.tensor('y', np.zeros(64, np.float32)),
                              'norm.weight': checkpoints.tensor('z', np.zeros(128, np.int64))})
        del state['levels.3.blocks.1.mixer.qkv.bias']
        self.assert_not_loading(
            state, 'missing  levels.3.blocks.1.mixer.qkv.bias  expected [384]',
            r'surplus  extra\x1b.weight  [3]: the model has none',
            'unfit    norm.bias  [64], expected [128]',
            'unfit    norm.weight  I64, expected floating point')

    def test_a_state_dict_that_is_none(self):
        for value, message in (([1], 'holds a list'), ({}, 'it has nothing'),
                               ({'state_dict': {'a': 3}, 'epoch': 1}, 'it has state_dict, epoch'),
                               ({'a.num_batches_tracked': checkpoints.tensor('0', np.int64(1))},
                                'holds no weights'),
                               ({'a': checkpoints.tensor('0', np.zeros(2))}, 'cannot be told')):
            self.assert_refused(checkpoints.zip_file(value), message)


class FileTest(ConvertTest):
    def test_files_cut_at_every_tenth(self):
        for data in (checkpoints.zip_file(self.state()), checkpoints.legacy_file(self.state()),
                     checkpoints.safetensors_file(self.arrays)):
            for tenth in range(10):
                self.assert_refused(data[:len(data) * tenth // 10], '.', *HEADS)

    def test_names_that_are_refused(self):
        evil = checkpoints.Call('os.system', ('true',))
        for form in (checkpoints.zip_file, checkpoints.legacy_file):
            self.assert_refused(form({'state_dict': self.state(**{'norm.bias': evil})}),
                                r'asks for os\.system, which is refused', *HEADS)
            whole = checkpoints.Call('mambavision.MambaVision', (), {'a': 1}, call=b'\x81')
            for value in (whole, {'model': whole, 'epoch': 3}):
                self.assert_refused(form(value), r'a whole mambavision\.MambaVision with its code')
            self.convert(form({'state_dict': self.state(), 'x': evil}), *HEADS, '--force')
            self.assert_converted(self.arrays)
            self.assertIn('note: passed over: os.system (1)', self.printed)
            shutil.rmtree(self.out)
        self.assert_refused(b"cos\nsystem\n(S'true'\ntR.", r'asks for os\.system')

    def test_files_that_are_none(self):
        for data in (b'', b'hello', b'{"a": 1}', bytes(1000), b'PK\x03\x04'):
            self.assert_refused(data, '.')

    def test_a_file_that_is_not_there(self):
        self.file.unlink(missing_ok=True)
        error = io.StringIO()
        with contextlib.redirect_stderr(error):
            self.assertEqual(convert_checkpoint.main([str(self.file), '--out', str(self.out)]), 2)
        self.assertIn('No such file', error.getvalue())

    def test_damage_is_found_before_anything_counts_as_written(self):
        data = bytearray(checkpoints.zip_file(self.state()))
        data[data.index(self.arrays['norm.weight'].tobytes())] ^= 1
        self.assertEqual(self.run_it(bytes(data), *HEADS), 2)
        self.assertIn('its checksum differs', self.error)
        self.assertFalse(self.out.exists())


class OverwriteTest(ConvertTest):
    def test_a_model_is_replaced_only_by_force(self):
        data = checkpoints.zip_file(self.state())
        self.convert(data, *HEADS)
        (self.out / 'config.textproto').unlink()
        (self.out / 'labels.txt').write_text('mine\n')
        self.assertEqual(self.run_it(data, *HEADS), 2)
        self.assertRegex(self.error, 'already has model.safetensors, labels.txt; --force')
        self.assertEqual((self.out / 'labels.txt').read_text(), 'mine\n')
        self.convert(data, *HEADS, '--force')

    def test_other_files_of_the_folder_stay(self):
        self.out.mkdir(parents=True)
        (self.out / 'README.md').write_text('a model card')
        self.assertEqual(self.run_it(checkpoints.zip_file(self.state()), *HEADS), 0)
        self.assertEqual((self.out / 'README.md').read_text(), 'a model card')

    def test_the_configuration_comes_last(self):
        written = []
        replace = convert_checkpoint.write_model.__globals__['os'].replace

        def watched(part, path):
            self.assertFalse((self.out / 'config.textproto').exists())
            written.append(path.name)
            replace(part, path)
        for flags in ((), ('--force',)):  # With --force, a model already exists.
            with mock.patch('os.replace', watched):
                self.convert(checkpoints.zip_file(self.state()), *HEADS, *flags)
            self.assertEqual(written, ['model.safetensors', 'labels.txt', 'config.textproto'])
            written.clear()

    def test_a_full_disk_leaves_what_was_there(self):
        data = checkpoints.zip_file(self.state())
        self.convert(data, *HEADS)
        before = {path.name: path.read_bytes() for path in self.out.iterdir()}
        full = OSError(28, 'No space left on device')
        with mock.patch('os.fsync', side_effect=full):
            self.assertEqual(self.run_it(data, *HEADS, '--force'), 2)
        self.assertIn('No space left on device', self.error)
        self.assertEqual({path.name: path.read_bytes() for path in self.out.iterdir()}, before)
