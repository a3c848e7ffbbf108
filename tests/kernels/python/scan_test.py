"""Compares selective_scan_fn with its definition. Run by //tests/kernels/python:python_test."""

import concurrent.futures
import unittest

import torch

import installed
from sfmamba_scan import selective_scan_fn, selective_scan_ref

# Tuples of images, channels, states, tokens and groups. They include odd numbers, ones and whole
# tiles.
SHAPES = [(1, 1, 1, 1, 1), (2, 5, 3, 7, 1), (2, 16, 8, 33, 1), (1, 17, 16, 64, 1),
          (2, 12, 5, 40, 3), (1, 130, 8, 65, 1), (3, 33, 9, 31, 1), (1, 32, 4, 97, 2)]


def make(shape, dtype=torch.float64, seed=0):
    """Returns all tensor arguments of the scan."""
    N, D, S, L, G = shape
    torch.manual_seed(seed)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    shared = (N, S, L) if G == 1 else (N, G, S, L)
    args = dict(u=torch.randn(N, D, L), delta=torch.randn(N, D, L) - 1,
                B=torch.randn(shared), C=torch.randn(shared), z=torch.randn(N, D, L))
    parameters = dict(A=-torch.rand(D, S) * 4, D=torch.randn(D), delta_bias=torch.randn(D))
    return {**{name: x.to(dtype) for name, x in args.items()},
            **{name: x.to(wide) for name, x in parameters.items()}}


def learning(args):
    return {name: x.detach().clone().requires_grad_() for name, x in args.items()}


def run(function, args, **options):
    """Returns the result, the last state and the gradients of all arguments."""
    args = learning(args)
    options = dict(delta_softplus=True, **options)
    y, last = function(**args, return_last_state=True, **options)
    torch.manual_seed(1)
    weighted = sum((x * torch.randn(x.shape).to(x.device)).sum() for x in (y, last))
    weighted.backward()
    return {'y': y, 'last': last, **{f'd{name}': x.grad for name, x in args.items()}}


class ScanCase(unittest.TestCase):
    def assertAgree(self, got, expected, tolerance):
        """Expects that each tensor differs by at most `tolerance` times its largest expected value.
        """
        self.assertEqual(got.keys(), expected.keys())
        for name, x in got.items():
            self.assertEqual(x.shape, expected[name].shape, name)
            if x.numel():
                error = (x.double() - expected[name].double()).abs().max().item()
                scale = expected[name].double().abs().max().item()
                self.assertLessEqual(error, tolerance * max(scale, 1e-3), name)


class AgreementTest(ScanCase):
    """Tests the active instruction set. The caller runs these tests once for each instruction set.
    """

    def test_float32_agrees_with_the_definition(self):
        for shape in SHAPES:
            for period in (None, 1, 5, 32):
                with self.subTest(shape=shape, period=period):
                    args = make(shape)
                    expected = run(selective_scan_ref, args, period=period)
                    args = {name: x.float() for name, x in args.items()}
                    self.assertAgree(run(selective_scan_fn, args, period=period), expected, 2e-5)

    def test_bfloat16_agrees_with_the_definition(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                args = make(shape, torch.bfloat16)
                exact = {name: x.double() for name, x in args.items()}
                self.assertAgree(run(selective_scan_fn, args), run(selective_scan_ref, exact),
                                 2**-6)

    def test_large_values_give_what_the_definition_gives(self):
        for softplus in (True, False):
            args = {name: x.float() for name, x in make((2, 19, 8, 40, 1)).items()}
            args['delta'] *= 100
            args['A'][:, ::2] *= 50
            if not softplus:  # States grow to infinity and come back.
                args['delta'] = args['delta'].abs() * 1e-3
                args['A'][3] = 90
                args['A'][4] = 2
            got = selective_scan_fn(**args, delta_softplus=softplus)
            expected = selective_scan_ref(**args, delta_softplus=softplus)
            torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3, equal_nan=True)

    def test_a_nan_stays_in_its_period_and_channel(self):
        clean = make((2, 20, 8, 60, 1), torch.float32)
        for name in ('u', 'delta', 'z'):
            for bad in (float('nan'), float('inf')):
                args = {key: x.clone() for key, x in clean.items()}
                args[name][1, 3, 25] = bad
                got, expected = (run(selective_scan_fn, x, period=20) for x in (args, clean))
                hit = torch.zeros(2, 20, 60, dtype=torch.bool)
                hit[1, 3, 20:40] = True
                for key in ('y', 'du', 'ddelta', 'dz'):
                    with self.subTest(name=name, bad=bad, key=key):
                        self.assertTrue(torch.equal(got[key][~hit], expected[key][~hit]))
                for key in ('dB', 'dC'):  # Of these sums over channels, only the period's change.
                    rest = torch.cat([got[key][:1].flatten(), got[key][1, :, :20].flatten(),
                                      got[key][1, :, 40:].flatten()])
                    self.assertTrue(torch.isfinite(rest).all())


