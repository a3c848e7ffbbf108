"""Tests that exported networks give the right logits in ONNX Runtime. The logits are compared with
those in the engine's tests, with tools/pytorch, and with Vim as this file defines it."""

import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import onnx
    import onnxruntime  # noqa: F401, which onnx_export.check uses.
    import torch
    import torchvision  # noqa: F401, which detectors are made of.
except ImportError as error:
    raise unittest.SkipTest(f'no {error.name}: TORCH_PYTHON names a Python that has it') from error

import numpy as np
import torch.nn.functional as F

import checkpoints
import detector
import deterministic
import export_onnx
import open_networks
import sf_mamba
import upernet
import write_models
from checkpoint import open_names, open_weights
from checkpoint.files import read_files
from checkpoint.network import Backbone, Network, expected_tensors
from checkpoint.state_dict import read_state_dict
from onnx_export import check
from onnx_export.model_folder import Config, Model, read_config, read_model
from parameters import parameters

ROOT = pathlib.Path(__file__).absolute().parents[2]
OPEN_WEIGHTS = ROOT / 'tests/testing/testdata/open_weights'
VMAMBA = dict(dim=8, depths=(1, 1, 2, 1), ratio=2)
SMALL = Backbone(dim=16, in_dim=8, depths=(1, 1, 5, 3), layer_scale=True)
CONFIG = Config(num_heads=(4, 8), windows=(4, 2), picture={'size': 96})
# The variants of the small model, by their names in the engine's tests.
FORMS = {
    'MambaVision': dict(tokens='NONE'), 'SfMamba': {},
    'BeforeAttention': dict(discard='BEFORE_ATTN'), 'AfterAttention': dict(discard='AFTER_ATTN'),
    'Learnable': dict(tokens='LEARNABLE'),
    'LearnableBeforeAttention': dict(tokens='LEARNABLE', discard='BEFORE_ATTN'),
    'SubWindows': dict(attention_windows=(2, 0)),
    'SubWindowsWithoutTokens': dict(tokens='NONE', attention_windows=(2, 0)),
    'WithoutAttention': dict(tokens='NONE'), 'WithoutAttentionWithTokens': {},
    'Series': dict(tokens='NONE', scan='SERIES'),
    'SeriesGap': dict(tokens='NONE', scan='SERIES_GAP'),
    'ParallelCat': dict(tokens='NONE', scan='PARALLEL_CAT'),
    'ParallelAdd': dict(tokens='NONE', scan='PARALLEL_ADD')}
LISTED = re.compile(r'\{"(\w+)",[^"]*?\{([-\d.f,\s]{150,}?)\}\}', re.DOTALL)


def listed_logits():
    """Returns the logits of two images by variant."""
    text = ''.join((ROOT / 'tests/model' / name).read_text()
                   for name in ('expected_logits.cc', 'ablations_test.cc'))
    return {name: np.array([float(x.strip(' \nf')) for x in numbers.split(',')]).reshape(2, 10)
            for name, numbers in LISTED.findall(text)}


def images(*shape):
    return deterministic.deterministic_input(*shape).numpy()


def small_model(name, **more):
    backbone = dataclasses.replace(SMALL, attention='WithoutAttention' not in name,
                                   learnable='Learnable' in name)
    shapes = expected_tensors(Network('CLASSIFICATION', backbone, 10))
    if name == 'ParallelAdd':
        own = re.compile(r'(.*\.)(conv1d_x|x_proj|dt_proj|A|D)(\.\w+|_log|)$')
        shapes.update({'{}{}_b{}'.format(*match.groups()): shape for match, shape in
                       ((own.match(key), shape) for key, shape in shapes.items()) if match})
    return Model(dataclasses.replace(CONFIG, **FORMS[name], **more), parameters(shapes), [])


def run(proto, values):
    session = check.open_session(proto.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: values})[0]


def export(*args):
    """Runs export_onnx.py. Returns (exit status, output, errors)."""
    output, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(error):
        status = export_onnx.main([*map(str, args)])
    return status, output.getvalue(), error.getvalue()


def arrays(network):
    return {key: value.numpy() for key, value in network.state_dict().items()
            if not key.endswith('num_batches_tracked')}


def open_model(name):
    """Returns a small network of tests/testing/testdata/open_weights."""
    found = read_state_dict(read_files(OPEN_WEIGHTS / f'{name}.safetensors').value).tensors
    family = open_names.family_of(found.keys())
    activation = '' if 'mambaout' not in name else 'silu' if name.endswith('silu') else 'gelu'
    return Model(Config(family=family, activation=activation, picture={'size': 64}),
                 {key: np.array(tensor.array()) for key, tensor in
                  open_names.own_names(family, found).items()}, [])


