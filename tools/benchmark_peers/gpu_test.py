"""Tests what gpu.py can do without a GPU. Its mixer must equal MambaVision's, and its lines must
say what was measured. Run it with PyTorch: python gpu_test.py
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpu  # Puts ../pytorch on the path.
import gpu_timing
import deterministic
import sf_mamba
import torch


class MixerTest(unittest.TestCase):
    def setUp(self):
        forward = sf_mamba.MambaMixer.forward
        self.addCleanup(setattr, sf_mamba.MambaMixer, 'forward', forward)

    def mixer(self):
        torch.manual_seed(1)
        return sf_mamba.MambaMixer(64).eval(), torch.randn(3, 7, 64)

    def test_channel_major_is_the_reference(self):
        mixer, x = self.mixer()
        with torch.inference_mode():
            expected = mixer(x)
            actual = gpu.channel_major_forward(gpu.by_definition)(mixer, x)
            stand_in = gpu.channel_major_forward(gpu.without_scan)(mixer, x)
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4)
        self.assertEqual(stand_in.shape, expected.shape)

    def test_a_compiler_sees_the_scan_as_one_operator(self):
        mixer, x = self.mixer()
        with torch.inference_mode():
            expected = mixer(x)
            sf_mamba.MambaMixer.forward = gpu.channel_major_forward(gpu.opaque(gpu.by_definition))
            compiled = torch.compile(mixer, backend='eager', fullgraph=True)
            torch.testing.assert_close(compiled(x), expected, atol=1e-5, rtol=1e-4)

    def test_network_runs_with_any_scan(self):
        images = deterministic.deterministic_input(1, 3, 64, 64)
        for tokens in ('data', 'none'):
            with torch.inference_mode():
                logits = gpu.network('T', tokens, gpu.without_scan)(images)
            self.assertEqual(logits.shape, (1, 1000))


class MambaSsmTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, sys, 'path', list(sys.path))
        self.addCleanup(sys.modules.pop, 'mamba_ssm', None)
        self.root = pathlib.Path(folder.name)
        sys.path.insert(0, folder.name)

    def test_says_that_it_is_missing(self):
        sys.path = [path for path in sys.path if not pathlib.Path(path, 'mamba_ssm').exists()]
        self.assertEqual(gpu.mamba_ssm_scan(), (None, 'it is not installed'))

    def test_says_why_it_is_broken(self):
        ops = self.root / 'mamba_ssm' / 'ops'
        ops.mkdir(parents=True)
        (self.root / 'mamba_ssm' / '__init__.py').write_text('raise AssertionError("imported")')
        (ops / '__init__.py').write_text('')
        (ops / 'selective_scan_interface.py').write_text('raise ImportError("no such symbol")')
        self.assertEqual(gpu.mamba_ssm_scan(), (None, 'ImportError: no such symbol'))


class LinesTest(unittest.TestCase):
    def test_a_model(self):
        line = gpu.model_line(('T', 'none', 'bf16', 128), 'graph',
                              {'p10': 9.0, 'median': 10.0, 'p90': 11.0})
        self.assertEqual(line['variant'], 'mamba_vision_t')
        self.assertEqual(line['images_per_second'], 12800)
        self.assertEqual((line['ms'], line['ms_p90'], line['note']), (10, 11, ''))

    def test_a_model_that_does_not_fit(self):
        line = gpu.model_line(('S', 'data', 'fp16', 1), 'eager', note='out of memory')
        self.assertEqual(line['variant'], 'sf_mamba_s')
        self.assertIsNone(line['images_per_second'])
        self.assertEqual(line['note'], 'out of memory')

    def test_errors_have_one_line(self):
        self.assertEqual(gpu.first_line(RuntimeError('one\ntwo')), 'one')
        self.assertEqual(gpu.first_line(RuntimeError()), 'RuntimeError')

    def test_versions_of_cudnn(self):
        self.assertEqual(gpu.cudnn_version(91900), '9.19.0')
        self.assertEqual(gpu.cudnn_version(None), 'none')

    def test_the_fastest_graph_is_replayed(self):
        case = ('T', 'none', 'bf16', 128)
        times = lambda ms: {'p10': ms, 'median': ms, 'p90': ms}
        lines = [json.dumps(line) for line in (
            gpu.model_line(case, 'graph', times(9)), gpu.model_line(case, 'graph', times(8)),
            gpu.model_line(case, 'graph channels_last', times(8.5)),
            gpu.model_line(case, 'compile', times(5)), gpu.model_line(case, 'eager', times(6)),
            gpu.model_line(('S', 'none', 'bf16', 128), 'graph channels_last', times(1)))]
        self.assertEqual(gpu.best_setting([*lines, '{"cut off'], case), 'graph')
        self.assertEqual(gpu.best_setting([], case), 'graph channels_last')

    def test_models_are_chosen_by_their_names(self):
        self.assertEqual(len(gpu.chosen('')), 6)
        self.assertEqual(gpu.chosen('mamba_vision_b,sf_mamba_t'),
                         [('T', 'data', 'bf16', 128), ('B', 'none', 'bf16', 128)])

    def test_a_model_that_is_not_compiled_in_time_stops_no_other(self):
        lines, calls = [], []
        arguments = argparse.Namespace(out='gpu.jsonl', seconds=0.5, compiled='compile')
        with unittest.mock.patch.object(
                gpu, 'child', lambda command, seconds: calls.append(command[1]) or 'it hung'):
            gpu.measure_compiled(lines.append, gpu.chosen(''), arguments, lambda: 1000)
        self.assertEqual(len(lines), 6)
        self.assertEqual({line['note'] for line in lines}, {'it hung'})
        self.assertEqual(calls[:2], ['sf_mamba_t', 'mamba_vision_t'])

    def test_without_time_nothing_is_measured(self):
        lines = []
        gpu.measure(lines.append, None, gpu.without_scan, 1, lambda: 0)
        self.assertEqual(len(lines), len(gpu.MODELS))
        self.assertEqual({line['note'] for line in lines}, {'no time was left'})


class TimingTest(unittest.TestCase):
    def test_quantiles(self):
        self.assertEqual(gpu_timing.quantiles([5, 1, 4, 2, 3]), {'p10': 1, 'median': 3, 'p90': 5})

    def test_repeats_are_those_of_our_own_timer(self):
        self.assertEqual(gpu_timing.repeats(0.01, 0.2), 200)
        self.assertEqual(gpu_timing.repeats(10, 0.2), 20)
        self.assertEqual(gpu_timing.repeats(1000, 0.2), 5)

    def test_without_a_card_there_are_no_clocks(self):
        with unittest.mock.patch.object(gpu_timing.subprocess, 'run', side_effect=OSError):
            self.assertEqual(gpu_timing.clocks(), {'sm_mhz': 0, 'watts': 0})


if __name__ == '__main__':
    unittest.main()