class ScanTest(ScanCase):
    def test_every_instruction_set_agrees_with_the_definition(self):
        for isa in ('scalar', 'avx2', 'avx512'):  # The CPU may support only a lesser one.
            with self.subTest(isa=isa):
                installed.run('-m', 'unittest', 'scan_test.AgreementTest', SFMAMBA_CPU_ISA=isa)

    def test_an_unknown_instruction_set_is_an_error(self):
        with self.assertRaisesRegex(AssertionError, 'ValueError: SFMAMBA_CPU_ISA: got "avx3", exp'):
            installed.run('-c', 'import sfmamba_scan', SFMAMBA_CPU_ISA='avx3')

    def test_gradients_are_those_of_finite_differences(self):
        names = ('u', 'delta', 'A', 'B', 'C', 'D', 'z', 'delta_bias')
        for shape in ((2, 3, 2, 5, 1), (1, 4, 5, 35, 2)):
            for softplus in (True, False):
                for period in (None, 3):
                    args = make(shape)
                    if not softplus:  # These states do not grow.
                        args['delta_bias'] = args['delta_bias'].abs() + 3
                    args = learning(args)
                    with self.subTest(shape=shape, softplus=softplus, period=period):
                        self.assertTrue(torch.autograd.gradcheck(
                            lambda *x, softplus=softplus, period=period: selective_scan_fn(
                                **dict(zip(names, x)), delta_softplus=softplus,
                                return_last_state=True, period=period),
                            [args[name] for name in names]))

    def test_float64_agrees_with_the_definition(self):
        for shape in SHAPES:
            args = make(shape)
            self.assertAgree(run(selective_scan_fn, args), run(selective_scan_ref, args), 1e-12)

    def test_optional_arguments_may_be_missing(self):
        args = make((2, 5, 3, 40, 1))
        for missing in (('D',), ('z',), ('delta_bias',), ('D', 'z', 'delta_bias')):
            few = {name: x for name, x in args.items() if name not in missing}
            with self.subTest(missing=missing):
                self.assertAgree(run(selective_scan_fn, few), run(selective_scan_ref, few), 1e-12)

    def test_periods_are_sequences_of_their_own(self):
        args = make((2, 19, 8, 90, 1), torch.float32)
        folded = selective_scan_fn(**args, delta_softplus=True, period=40)
        tokens = ('u', 'delta', 'B', 'C', 'z')
        parts = [selective_scan_fn(**{name: x[..., i:i + 40] if name in tokens else x
                                      for name, x in args.items()}, delta_softplus=True)
                 for i in (0, 40, 80)]
        self.assertTrue(torch.equal(folded, torch.cat(parts, dim=2)))

    def test_layouts_do_not_matter(self):
        args = make((3, 35, 8, 50, 1), torch.float32)
        expected = run(selective_scan_fn, args)
        layouts = {'channels last': lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
                   'every second': lambda x: x.repeat_interleave(2, dim=2)[:, :, ::2],
                   'batch innermost': lambda x: x.permute(1, 2, 0).contiguous().permute(2, 0, 1)}
        for name, layout in layouts.items():
            with self.subTest(name):
                other = {key: layout(x) if x.dim() == 3 else x for key, x in args.items()}
                torch.manual_seed(1)
                got = selective_scan_fn(**learning(other), delta_softplus=True)
                self.assertTrue(torch.equal(got, expected['y']))
                self.assertAgree(run(selective_scan_fn, other), expected, 0)

    def test_an_expanded_tensor_may_learn(self):
        args = make((3, 4, 2, 9, 1))
        row = args['u'][:1].clone().requires_grad_()
        y = selective_scan_fn(**{**args, 'u': row.expand(3, -1, -1)})
        y.sum().backward()
        other = args['u'][:1].clone().requires_grad_()
        selective_scan_ref(**{**args, 'u': other.expand(3, -1, -1)}).sum().backward()
        torch.testing.assert_close(row.grad, other.grad)

    def test_constant_b_and_c(self):
        args = make((2, 6, 4, 35, 1))
        for names in (('B',), ('C',), ('B', 'C')):
            with self.subTest(names):
                constant = {**args, **{name: torch.randn(6, 4).double() for name in names}}
                self.assertAgree(run(selective_scan_fn, constant),
                                 run(selective_scan_ref, constant), 1e-12)

    def test_mixed_types_are_computed_in_the_widest(self):
        args = make((2, 5, 3, 9, 1), torch.float32)
        mixed = {**args, 'u': args['u'].bfloat16(), 'z': args['z'].half()}
        y, last = selective_scan_fn(**mixed, return_last_state=True)
        self.assertEqual((y.dtype, last.dtype), (torch.bfloat16, torch.float32))
        exact = {name: x.double() for name, x in mixed.items()}
        self.assertAgree({'y': y}, {'y': selective_scan_ref(**exact)}, 2**-7)

    def test_nothing_gives_nothing(self):
        for shape in ((2, 5, 3, 0, 1), (0, 5, 3, 7, 1), (2, 0, 3, 7, 1)):
            args = make(shape, torch.float32)
            y, last = selective_scan_fn(**args, return_last_state=True)
            self.assertEqual((y.shape, last.abs().sum()), (args['u'].shape, 0))
            for gradient in run(selective_scan_fn, args).values():
                self.assertEqual(gradient.abs().sum(), 0)

    def test_what_is_wrong_is_named(self):
        args = make((2, 6, 4, 9, 1), torch.float32)
        zeros = torch.zeros
        wrong = [
            ('u', zeros(6, 9), r'u: expected \[batch, channels, tokens\], got shape \[6, 9\]'),
            ('delta', zeros(2, 6, 8), r'delta: expected shape \[2, 6, 9\], got \[2, 6, 8\]'),
            ('A', zeros(5, 4), r'A: expected shape \[6, 4\], got \[5, 4\]'),
            ('A', zeros(6, 4, dtype=torch.complex64), 'A: complex numbers are not supported'),
            ('B', zeros(2, 3, 9), r'B: expected shape \[2, 4, 9\], got \[2, 3, 9\]'),
            ('B', zeros(2, 4, 4, 9), 'B: expected groups that divide 6 channels, got 4'),
            ('B', zeros(6, 3), r'B: expected shape \[6, 4\] of a constant, got \[6, 3\]'),
            ('C', zeros(9), r'C: expected \[batch, states, tokens\].* got shape \[9\]'),
            ('C', zeros(2, 4, 9).long(), 'C: expected real floating-point numbers, got torch.int'),
            ('D', zeros(5), r'D: expected shape \[6\], got \[5\]'),
            ('z', zeros(1, 6, 9), r'z: expected shape \[2, 6, 9\], got \[1, 6, 9\]'),
            ('delta_bias', zeros(6, 1), r'delta_bias: expected shape \[6\], got \[6, 1\]'),
            ('delta_bias', 1.0, 'delta_bias: expected a tensor, got float'),
            ('period', 0, 'period: expected at least 1, got 0'),
        ]
        for name, value, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                selective_scan_fn(**{**args, name: value})
        with self.assertRaisesRegex(ValueError, 'A: expected 1 to 1024 states, got 0'):
            selective_scan_fn(**{**args, 'A': zeros(6, 0), 'B': zeros(2, 0, 9),
                                 'C': zeros(2, 0, 9)})

    def test_the_number_of_threads_does_not_matter(self):
        args = make((3, 150, 8, 70, 1), torch.float32)
        before, results = torch.get_num_threads(), []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(run(selective_scan_fn, args))
        torch.set_num_threads(before)
        self.assertAgree(*results, 0)

    def test_only_the_arguments_are_saved_and_without_gradients_nothing(self):
        args = learning(make((2, 5, 3, 40, 1), torch.float32))
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda x: x):
            with torch.no_grad():
                self.assertIsNone(selective_scan_fn(**args).grad_fn)
            self.assertEqual(saved, [])
            selective_scan_fn(**args)
        given = {x.data_ptr() for x in args.values()}
        self.assertEqual({x.data_ptr() for x in saved}, given)

    def test_second_gradients_are_refused(self):
        u = torch.randn(1, 2, 5, requires_grad=True)
        shared = torch.rand(1, 3, 5)
        y = selective_scan_fn(u, torch.rand(1, 2, 5), -torch.rand(2, 3), shared, shared)
        first, = torch.autograd.grad(y.square().sum(), u, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, 'gradients of gradients'):
            first.sum().backward()

    def test_many_threads_may_scan_at_once(self):
        args = make((3, 40, 8, 70, 1), torch.float32)
        expected = run(selective_scan_fn, args)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for y in pool.map(lambda _: selective_scan_fn(
                    **learning(args), delta_softplus=True), range(64)):
                self.assertTrue(torch.equal(y, expected['y']))

    def test_it_compiles_whole(self):
        args = make((2, 6, 4, 9, 1), torch.float32)

        def double(**args):
            return 2 * selective_scan_fn(**args, delta_softplus=True, period=4)

        compiled = torch.compile(double, fullgraph=True, backend='aot_eager')
        results = []
        for function in (double, compiled):
            learns = learning(args)
            function(**learns).sum().backward()
            results.append({name: x.grad for name, x in learns.items()})
        self.assertAgree(*results, 1e-6)

    def test_the_operator_keeps_pytorchs_rules(self):
        args = learning(make((2, 6, 4, 9, 1), torch.float32))
        order = [args[name] for name in ('u', 'delta', 'A', 'B', 'C', 'D', 'z', 'delta_bias')]
        torch.library.opcheck(torch.ops.sfmamba_scan.selective_scan.default, (*order, True, 0))
        torch.library.opcheck(torch.ops.sfmamba_scan.selective_scan.default,
                              (*order[:5], None, None, None, False, 4))


if __name__ == '__main__':
    unittest.main()