class VimReference:
    """Computes Vim in PyTorch, step by step as in its paper. The residual and the hidden state are
    separate."""

    def __init__(self, tensors, tokens):
        self.t = {key: torch.tensor(value) for key, value in tensors.items()}
        self.tokens = tokens

    def norm(self, x, weight):
        return F.rms_norm(x, x.shape[-1:], self.t[weight], 1e-5)

    def path(self, x, name, suffix):
        t, d = self.t, x.shape[2]
        conv = F.conv1d(F.pad(x.transpose(1, 2), (3, 0)), t[f'{name}conv1d{suffix}.weight'],
                        t[f'{name}conv1d{suffix}.bias'], groups=d)
        u = F.silu(conv).transpose(1, 2)
        p = u @ t[f'{name}x_proj{suffix}.weight'].T
        dt, B, C = p.split([p.shape[2] - 32, 16, 16], dim=-1)
        return sf_mamba.selective_scan_loop(
            u, dt @ t[f'{name}dt_proj{suffix}.weight'].T, -torch.exp(t[f'{name}A{suffix}_log']), B,
            C, t[f'{name}D{suffix}'], t[f'{name}dt_proj{suffix}.bias'])

    def mixer(self, x, name):
        x, z = (x @ self.t[f'{name}in_proj.weight'].T).chunk(2, dim=-1)
        y = self.path(x, name, '')
        if f'{name}D_b' in self.t:
            y = (y + self.path(x.flip(1), name, '_b').flip(1)) / 2
        return (y * F.silu(z)) @ self.t[f'{name}out_proj.weight'].T

    def __call__(self, x):
        t = self.t
        x = F.conv2d(x, t['patch_embed.proj.weight'], t['patch_embed.proj.bias'], stride=16)
        x = x.flatten(2).transpose(1, 2)
        middle = x.shape[1] // 2
        x = torch.cat([x[:, :middle], t['cls_token'].expand(len(x), -1, -1), x[:, middle:]], 1)
        hidden, residual = x + t['pos_embed'], 0
        if self.tokens:
            mean = hidden.mean(1, keepdim=True)
            hidden, middle = torch.cat([mean, hidden, mean], 1), middle + 1
        for i in range(sum(key.endswith('in_proj.weight') for key in t)):
            residual = residual + hidden
            hidden = self.mixer(self.norm(residual, f'layers.{i}.norm.weight'),
                                f'layers.{i}.mixer.')
            if self.tokens:
                hidden, residual = (torch.cat([v[:, -1:], v[:, 1:-1], v[:, :1]], 1)
                                    for v in (hidden, residual))
        y = self.norm((residual + hidden)[:, middle], 'norm_f.weight')
        return y @ t['head.weight'].T + t['head.bias']


