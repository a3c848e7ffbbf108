"""Tests the converter with the cases that also test the server's reader of Hugging Face's
folders."""

import json
import pathlib
import types
import unittest

from checkpoint.choice import choose
from checkpoint.descriptions import describe
from checkpoint.hugging_face import CONFIG, PREPROCESSOR, read_labels
from checkpoint.json_text import parse_object
from checkpoint.network import Backbone, Network
from checkpoint.tensor import CheckpointError
from checkpoint.variants import CUSTOM, MEAN, STD, default_windows, find_row

CASES = pathlib.Path('tests/testdata/hugging_face/cases.json')
SMALL = Backbone(dim=8, in_dim=8, depths=(1, 1, 1, 1), layer_scale=False)


def parsed(name, given):
    return given if isinstance(given, dict) else parse_object(name, given.encode())


def read(case):
    """Returns (what the converter finds in the case's folder, its warnings)."""
    row = case.get('row', 't')
    backbone = SMALL if row == CUSTOM else find_row(f'mamba_vision_{row}')[0].backbone
    network = Network('CLASSIFICATION', backbone, 3)
    preprocessor = case.get('preprocessor')
    files = types.SimpleNamespace(
        name='1', own_config=None, config=parsed(CONFIG, case['config']),
        preprocessor=None if preprocessor is None else parsed(PREPROCESSOR, preprocessor))
    choice = choose(network, describe(files, {}), config=files.config)
    found = {'variant': choice.variant, 'windows': choice.windows, 'num_heads': choice.num_heads,
             'size': 224, 'crop_pct': 1.0, 'resize': 'CENTER_CROP', 'mean': MEAN, 'std': STD,
             'labels': read_labels(files.config, 3)}
    if choice.variant != CUSTOM:
        row, _ = find_row(choice.variant)
        found.update(windows=choice.windows or default_windows(choice.variant, network.task),
                     num_heads=choice.num_heads or row.num_heads, size=row.input_size,
                     crop_pct=row.crop_pct, resize=row.resize)
    elif choice.windows is None:
        raise CheckpointError('window_size: got none')
    return {**found, **choice.picture}, choice.notes


class CasesTest(unittest.TestCase):
    def assert_found(self, found, expected):
        for name, value in expected.items():
            if isinstance(value, list) and isinstance(value[0], float):
                self.assertTrue(all(abs(x - y) < 1e-6 for x, y in zip(found[name], value)), found)
            elif isinstance(value, list):
                self.assertEqual(list(found[name]), value)
            else:
                self.assertEqual(found[name], value, name)

    def test_each_case(self):
        for case in json.loads(CASES.read_text(encoding='utf-8')):
            with self.subTest(case['name']):
                if 'error' in case:
                    with self.assertRaises(CheckpointError) as raised:
                        read(case)
                    self.assertIn(case['error'], str(raised.exception))
                else:
                    found, warnings = read(case)
                    self.assert_found(found, case['expect'])
                    self.assertEqual([w for w in warnings if '; but the tensors' not in w],
                                     case.get('warnings', []))


if __name__ == '__main__':
    unittest.main()
