import dataclasses
import math
import pathlib
import unittest

from checkpoint.network import (Backbone, Detector, Network, Unclear, expected_tensors,
                                read_network)
from checkpoint.safetensors_file import read_safetensors
from checkpoint.variants import ROWS, default_windows, find_row, matching_rows

MODELS = pathlib.Path(__file__).parents[2] / 'models'
CASCADE = Detector(box_stages=3, box_convs=4, box_fcs=1, mask_convs=4, channels=256, fc_width=1024)
MASK = Detector(box_stages=1, box_convs=0, box_fcs=2, mask_convs=4, channels=256, fc_width=1024)
FASTER = dataclasses.replace(MASK, mask_convs=0)


def backbone(name):
    return find_row('sf_mamba_' + name)[0].backbone


def network(name, task, detector=None):
    classes, channels = {'CLASSIFICATION': (1000, 0), 'DETECTION': (80, 0),
                         'SEGMENTATION': (150, 512)}[task]
    return Network(task, backbone(name), classes, detector, channels)


def parameters(tensors, prefix=''):
    return sum(math.prod(shape) for name, shape in tensors.items()
               if name.startswith(prefix) and 'running_' not in name)


def entries(tensors):
    """Returns the number of tensors, including a num_batches_tracked for each running_var."""
    return len(tensors) + sum(name.endswith('running_var') for name in tensors)


class CountTest(unittest.TestCase):
    """The expected counts are those of docs/network.md and docs/heads.md. They were taken from real
    modules."""

    def test_classifiers(self):
        for name, count, total in (
                ('t', 252, 31_794_248), ('t2', 298, 35_104_008), ('s', 285, 50_140_584),
                ('b', 356, 97_685_288), ('l', 356, 227_961_048), ('l2', 389, 241_554_824),
                ('l3_256_21k', None, 739_570_472)):
            tensors = expected_tensors(network(name, 'CLASSIFICATION'))
            self.assertEqual(parameters(tensors), total, name)
            if count is not None:
                self.assertEqual(entries(tensors), count, name)

    def test_cascades(self):
        for name, count, of_backbone, neck in (('t', 401, 31_154_368, 2_668_544),
                                               ('s', 434, 49_372_928, 2_729_984),
                                               ('b', 505, 96_662_080, 2_852_864)):
            tensors = expected_tensors(network(name, 'DETECTION', CASCADE))
            self.assertEqual(entries(tensors), count)
            self.assertEqual(parameters(tensors, 'backbone.'), of_backbone)
            self.assertEqual(parameters(tensors, 'neck.'), neck)
            self.assertEqual(parameters(tensors, 'rpn_head.'), 593_935)
            self.assertEqual(parameters(tensors, 'roi_head.'), 54_785_187)

    def test_detectors_of_one_stage(self):
        for detector, count, total in ((MASK, 20, 16_949_985), (FASTER, 8, 14_306_705)):
            tensors = expected_tensors(network('t', 'DETECTION', detector))
            self.assertEqual(sum(name.startswith('roi_head.') for name in tensors), count)
            self.assertEqual(parameters(tensors, 'roi_head.'), total)

    def test_segmenters(self):
        for name, count, head in (('t', 335, 30_588_054), ('s', 368, 31_497_366),
                                  ('b', 439, 33_315_990), ('l3_512_21k', 684, 40_590_486)):
            tensors = expected_tensors(network(name, 'SEGMENTATION'))
            # The 8 tensors of auxiliary_head are not read.
            self.assertEqual(entries(tensors) + 8, count)
            self.assertEqual(parameters(tensors, 'decode_head.'), head)


class ReadTest(unittest.TestCase):
    def test_shapes_tell_what_the_network_is(self):
        small = Backbone(16, 8, (1, 2, 5, 3), True)
        networks = [network('t', 'CLASSIFICATION'), network('s', 'DETECTION', CASCADE),
                    network('b', 'DETECTION', MASK), network('t2', 'DETECTION', FASTER),
                    network('l3_512_21k', 'SEGMENTATION'),
                    Network('CLASSIFICATION', dataclasses.replace(small, learnable=True), 7),
                    Network('CLASSIFICATION', dataclasses.replace(small, attention=False), 7),
                    Network('SEGMENTATION', small, 3, None, 24),
                    Network('DETECTION', small, 5, Detector(1, 2, 1, 1, 24, 32, True, True)),
                    Network('DETECTION', small, 5, Detector(2, 0, 1, 0, 24, 32, True)),
                    Network('DETECTION', small, 1, Detector(1, 0, 2, 4, 24, 32)),
                    Network('CLASSIFICATION', dataclasses.replace(small, depths=(1, 1, 256, 1)), 7)]
        for expected in networks:
            self.assertEqual(read_network(expected_tensors(expected)), expected)

    def test_what_is_missing_is_named(self):
        tensors = expected_tensors(network('t', 'CLASSIFICATION'))
        for name in ('patch_embed.conv_down.0.weight', 'head.weight'):
            with self.assertRaisesRegex(Unclear, f'{name}: missing'):
                read_network({k: v for k, v in tensors.items() if k != name})
        with self.assertRaisesRegex(Unclear, r'levels\.3 has 0 blocks'):
            read_network({k: v for k, v in tensors.items() if not k.startswith('levels.3.blocks')})
        with self.assertRaisesRegex(Unclear, r'levels\.3 has 257 blocks'):
            read_network({**tensors, 'levels.3.blocks.256.norm1.weight': (640,)})

    def test_the_rank_of_an_odd_width_is_rounded_up(self):
        odd = Backbone(18, 8, (1, 1, 1, 1), True)
        tensors = expected_tensors(Network('CLASSIFICATION', odd, 7))
        # The rank is the width divided by 16, rounded up. 72 / 16 = 4.5 becomes 5.
        mixer = 'levels.2.blocks.0.mixer.'
        self.assertEqual(tensors[mixer + 'dt_proj.weight'], (36, 5))
        self.assertEqual(tensors[mixer + 'x_proj.weight'], (5 + 2 * 8, 36))