def vim_tensors(width=24, layers=3, side=3, backward=True):
    d, rank = 2 * width, math.ceil(width / 16)
    shapes = {'patch_embed.proj.weight': (width, 3, 16, 16), 'patch_embed.proj.bias': (width,),
              'cls_token': (1, 1, width), 'pos_embed': (1, side * side + 1, width),
              'norm_f.weight': (width,), 'head.weight': (5, width), 'head.bias': (5,)}
    for i in range(layers):
        name = f'layers.{i}.mixer.'
        shapes.update({f'layers.{i}.norm.weight': (width,), f'{name}in_proj.weight': (2 * d, width),
                       f'{name}out_proj.weight': (width, d)})
        for b in ['', '_b'][:1 + backward]:
            shapes.update({f'{name}conv1d{b}.weight': (d, 1, 4), f'{name}conv1d{b}.bias': (d,),
                           f'{name}x_proj{b}.weight': (rank + 32, d),
                           f'{name}dt_proj{b}.weight': (d, rank), f'{name}dt_proj{b}.bias': (d,),
                           f'{name}A{b}_log': (d, 16), f'{name}D{b}': (d,)})
    return parameters(shapes)


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_near(self, got, expected):
        self.assertLessEqual(check.difference(got, expected), check.TOLERANCE)

    def assert_agrees(self, model):
        """Compares the exported model with tools/pytorch, at two sizes and with batches of 1 and
        3."""
        protos = [export_onnx.network(model), *(head for _, head in export_onnx.roi_heads(model))]
        paths = [self.folder / f'{i}.onnx' for i in range(len(protos))]
        for path, proto in zip(paths, protos):
            export_onnx.save(proto, path)
        lines = list(check.compare(model, paths))
        self.assertEqual(len(lines), 2 + 2 * len(paths))
        for line, near in lines:
            self.assertTrue(near, line)

    def test_small_models_give_the_logits_that_the_engine_gives(self):
        listed, values = listed_logits(), images(2, 3, 96, 80)
        self.assertEqual(listed.keys(), FORMS.keys())
        for name, expected in listed.items():
            with self.subTest(name):
                self.assert_near(run(export_onnx.network(small_model(name)), values), expected)

    def test_small_models_agree_with_pytorch(self):
        for name, form in FORMS.items():
            if not form.keys() & {'attention_windows', 'scan'} and 'Without' not in name:
                with self.subTest(name):
                    self.assert_agrees(small_model(name))

    def test_variants_agree_with_pytorch(self):
        for variant in ('T', 'T2', 'S', 'B'):
            with self.subTest(variant):
                network = deterministic.fill_deterministic(sf_mamba.make(variant, tokens='none'))
                config = read_config(f'backbone {{ variant: "mamba_vision_{variant.lower()}" }}')
                self.assert_agrees(Model(
                    dataclasses.replace(config, picture={'size': 96}), arrays(network), []))

    def test_open_weights_give_the_logits_of_the_authors_code(self):
        for path in OPEN_WEIGHTS.glob('*.expected.safetensors'):
            name = path.name.split('.')[0]
            expected = {key: tensor.array() for key, tensor in read_files(path).value.items()}
            if 'logits' in expected:
                with self.subTest(name):
                    self.assert_near(run(export_onnx.network(open_model(name)), expected['input']),
                                     expected['logits'])

    def test_open_weights_agree_with_pytorch(self):
        for name in ('mambaout_plain', 'mambaout_rw_silu', 'efficientvim_dist_odd', 'vmamba_s1',
                     'vmamba_s2_odd'):
            with self.subTest(name):
                self.assert_agrees(open_model(name))

    def test_detectors_and_segmenters_on_vmamba_agree_with_pytorch(self):
        backbone = dict(VMAMBA, family='vmamba')
        config = detector.Config(classes=3, channels=8, box_stages=1, box_convs=0, box_fcs=2,
                                 fc_width=16, mask_convs=1)
        for task, network in (('DETECTION', detector.Detector(backbone, config)),
                              ('SEGMENTATION', upernet.Segmenter(backbone, 8, 3))):
            with self.subTest(task):
                network = deterministic.fill_deterministic(network)
                self.assert_agrees(Model(
                    Config(task=task, family='vmamba', picture={'short_side': 128}),
                    arrays(network), []))

    def test_a_folder_of_timm_s_is_exported(self):
        row = open_weights.ROWS['mambaout']['test_mambaout']
        (self.folder / 'model.safetensors').write_bytes(checkpoints.safetensors_file(
            arrays(open_networks.NETWORKS['mambaout'](2, **row.fields))))
        (self.folder / 'config.json').write_text(json.dumps(
            {'architecture': 'test_mambaout', 'label_names': ['a', 'b'],
             'pretrained_cfg': {'input_size': [3, 64, 64], 'crop_mode': 'squash'}}))
        out = self.folder / 'out.onnx'
        status, printed, error = export(self.folder, out, '--check')
        self.assertEqual((status, error), (0, ''))
        self.assertEqual(printed.count('allowed 1e-05'), 4)
        found = {entry.key: entry.value for entry in onnx.load(out).metadata_props}
        self.assertEqual((found['labels'], found['resize'], found['size'], found['crop_pct']),
                         ('a\nb', 'STRETCH', '64', '1.0'))

    def test_default_models_agree_with_pytorch(self):
        for name in ('photographs', 'everyday_segmenter', 'everyday_detector'):
            with self.subTest(name):
                self.assert_agrees(read_model(ROOT / 'models' / name / '1'))

    def test_a_cascade_agrees_with_pytorch(self):
        path = self.folder / 'checkpoint.pth'
        path.write_bytes(write_models.detection())
        model = export_onnx.read(path, ['--num_heads=4,8', '--tokens=swap', '--windows=6,3'])
        picture = {**model.config.picture, 'short_side': 128}
        model = dataclasses.replace(model,
                                    config=dataclasses.replace(model.config, picture=picture))
        self.assertEqual([name for name, _ in export_onnx.roi_heads(model)],
                         ['box_0', 'box_1', 'box_2', 'mask_0', 'mask_1', 'mask_2'])
        self.assert_agrees(model)

    def test_vim_agrees_with_its_definition(self):
        for variant, backward, tokens in (('vim_t', True, False), ('vim_s_uni', False, False),
                                          ('vim_s_uni_swap', False, True)):
            tensors = vim_tensors(backward=backward)
            config = read_config(f'backbone {{ variant: "{variant}" }}')
            proto = export_onnx.network(Model(config, tensors, []))
            for batch in (1, 3):
                with self.subTest(variant, batch=batch), torch.inference_mode():
                    values = images(batch, 3, 48, 48)
                    self.assert_near(run(proto, values), VimReference(
                        tensors, tokens)(torch.from_numpy(values)).numpy())

    def test_an_image_gets_its_answer_in_any_batch(self):
        for name in ('SubWindows', 'WithoutAttention', 'SeriesGap', 'ParallelAdd'):
            with self.subTest(name):
                proto, values = export_onnx.network(small_model(name)), images(3, 3, 63, 130)
                self.assert_near(run(proto, values),
                                 np.concatenate([run(proto, image[None]) for image in values]))

    def test_full_windows_are_windows_of_the_map(self):
        for full, fixed in ((dict(), dict(windows=(6, 3))),
                            (dict(attention_windows=(4, 4)),
                             dict(windows=(8, 3), attention_windows=(4, 0)))):
            with self.subTest(full):
                values, model = images(2, 3, 96, 96), small_model('SfMamba')
                answers = [run(export_onnx.network(dataclasses.replace(
                    model, config=dataclasses.replace(model.config, **fields))), values)
                    for fields in (dict(full=True, **full), fixed)]
                self.assert_near(*answers)

    def test_only_standard_operators(self):
        proto = export_onnx.network(small_model('SubWindows'))
        self.assertEqual([(o.domain, o.version) for o in proto.opset_import], [('', 20)])
        kinds = [node.op_type for node in proto.graph.node]
        self.assertEqual(kinds.count('Scan'), 5)
        self.assertEqual({node.domain for node in proto.graph.node}, {''})

    def test_a_checkpoint_becomes_a_file_that_says_what_it_wants(self):
        config = {'model_type': 'mambavision', 'num_heads': [2, 4, 4, 8],
                  'window_size': [8, 8, 4, 2], 'mean': [0.5] * 3, 'input_size': [3, 96, 96],
                  'id2label': {str(i): f'thing {i}' for i in range(10)}}
        (self.folder / 'config.json').write_text(json.dumps(config))
        (self.folder / 'model.safetensors').write_bytes(checkpoints.safetensors_file(
            {f'model.{key}': value for key, value in small_model('SfMamba').tensors.items()}))
        out = self.folder / 'out.onnx'
        status, printed, error = export(self.folder, out, '--height=96', '--width=96', '--check')
        self.assertEqual((status, error), (0, ''))
        self.assertEqual(printed.count('allowed 1e-05'), 2)
        proto = onnx.load(out)
        found = {entry.key: entry.value for entry in proto.metadata_props}
        self.assertEqual(found['labels'].split('\n')[9], 'thing 9')
        self.assertEqual((found['task'], found['resize'], found['size'], found['mean'],
                          found['std'], found['filter']),
                         ('CLASSIFICATION', 'CENTER_CROP', '96', '[0.5, 0.5, 0.5]',
                          '[0.229, 0.224, 0.225]', 'Pillow bicubic'))
        dims = proto.graph.input[0].type.tensor_type.shape.dim
        self.assertEqual([dim.dim_param or dim.dim_value for dim in dims], ['batch', 3, 96, 96])

    def test_errors_name_what_is_wrong(self):
        out = self.folder / 'out.onnx'
        for change, message in (
                (lambda t: t.pop('norm.bias'), 'the weights have no tensor norm.bias'),
                (lambda t: t.update({'extra': t['norm.bias']}), 'the network has no extra'),
                (lambda t: t, 'num_heads: 5 heads do not divide 64 channels')):
            model = small_model('SfMamba')
            change(model.tensors)
            heads = (5, 8) if 'heads' in message else (4, 8)
            with self.assertRaisesRegex(ValueError, message):
                export_onnx.network(dataclasses.replace(
                    model, config=dataclasses.replace(model.config, num_heads=heads)))
        status, _, error = export(ROOT / 'models/everyday/1', out, '--tokens=swap')
        self.assertEqual(status, 2)
        self.assertIn('a model directory, expected no --tokens=swap', error)
        self.assertFalse(out.exists())

    def test_a_missing_package_is_named(self):
        out = self.folder / 'out.onnx'
        for name, arguments in (('onnx', ['--help']),
                                ('onnxruntime', [ROOT / 'models/everyday/1', out, '--check'])):
            with self.subTest(name):
                code = (f'import sys; sys.modules[{name!r}] = None; import export_onnx; '
                        'sys.exit(export_onnx.main())')
                done = subprocess.run([sys.executable, '-c', code, *map(str, arguments)],
                                      capture_output=True, text=True, timeout=300,
                                      env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, f'^export_onnx: {name} is missing: pip install .*\n$')


if __name__ == '__main__':
    unittest.main()
