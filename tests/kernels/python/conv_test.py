"""Compares causal_conv1d_fn with its definition. Run by //tests/kernels/python:python_test."""

import unittest

import torch
import torch.nn.functional as F

import installed
from sfmamba_scan import causal_conv1d_fn

# Tuples of images, channels, taps and tokens.
SHAPES = [(1, 1, 1, 1), (2, 5, 4, 3), (2, 16, 3, 33), (1, 130, 4, 65), (3, 33, 2, 31),
          (1, 20, 8, 100)]


def definition(x, weight, bias=None, initial_states=None, activation=None, period=None,
               seq_idx=None):
    """Computes the definition token by token."""
    L, W = x.shape[2], weight.shape[1]
    before = x.new_zeros(*x.shape[:2], W - 1) if initial_states is None else initial_states
    x = torch.cat([before, x], dim=2)
    ys = []
    for i in range(L):
        y = torch.zeros_like(x[..., 0]) if bias is None else bias.expand(x.shape[:2])
        cut = torch.zeros(len(x), dtype=torch.bool)
        for j in range(W):
            if j and period and (i - j + 1) % period == 0 and i - j + 1 > 0:
                cut = torch.ones_like(cut)
            if j and seq_idx is not None:
                cut = cut | (i < j) | (seq_idx[:, i - j] != seq_idx[:, i])
            tap = weight[:, W - 1 - j] * x[..., i - j + W - 1]
            y = y + torch.where(cut[:, None], 0, tap)
        ys.append(y)
    y = torch.stack(ys, dim=2)
    y = F.silu(y) if activation else y
    return y if seq_idx is None else torch.where(seq_idx[:, None] < 0, 0, y)


def make(shape, dtype=torch.float64):
    N, D, W, L = shape
    torch.manual_seed(0)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return dict(x=torch.randn(N, D, L).to(dtype), weight=torch.randn(D, W).to(wide),
                bias=torch.randn(D).to(wide), initial_states=torch.randn(N, D, W - 1).to(dtype))


def run(function, args, **options):
    args = {name: x.detach().clone().requires_grad_() for name, x in args.items()}
    y = function(**args, **options)
    torch.manual_seed(1)
    (y * torch.randn(y.shape).to(y.device)).sum().backward()
    return {'y': y, **{f'd{name}': x.grad for name, x in args.items()}}


class ConvCase(unittest.TestCase):
    def assertAgree(self, got, expected, tolerance):
        for name, x in got.items():
            if x.numel():
                error = (x.double() - expected[name].double()).abs().max().item()
                scale = expected[name].double().abs().max().item()
                self.assertLessEqual(error, tolerance * max(scale, 1e-3), name)


class ConvAgreementTest(ConvCase):
    """Tests the active instruction set. The caller runs these tests once for each instruction set.
    """

    def test_it_agrees_with_the_definition(self):
        for shape in SHAPES:
            for activation in (None, 'silu'):
                for period in (None, 1, 5):
                    options = dict(activation=activation, period=period)
                    with self.subTest(shape=shape, **options):
                        args = make(shape)
                        expected = run(definition, args, **options)
                        args = {name: x.float() for name, x in args.items()}
                        self.assertAgree(run(causal_conv1d_fn, args, **options), expected, 1e-5)
                        half = make(shape, torch.bfloat16)
                        exact = {name: x.double() for name, x in half.items()}
                        self.assertAgree(run(causal_conv1d_fn, half, **options),
                                         run(definition, exact, **options), 2**-6)

    def test_runs_end_taps(self):
        args = {name: x.float() for name, x in make((2, 19, 4, 40)).items()
                if name != 'initial_states'}
        run_of = torch.tensor([[0] * 7 + [1] * 2 + [2] * 31, [5] * 38 + [-1] * 2]).int()
        self.assertAgree(run(causal_conv1d_fn, args, seq_idx=run_of, activation='swish'),
                         run(definition, args, seq_idx=run_of, activation='swish'), 1e-5)

    def test_a_nan_stays_in_its_run_and_channel(self):
        clean = {name: x.float() for name, x in make((2, 20, 4, 60)).items()}
        args = {name: x.clone() for name, x in clean.items()}
        args['x'][1, 3, 38] = float('nan')
        got, expected = (run(causal_conv1d_fn, x, activation='silu', period=20)
                         for x in (args, clean))
        hit = torch.zeros(2, 20, 60, dtype=torch.bool)
        hit[1, 3, 20:40] = True
        for name in ('y', 'dx'):
            self.assertTrue(torch.equal(got[name][~hit], expected[name][~hit]))


