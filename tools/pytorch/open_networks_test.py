"""Tests that MambaOut, EfficientViM and VMamba agree with their authors' code, and that training
can start from them. See tests/testing/testdata/open_weights/README.md."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import safetensors.torch
import torch

import classifier_files
import deterministic
import pyramid
import train_classifier
from checkpoint.files import read_files
from checkpoint.open_names import EFFICIENTVIM, MAMBAOUT, family_of, own_names
from checkpoint.open_weights import ROWS, fields_of, network_of, read_open_weights
from checkpoint.state_dict import read_state_dict
from classifier_files import CheckpointError
from dataset_test import write_pictures
from open_networks import NETWORKS
from training_test import arguments

FIXTURES = pathlib.Path(__file__).parents[2] / 'tests/testing/testdata/open_weights'
CLASSIFIERS = ('mambaout_plain', 'mambaout_rw_gelu', 'mambaout_rw_silu', 'mambaout_original_names',
               'efficientvim', 'efficientvim_dist_odd', 'efficientvim_upstream', 'vmamba_s1',
               'vmamba_s2_odd', 'vmamba_hf', 'vmamba_old_names')
# The number of parameters and the number of tensors, buffers included, of each public network.
SIZES = {
    'vmamba_t_s1l8': (30_249_064, 276), 'vmamba_t_s2l5': (30_705_832, 222),
    'vmamba_s_s2l15': (50_147_752, 402), 'vmamba_s_s1l20': (49_012_840, 492),
    'vmamba_b_s2l15': (88_557_800, 402), 'vmamba_b_s1l20': (86_614_504, 492),
    'efficientvim_m1': (6_679_458, 307), 'efficientvim_m1_dist': (7_643_462, 316),
    'efficientvim_m2': (13_903_842, 307), 'efficientvim_m2_dist': (15_315_846, 316),
    'efficientvim_m3': (16_604_174, 307), 'efficientvim_m3_dist': (18_176_178, 316),
    'efficientvim_m4': (19_606_505, 406), 'efficientvim_m4_dist': (21_178_509, 415),
    'mambaout_femto': (7_304_536, 172), 'mambaout_kobe': (9_141_208, 220),
    'mambaout_tiny': (26_545_096, 172), 'mambaout_small': (48_488_072, 324),
    'mambaout_base': (84_813_092, 324), 'mambaout_small_rw': (48_495_560, 357),
    'mambaout_base_short_rw': (88_827_688, 330), 'mambaout_base_tall_rw': (86_481_448, 384),
    'mambaout_base_wide_rw': (94_448_104, 357), 'mambaout_base_plus_rw': (101_656_552, 384),
    'test_mambaout': (447_560, 78)}
# The first five logits and the class of the largest logit. The weights are deterministic, and the
# image has 224x224 pixels.
LOGITS = {
    'vmamba_t_s1l8': ([-0.736593, -0.275811, -0.700282, 1.355943, 0.821716], 527),
    'efficientvim_m1_dist': ([-0.154200, 0.026636, 0.139060, -0.284573, -0.245580], 751),
    'mambaout_femto': ([1.379590, 0.479407, 0.037639, -0.603315, 0.969583], 440)}


def all_rows():
    """Returns (family, variant, fields) of each public network."""
    return [(family, name, row.fields) for family, rows in ROWS.items()
            for name, row in rows.items()]


def load(name):
    """Returns the network of a fixture, in double precision."""
    state = read_state_dict(read_files(FIXTURES / f'{name}.safetensors').value)
    family = family_of(state.tensors.keys())
    tensors = own_names(family, state.tensors)
    shapes = {name: t.shape for name, t in tensors.items()}
    fields = fields_of(family, shapes)
    if family == MAMBAOUT:
        fields['activation'] = 'silu' if name.endswith('silu') else 'gelu'
    if name == 'vmamba_backbone':
        network = pyramid.make_backbone(family, **fields)
    else:
        network = NETWORKS[family](network_of(family, shapes).classes, **fields)
    missing, unexpected = network.load_state_dict(
        {name: torch.from_numpy(t.array().copy()) for name, t in tensors.items()}, strict=False)
    assert not unexpected, unexpected
    assert all(name.endswith('num_batches_tracked') for name in missing), missing
    return network.double().eval()


class FixtureTest(unittest.TestCase):
    def assert_near(self, got, expected):
        self.assertEqual(got.shape, expected.shape)
        self.assertLess((got - expected).abs().max().item(), 1e-5 * expected.std().item())

    def test_logits_and_maps_are_those_of_the_authors_code(self):
        for name in CLASSIFIERS:
            expected = safetensors.torch.load_file(FIXTURES / f'{name}.expected.safetensors')
            network, images = load(name), expected['input'].double()
            with self.subTest(name), torch.inference_mode():
                self.assert_near(network(images), expected['logits'])
                maps = network.features(images)
                self.assertNotIn(f'map{len(maps)}', expected)
                for i, x in enumerate(maps):
                    self.assert_near(x, expected[f'map{i}'])

    def test_a_backbone_s_maps_are_those_of_the_authors_code(self):
        expected = safetensors.torch.load_file(FIXTURES / 'vmamba_backbone.expected.safetensors')
        with torch.inference_mode():
            for i, x in enumerate(load('vmamba_backbone')(expected['input'].double())):
                self.assert_near(x, expected[f'map{i}'])

    def test_variants_give_the_listed_logits(self):
        images = deterministic.deterministic_input(1, 3, 224, 224)
        for family, name, fields in all_rows():
            if name in LOGITS:
                network = NETWORKS[family](1000, **fields)
                network = deterministic.fill_deterministic(network).eval()
                with self.subTest(name), torch.inference_mode():
                    logits, (expected, largest) = network(images)[0], LOGITS[name]
                    torch.testing.assert_close(logits[:5], torch.tensor(expected), rtol=0,
                                               atol=1e-4)
                    self.assertEqual(logits.argmax().item(), largest)

    def test_variants_have_the_published_sizes(self):
        self.assertEqual({name for _, name, _ in all_rows()}, set(SIZES))
        for family, name, fields in all_rows():
            with self.subTest(name), torch.device('meta'):
                network = NETWORKS[family](1000, **fields)
                self.assertEqual((sum(p.numel() for p in network.parameters()),
                                  len(network.state_dict())), SIZES[name])


class FolderTest(unittest.TestCase):
    """Writes small networks in the layouts of public weights."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, config, tensors):
        (self.folder / 'start').mkdir()
        (self.folder / 'start/config.json').write_text(json.dumps(config))
        safetensors.torch.save_file(tensors, self.folder / 'start/model.safetensors')
        return self.folder / 'start'

    def timm_folder(self, variant):
        """Returns a folder with a variant of three classes."""
        torch.manual_seed(0)
        family = MAMBAOUT if 'mambaout' in variant else EFFICIENTVIM
        network = NETWORKS[family](3, **ROWS[family][variant].fields)
        config = dict(architecture=variant, num_classes=3, label_names=['a', 'b', 'c'],
                      pretrained_cfg=dict(input_size=[3, 64, 64], mean=[0.5] * 3, std=[0.25] * 3,
                                          crop_pct=0.9, crop_mode='center',
                                          interpolation='bicubic'))
        return self.write(config, network.state_dict())

    def vmamba_folder(self):
        tensors = safetensors.torch.load_file(FIXTURES / 'vmamba_hf.safetensors')
        config = dict(model_type='vmamba', architectures=['VMambaForImageClassification'],
                      id2label={i: f'thing {i}' for i in range(10)}, input_size=[3, 64, 64],
                      mean=[0.5] * 3, std=[0.25] * 3)
        return self.write(config, tensors)

    def train(self, start, folder):
        """Trains for three steps on two classes. Returns the run's arguments and its output."""
        write_pictures(self.folder / 'data')
        args = arguments(self.folder / 'run', 3 * train_classifier.WHOLE_BATCH)
        vars(args).update(data=self.folder / 'data', initial=folder, no_swap=False, bf16=False,
                          export=self.folder / 'mine')
        printed = io.StringIO()
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(printed):
            train_classifier.train(args, start)
        return args, printed.getvalue()

    def check_training(self, folder, first, last):
        """Checks that all layers learn, including `first` and `last`, and that the result has the
        layout that training began with."""
        start = classifier_files.open_start(folder)
        before = start.arrays()
        args, printed = self.train(start, folder)
        self.assertIn(f'a new head: 2 classes in place of {start.classes}', printed)
        self.assertIn('--model=run=', printed)
        saved = torch.load(args.out / 'checkpoint.pt', weights_only=True)['state_dict']
        self.assertFalse(saved[f'model.{first}'].equal(torch.from_numpy(before[first])))
        self.assertEqual(len(saved[f'model.{last}']), 2)
        layout = [set(safetensors.torch.load_file(path / 'model.safetensors'))
                  for path in (folder, args.export)]
        self.assertEqual({name for name in layout[0] if 'num_batches' not in name}, layout[1])
        for path in (args.out / 'checkpoint.pt', args.export):
            again = classifier_files.open_start(path)
            self.assertEqual((again.variant, again.fields, again.size, again.mean, again.classes),
                             (start.variant, start.fields, 64, (0.5,) * 3, 2))
            self.assertEqual(read_open_weights(path).labels, ['dark', 'light'])
            for name, array in again.arrays().items():
                torch.testing.assert_close(torch.from_numpy(array), saved[f'model.{name}'],
                                           rtol=1e-3, atol=1e-5)
        self.assertIn('began with the weights of `start`',
                      (args.export / 'CREDITS.md').read_text())

    def test_training_starts_from_mambaout(self):
        self.check_training(self.timm_folder('test_mambaout'), 'stem.conv1.weight',
                            'head.fc.weight')

    def test_training_starts_from_efficientvim(self):
        self.check_training(self.timm_folder('efficientvim_m1_dist'),
                            'stages.0.blocks.0.mixer.hz_proj.conv.weight', 'heads_dist.3.weight')

    def test_training_starts_from_vmamba(self):
        self.check_training(self.vmamba_folder(), 'layers.0.blocks.0.op.x_proj_weight',
                            'classifier.head.weight')

    def test_the_same_classes_keep_the_head(self):
        folder = self.timm_folder('test_mambaout')
        network = train_classifier.make_model(classifier_files.open_start(folder), 3)
        for name, tensor in safetensors.torch.load_file(folder / 'model.safetensors').items():
            self.assertTrue(network.state_dict()[name].equal(tensor), name)

    def test_a_file_without_a_name_is_asked_about(self):
        folder = self.timm_folder('test_mambaout')
        path = folder / 'weights.safetensors'
        (folder / 'model.safetensors').rename(path)
        with self.assertRaisesRegex(CheckpointError, 'give --variant, test_mambaout by the shapes'):
            classifier_files.open_start(path)
        self.assertEqual(classifier_files.open_start(path, 'test_mambaout').fields['activation'],
                         'silu')
        with self.assertRaisesRegex(CheckpointError, '--variant: mambaout_tiny has widths'):
            classifier_files.open_start(path, 'mambaout_tiny')
        with self.assertRaisesRegex(CheckpointError, 'mamba_vision_t, expected one of'):
            classifier_files.open_start(path, 'mamba_vision_t')

    def test_other_models_of_vmamba_s_authors_are_refused(self):
        folder = self.vmamba_folder()
        tensors = safetensors.torch.load_file(folder / 'model.safetensors')
        first = 'vmamba.layers.0.blocks.0.op.'
        for change, message in (
                ({f'{first}conv2d.bias': torch.zeros(8)}, 'op.conv2d.bias: VMamba v2 has none'),
                ({f'{first}in_proj.weight': torch.zeros(16, 8)}, 'has 16 rows, expected 8'),
                ({'vmamba.patch_embeddings.projection.0.weight': torch.zeros(4, 3, 4, 4)},
                 'patch_embed.0.weight is 4 pixels a side, expected 3')):
            safetensors.torch.save_file({**tensors, **change}, folder / 'model.safetensors')
            with self.assertRaisesRegex(CheckpointError, message):
                classifier_files.open_start(folder)

    def test_a_missing_tensor_is_named(self):
        folder = self.vmamba_folder()
        tensors = safetensors.torch.load_file(folder / 'model.safetensors')
        del tensors['vmamba.layers.1.blocks.0.op.Ds']
        safetensors.torch.save_file(tensors, folder / 'model.safetensors')
        with self.assertRaisesRegex(CheckpointError, r'missing .*layers\.1\.blocks\.0\.op\.Ds'):
            train_classifier.make_model(classifier_files.open_start(folder), 10)


if __name__ == '__main__':
    unittest.main()