class TrunkTest(unittest.TestCase):
    def test_shapes_tell_what_stands_on_a_trunk(self):
        for stride, dim, first in ((16, 28, 2), (32, 24, 3)):
            depths = (0,) * first + (4, 2, 3)[-(4 - first):]
            below = Backbone(dim, 0, depths, False, trunk=stride)
            for neck in ((), (320, 1280)):
                expected = Network('CLASSIFICATION', below, 9, neck=neck)
                self.assertEqual(read_network(expected_tensors(expected)), expected)

    def test_the_shipped_models_have_all_and_only_these_tensors(self):
        for name, depths, neck in (('everyday', (0, 0, 4, 2), ()),
                                   ('everyday_detector', (0, 0, 4, 2), ()),
                                   ('everyday_segmenter', (0, 0, 4, 2), ()),
                                   ('photographs', (0, 0, 0, 6), (320, 1280))):
            data = memoryview((MODELS / name / '1/model.safetensors').read_bytes())
            shapes = {k: tensor.shape for k, tensor in read_safetensors(data).items()}
            found = read_network(shapes)
            self.assertEqual((found.backbone.depths, found.neck), (depths, neck))
            self.assertEqual(expected_tensors(found), shapes)

    def test_what_does_not_stand_on_a_trunk_is_named(self):
        whole = expected_tensors(Network('CLASSIFICATION',
                                         Backbone(28, 0, (0, 0, 1, 1), False, trunk=16), 9))
        fewer = {k: v for k, v in whole.items() if 'trunk.blocks.10' not in k}
        with self.assertRaisesRegex(Unclear, 'trunk has 10 blocks, expected 11 or 12'):
            read_network(fewer)
        with self.assertRaisesRegex(Unclear, r'levels\.2 has 0 blocks'):
            read_network({k: v for k, v in whole.items() if not k.startswith('levels.2.blocks')})
        more = {**whole, 'levels.1.blocks.0.conv1.weight': (56, 56, 3, 3)}
        with self.assertRaisesRegex(Unclear, r'\[0, 1, 1, 1\] blocks, expected none in the first 2'):
            read_network(more)


class VariantTest(unittest.TestCase):
    def test_rows_with_the_same_shapes(self):
        for name, names in (('t', ['t']), ('t2', ['t2']), ('s', ['s']), ('b', ['b', 'b_21k']),
                            ('l_21k', ['l', 'l_21k']), ('l2', ['l2', 'l2_512_21k']),
                            ('l3_512_21k', ['l3_256_21k', 'l3_512_21k'])):
            self.assertEqual([row.name for row in matching_rows(backbone(name))], names)

    def test_other_shapes_are_of_no_row(self):
        row = backbone('t')
        for other in (dataclasses.replace(row, depths=(1, 3, 8, 5)),
                      dataclasses.replace(row, in_dim=64), dataclasses.replace(row, dim=96),
                      dataclasses.replace(row, layer_scale=True)):
            self.assertEqual(matching_rows(other), [])

    def test_every_row_is_found_by_its_name(self):
        for row in ROWS:
            self.assertEqual(find_row('mamba_vision_' + row.name), (row, 'none'))

    def test_windows_that_the_server_chooses(self):
        for variant, task, windows in (
                ('sf_mamba_t', 'DETECTION', (84, 42)), ('mamba_vision_s', 'DETECTION', (112, 56)),
                ('mamba_vision_s', 'SEGMENTATION', (160, 56)),
                ('sf_mamba_s', 'SEGMENTATION', (64, 32)),
                ('mamba_vision_l3_256_21k', 'CLASSIFICATION', (16, 8))):
            self.assertEqual(default_windows(variant, task), windows)
