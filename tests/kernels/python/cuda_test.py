"""Tests the operators for CUDA tensors. Run by //tests/kernels/python:python_test.

The kernels are tested by *_cuda_test.cc.
"""

import subprocess
import unittest

import torch
from torch.utils.cpp_extension import CUDA_HOME

import conv_test
import scan_test
from sfmamba_scan import causal_conv1d_fn, selective_scan_fn


def has_fitting_nvcc():
    if not torch.version.cuda or not CUDA_HOME:
        return False
    version = subprocess.run([f'{CUDA_HOME}/bin/nvcc', '--version'], check=True,
                             capture_output=True, text=True).stdout
    return f'release {torch.version.cuda.partition(".")[0]}.' in version


class BuildTest(unittest.TestCase):
    def test_the_operators_take_cuda_tensors_where_nvcc_is(self):
        for name in ('selective_scan', 'selective_scan_backward', 'causal_conv1d',
                     'causal_conv1d_backward'):
            self.assertEqual(torch._C._dispatch_has_kernel_for_dispatch_key(
                f'sfmamba_scan::{name}', 'CUDA'), has_fitting_nvcc(), name)


@unittest.skipUnless(torch.cuda.is_available(), 'no GPU')
class CardTest(scan_test.ScanCase):
    def expect_agreement(self, run, function, args, **options):
        on_card = run(function, {name: x.cuda() for name, x in args.items()}, **options)
        self.assertAgree({name: x.cpu() for name, x in on_card.items()},
                         run(function, args, **options), 1e-10)

    def test_both_give_what_they_give_on_a_cpu(self):
        for shape in scan_test.SHAPES:
            for period in (None, 5):
                self.expect_agreement(scan_test.run, selective_scan_fn, scan_test.make(shape),
                                      period=period)
        for shape in conv_test.SHAPES:
            for period in (None, 5):
                self.expect_agreement(conv_test.run, causal_conv1d_fn, conv_test.make(shape),
                                      period=period, activation='silu')

    def expect_finite_differences(self, function, args, **options):
        args = {name: x.cuda().requires_grad_() for name, x in args.items()}
        self.assertTrue(torch.autograd.gradcheck(
            lambda *values: function(**dict(zip(args, values)), **options),
            tuple(args.values())))

    def test_gradients_are_those_of_finite_differences(self):
        for period in (None, 3):
            self.expect_finite_differences(
                selective_scan_fn, scan_test.make((1, 4, 5, 35, 2)), period=period,
                delta_softplus=True, return_last_state=True)
            self.expect_finite_differences(causal_conv1d_fn, conv_test.make((2, 5, 4, 19)),
                                           period=period, activation='silu')

    def test_what_is_wrong_is_named(self):
        args = {name: x.cuda() for name, x in scan_test.make((2, 6, 4, 9, 1)).items()}
        with self.assertRaisesRegex(ValueError, 'A: expected a tensor on cuda:0, got cpu'):
            selective_scan_fn(**{**args, 'A': args['A'].cpu()})
        with self.assertRaisesRegex(ValueError, 'A: expected 1 to 32 states, got 33'):
            selective_scan_fn(**{**args, 'A': -torch.rand(6, 33).double().cuda()})


if __name__ == '__main__':
    unittest.main()
