"""What gpu.py can show without a GPU: its mixer is MambaVision's, its report says what was
measured. Run with PyTorch: python gpu_test.py"""

import unittest

import gpu  # Puts ../pytorch on the path.
import deterministic
import sf_mamba
import torch


class MixerTest(unittest.TestCase):
    def test_channel_major_is_the_reference(self):
        torch.manual_seed(1)
        mixer = sf_mamba.MambaMixer(64).eval()
        x = torch.randn(3, 7, 64)
        with torch.inference_mode():
            expected = mixer(x)
            actual = gpu.channel_major_forward(gpu.by_definition)(mixer, x)
            stand_in = gpu.channel_major_forward(gpu.without_scan)(mixer, x)
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4)
        self.assertEqual(stand_in.shape, expected.shape)

    def test_network_runs_with_any_scan(self):
        forward = sf_mamba.MambaMixer.forward
        images = deterministic.deterministic_input(1, 3, 64, 64)
        try:
            for tokens in ('data', 'none'):
                with torch.inference_mode():
                    logits = gpu.network('T', tokens, gpu.without_scan)(images)
                self.assertEqual(logits.shape, (1, 1000))
        finally:
            sf_mamba.MambaMixer.forward = forward


class EngineLinesTest(unittest.TestCase):
    model = {'benchmark': 'engine', 'variant': 'sf_mamba_t', 'precision': 'bf16', 'batch': 128,
             'side': 224, 'full_windows': False, 'fold_rows': 0, 'note': '',
             'images_per_second': 30000.0}

    def test_finds_the_models_figure(self):
        others = [{**self.model, 'batch': 1}, {**self.model, 'full_windows': True},
                  {**self.model, 'fold_rows': 4}, {**self.model, 'note': 'OOM'}]
        self.assertEqual(gpu.engine_model(others + [self.model], 'sf_mamba_t', 'bf16', 128), 30000)
        self.assertIsNone(gpu.engine_model(others, 'sf_mamba_t', 'bf16', 128))

    def test_takes_the_fastest_plan_of_a_scan(self):
        def line(batch, us, plan):
            return {'benchmark': 'scan', 'case': 'T stage 3', 'kernel': 'lane', 'plan': plan,
                    'shape': f'bf16 160 channels 8 states {batch} x 198', 'us': us}
        paper = {**line(128, 2, 'd'), 'kernel': "the paper's, in buckets"}
        lines = [line(128, 20, 'a'), line(128, 15, 'b'), line(8, 1, 'c'), paper]
        self.assertEqual(gpu.engine_scan(lines, 'T stage 3', 128), (15, 'lane, b'))
        self.assertIsNone(gpu.engine_scan(lines, 'T stage 4', 128))


class ReportTest(unittest.TestCase):
    def report(self, **changes):
        return {'device': 'a GPU', 'torch': '2.11', 'has_mamba_ssm': False,
                'mamba_ssm': 'No module', 'scans': [],
                'models': [{'variant': 'sf_mamba_t', 'dtype': 'bf16', 'batch': 128,
                            'pytorch': 10000.0, 'setting': 'graph', 'engine': 30000.0}], **changes}

    def test_says_that_mamba_ssm_is_missing(self):
        text = gpu.markdown(self.report())
        self.assertIn('no scan at all (mamba-ssm is missing: No module)', text)
        self.assertIn('| sf_mamba_t | bf16 | 128 | 10000 | graph | 30000 | 3.00x |', text)

    def test_what_did_not_fit_has_no_figure(self):
        row = {**self.report()['models'][0], 'pytorch': None, 'setting': 'none fits'}
        self.assertIn('| 128 | - | none fits | 30000 | - |', gpu.markdown(self.report(models=[row])))
        row = {**self.report()['models'][0], 'engine': None}
        self.assertIn('| 128 | 10000 | graph | - | - |', gpu.markdown(self.report(models=[row])))

    def test_scans_stand_side_by_side(self):
        scan = {'name': 'T stage 3', 'shape': (128, 160, 198), 'alone': 100.0,
                'with copies': 150.0, 'engine': 20.0, 'plan': 'lane'}
        text = gpu.markdown(self.report(has_mamba_ssm=True, mamba_ssm='2.3', scans=[
            scan, {**scan, 'engine': None}]))
        self.assertIn('| T stage 3 | 128 x 160 x 198 | 100.00 | 150.00 | 20.00 | lane | 5.00x | '
                      '7.50x |', text)
        self.assertIn('150.00 | - | - | - | - |', text)
        self.assertIn('PyTorch with mamba-ssm 2.3', text)

    def test_quantiles(self):
        self.assertEqual(gpu.quantiles([5, 1, 4, 2, 3]), {'p10': 1, 'median': 3, 'p90': 5})


if __name__ == '__main__':
    unittest.main()