class ConvTest(ConvCase):
    def test_every_instruction_set_agrees_with_the_definition(self):
        for isa in ('scalar', 'avx2', 'avx512'):
            with self.subTest(isa=isa):
                installed.run('-m', 'unittest', 'conv_test.ConvAgreementTest', SFMAMBA_CPU_ISA=isa)

    def test_gradients_are_those_of_finite_differences(self):
        for shape in ((2, 3, 4, 2), (1, 2, 3, 35)):
            for activation in (None, 'silu'):
                args = [x.requires_grad_() for x in make(shape).values()]
                self.assertTrue(torch.autograd.gradcheck(
                    lambda x, weight, bias, initial, activation=activation: causal_conv1d_fn(
                        x, weight, bias, initial_states=initial, return_final_states=True,
                        activation=activation, period=9), args))

    def test_layouts_do_not_matter(self):
        args = {name: x.float() for name, x in make((3, 35, 4, 50)).items()}
        expected = run(causal_conv1d_fn, args, activation='silu')
        args['x'] = args['x'].transpose(1, 2).contiguous().transpose(1, 2)
        self.assertAgree(run(causal_conv1d_fn, args, activation='silu'), expected, 0)

    def test_final_states_continue_a_sequence(self):
        for L in (1, 2, 9):
            args = {name: x.float() for name, x in make((2, 5, 4, L + 6)).items()}
            x = args.pop('x')
            whole = causal_conv1d_fn(x, **args)
            out = torch.empty(2, 5, 3)
            first, final = causal_conv1d_fn(x[..., :L], **args, return_final_states=True,
                                            final_states_out=out)
            rest = causal_conv1d_fn(x[..., L:], **{**args, 'initial_states': final})
            self.assertTrue(torch.equal(out, final))
            self.assertTrue(torch.equal(torch.cat([first, rest], dim=2), whole))

    def test_nothing_gives_nothing(self):
        for shape in ((2, 5, 4, 0), (0, 5, 4, 7), (2, 0, 4, 7)):
            args = {name: x.float() for name, x in make(shape).items()}
            self.assertEqual(causal_conv1d_fn(**args).shape, args['x'].shape)
            for gradient in run(causal_conv1d_fn, args).values():
                self.assertEqual(gradient.abs().sum(), 0)

    def test_what_is_wrong_is_named(self):
        args = make((2, 6, 4, 9), torch.float32)
        zeros = torch.zeros
        wrong = [
            ('x', zeros(6, 9), r'x: expected \[batch, channels, tokens\], got shape \[6, 9\]'),
            ('weight', zeros(5, 4), r'weight: expected shape \[6, 4\], got \[5, 4\]'),
            ('weight', zeros(6, 9), 'weight: expected 1 to 8 taps, got 9'),
            ('bias', zeros(5), r'bias: expected shape \[6\], got \[5\]'),
            ('initial_states', zeros(2, 6, 4),
             r'initial_states: expected shape \[2, 6, 3\], got \[2, 6, 4\]'),
            ('activation', 'relu', "activation: expected None, 'silu' or 'swish', got 'relu'"),
            ('period', -1, 'period: expected at least 1, got -1'),
            ('seq_idx', zeros(2, 9).int(), 'seq_idx: expected None with initial_states'),
            ('final_states_out', zeros(2, 6, 3), 'final_states_out: expected None without'),
        ]
        for name, value, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                causal_conv1d_fn(**{**args, name: value})
        with self.assertRaisesRegex(ValueError, r'seq_idx: expected shape \[2, 9\], got \[9\]'):
            causal_conv1d_fn(args['x'], args['weight'], seq_idx=zeros(9).int())

    def test_second_gradients_are_refused(self):
        x = torch.randn(1, 2, 5, requires_grad=True)
        y = causal_conv1d_fn(x, torch.rand(2, 3), activation='silu')
        first, = torch.autograd.grad(y.sum(), x, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, 'gradients of gradients'):
            first.sum().backward()

    def test_it_compiles_whole(self):
        args = make((2, 6, 4, 9), torch.float32)
        compiled = torch.compile(causal_conv1d_fn, fullgraph=True, backend='aot_eager')
        self.assertAgree(run(compiled, args, activation='silu'),
                         run(causal_conv1d_fn, args, activation='silu'), 1e-6)

    def test_the_operator_keeps_pytorchs_rules(self):
        args = [x.requires_grad_() for x in make((2, 6, 4, 9), torch.float32).values()]
        torch.library.opcheck(torch.ops.sfmamba_scan.causal_conv1d.default,
                              (*args[:3], None, args[3], True, 4))


if __name__ == '__main__':
    unittest.main()
