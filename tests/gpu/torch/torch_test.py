"""Tests the programs of this folder as far as possible without a GPU. Needs PyTorch."""

import ctypes
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import depthwise
import device_properties
import ladder  # Puts tools/benchmark_peers and tools/pytorch on the path.
import sdpa

import deterministic
import sf_mamba
import torch
import torch.nn.functional as F


class Operators:
    """The operators of operators.cc, computed by PyTorch. `rows` contains all values of B1 that
    were requested.
    """

    def __init__(self):
        self.rows = set()

    def short_convolutions(self, x, weight_u, weight_z):
        def convolved(half, weight):
            channels = half.shape[-1]
            return F.silu(F.conv1d(half.transpose(1, 2), weight.t().unsqueeze(1), padding=1,
                                   groups=channels)).transpose(1, 2)
        u, z = x.chunk(2, dim=-1)
        z = convolved(z, weight_z)
        return convolved(u, weight_u), torch.cat([torch.full_like(z, torch.nan), z], dim=-1)

    def selective_scan(self, u, dt, A, B, C, D, bias, rows, y):
        self.rows.add(rows)
        y.copy_(sf_mamba.selective_scan_loop(u, dt, A.t(), B, C, D, bias))


class LadderTest(unittest.TestCase):
    def test_every_step_is_the_same_network(self):
        images = deterministic.deterministic_input(1, 3, 64, 64)
        operators, expected = Operators(), {}
        for step, tokens, rows in ladder.STEPS:
            model = ladder.network(tokens, rows, ladder.gpu.by_definition, operators,
                                   lambda S, L, D: 7)
            with torch.inference_mode():
                logits = model(images)
            if tokens not in expected:
                torch.manual_seed(1)
                with torch.inference_mode():
                    expected[tokens] = sf_mamba.make('T', tokens=tokens).eval()(images)
            torch.testing.assert_close(logits, expected[tokens], atol=1e-4, rtol=1e-3,
                                       msg=lambda text: f'{step}: {text}')
        self.assertEqual(operators.rows, {0, 1, 4, 7})

    def test_a_deviation_is_in_standard_deviations(self):
        expected = torch.tensor([[0.0, 1.0, 2.0]])
        self.assertAlmostEqual(ladder.deviation(expected + 0.5, expected), 0.5)
        self.assertTrue(ladder.deviation(expected * torch.nan, expected) !=
                        ladder.deviation(expected * torch.nan, expected))

    def test_the_fastest_rows_are_chosen_once(self):
        asked = []
        adaptive = ladder.Adaptive(lambda S, L, D, rows: asked.append(rows) or abs(rows - 3))
        self.assertEqual(adaptive(12, 196, 160), 2)
        self.assertEqual(adaptive(12, 196, 160), 2)
        self.assertEqual(asked, [0, 1, 2, 4])  # 12 sequences cannot be folded into 8 rows.

    def test_steps_are_measured_in_turn(self):
        lines = []
        ladder.gpu_timing.clocks, clocks = dict, ladder.gpu_timing.clocks
        ladder.gpu_timing.measured, measured = (
            lambda run, limit: {'median': run()}, ladder.gpu_timing.measured)
        try:
            ladder.measure(lines.append, [('a', 'eager', lambda: 8.0), ('b', 'eager', lambda: 4.0)],
                           2, 1, lambda: 1)
        finally:
            ladder.gpu_timing.clocks, ladder.gpu_timing.measured = clocks, measured
        self.assertEqual([(line['step'], line['round']) for line in lines],
                         [('a', 1), ('b', 1), ('a', 2), ('b', 2)])
        self.assertEqual(lines[1]['images_per_second'], 32000)


class SdpaTest(unittest.TestCase):
    def test_each_backend_of_each_shape_has_a_line(self):
        def time_of(run):
            run()
            return {'us': 1.0}
        shapes = dict(sdpa.SHAPES)
        sdpa.SHAPES.clear()
        sdpa.SHAPES['small'] = (2, 3, 5, 8)
        try:
            lines = list(sdpa.lines(time_of, torch.float32, 'cpu'))
        finally:
            sdpa.SHAPES.clear()
            sdpa.SHAPES.update(shapes)
        self.assertEqual([line['backend'] for line in lines], list(sdpa.BACKENDS))
        self.assertEqual(lines[0]['us'], 1.0)
        refused = next(line for line in lines if line['backend'] == 'CUDNN_ATTENTION')
        self.assertIsNone(refused['us'])
        self.assertTrue(refused['note'])

    def test_heads_lie_in_one_tensor(self):
        q, k, v = sdpa.heads_of((2, 3, 5, 8), torch.float32, 'cpu')
        self.assertEqual(q.shape, (2, 3, 5, 8))
        self.assertEqual(q.stride(2), 3 * 3 * 8)
        self.assertEqual(k.data_ptr() - q.data_ptr(), 4 * 3 * 8)


class DepthwiseTest(unittest.TestCase):
    def test_a_line_counts_what_is_read_and_written(self):
        y = depthwise.convolve((2, 8, 6, 5, 2), torch.float32, 'cpu')()
        self.assertEqual(y.shape, (2, 6, 4, 4))
        self.assertTrue(y.is_contiguous(memory_format=torch.channels_last))
        line = depthwise.line_of((2, 8, 6, 5, 2), {'us': 2.0, 'us_cold': 4.0}, 1e9)
        self.assertEqual((line['tokens'], line['channels']), (2 * 4 * 4, 6))
        self.assertAlmostEqual(line['share_of_copy'], 2 * 6 * 2 * (64 + 16) / 2e-6 / 1e9)
        self.assertAlmostEqual(line['share_of_copy_cold'], line['share_of_copy'] / 2)

    def test_the_last_setting_has_the_speed_of_a_copy(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = pathlib.Path(folder, 'lines')
            self.assertEqual(depthwise.copy_speed(lines), 0)
            lines.write_text('{"benchmark": "setting", "copy_bytes_per_s": 3}\n'
                             '{"benchmark": "pass"}\n')
            self.assertEqual(depthwise.copy_speed(lines), 3)


class FakeCudnn:
    """Behaves like cuDNN."""

    def __init__(self):
        self.cudnnGetErrorString = lambda status: b'NO_DEVICE'
        self.finalised = False

    def cudnnBackendCreateDescriptor(self, kind, descriptor):
        assert kind == 38
        return 0

    def cudnnBackendSetAttribute(self, descriptor, name, kind, count, value):
        assert (name, kind, count.value) == (2700, 23, 1)
        return 0

    def cudnnBackendFinalize(self, descriptor):
        self.finalised = True
        return 0

    def cudnnBackendGetAttribute(self, descriptor, name, kind, asked, count, text):
        assert self.finalised and (name, kind) == (2702, 24)
        json = b'{"sm": 90}\0'
        ctypes.cast(count, ctypes.POINTER(ctypes.c_int64))[0] = len(json)
        if text is not None:
            text.raw = json
        return 0

    def cudnnBackendDestroyDescriptor(self, descriptor):
        return 0


class DevicePropertiesTest(unittest.TestCase):
    def test_properties_are_read_whole(self):
        cudnn = device_properties.Cudnn(FakeCudnn())
        self.assertEqual(device_properties.device_properties(cudnn), b'{"sm": 90}')

    def test_cudnn_says_why_not(self):
        fake = FakeCudnn()
        fake.cudnnBackendFinalize = lambda descriptor: 1002
        with self.assertRaisesRegex(RuntimeError, 'Finalize: NO_DEVICE'):
            device_properties.device_properties(device_properties.Cudnn(fake))


if __name__ == '__main__':
    unittest.main()
