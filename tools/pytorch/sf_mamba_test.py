"""Tests sf_mamba.py. Run with: python -m unittest sf_mamba_test (in this folder)."""

import unittest
from unittest import mock

import torch

import deterministic
import sf_mamba

# Model X is small, but has padding, several windows, odd depths and layer scale.
X = dict(dim=16, in_dim=8, depths=(1, 1, 5, 3), num_heads=(4, 8), windows=(4, 2),
         layer_scale=True, num_classes=10)
LOGITS = {
    ('none', 'after_first_attn'): [
        [-1.346272, 1.200347, 1.614334, -2.344629, 0.195328,
         0.212152, -0.187681, 0.805755, 0.124909, 0.345907],
        [-1.116108, 1.187059, 1.656923, -2.142867, 0.466773,
         0.118257, -0.005736, 0.551676, -0.146250, 0.445125]],
    ('data', 'after_first_attn'): [
        [-1.210109, 1.498856, 2.115571, -2.633697, -0.017992,
         0.329917, -0.240786, 0.624643, 0.401914, 0.400423],
        [-1.014018, 1.444564, 2.069812, -2.456361, 0.313817,
         0.331009, -0.066037, 0.354831, 0.183178, 0.414456]],
    ('data', 'before_attn'): [
        [-1.188170, 1.551860, 2.123030, -2.773193, 0.090986,
         0.236537, -0.155510, 0.665186, 0.321763, 0.290802],
        [-0.992328, 1.512063, 2.061082, -2.572036, 0.447606,
         0.252093, 0.036693, 0.369945, 0.077622, 0.303167]],
    ('data', 'after_attn'): [
        [-1.206383, 1.484425, 2.110265, -2.597836, -0.021116,
         0.362648, -0.243484, 0.629375, 0.387816, 0.357752],
        [-1.024880, 1.424121, 2.081953, -2.435554, 0.309715,
         0.350607, -0.057716, 0.347769, 0.163845, 0.374129]],
    ('learnable', 'after_first_attn'): [
        [-1.662113, 1.485377, 1.605001, -2.558611, 0.173301,
         -0.066263, -0.101249, 1.334514, 0.267236, 0.142177],
        [-1.339981, 1.334092, 1.601627, -2.371823, 0.518184,
         -0.135467, 0.065948, 1.113252, 0.031097, 0.188448]],
    ('learnable', 'before_attn'): [
        [-1.513505, 1.443883, 1.503983, -2.487972, 0.108113,
         0.091614, -0.150396, 1.247932, 0.294657, 0.363777],
        [-1.292170, 1.327031, 1.505127, -2.222508, 0.491132,
         0.009537, 0.099629, 0.976202, -0.032145, 0.416964]],
}
PARAMETERS = {'T': 31_794_248, 'T2': 35_104_008, 'S': 50_140_584, 'B': 97_685_288,
              'L': 227_961_048, 'L2': 241_554_824, 'L3': 739_570_472}


def parameters(model):
    return sum(p.numel() for p in model.parameters())


class SFMambaTest(unittest.TestCase):
    def assertClose(self, actual, expected, atol=1e-4):
        expected = torch.as_tensor(expected, dtype=actual.dtype)
        self.assertLess((actual - expected).abs().max().item(), atol)

    def test_model_x_gives_the_listed_logits(self):
        images = deterministic.deterministic_input(2, 3, 96, 80)
        for (tokens, discard), logits in LOGITS.items():
            with self.subTest(tokens=tokens, discard=discard), torch.no_grad():
                model = sf_mamba.make('custom', tokens=tokens, discard=discard, **X)
                model = deterministic.fill_deterministic(model).eval()
                self.assertClose(model(images), logits)

    def test_sf_mamba_t_gives_the_listed_logits(self):
        model = deterministic.fill_deterministic(sf_mamba.make('T')).eval()
        with torch.no_grad():
            logits = model(deterministic.deterministic_input(2, 3, 224, 224))
        self.assertClose(logits[0, :5], [-1.123564, -2.412306, -9.496569, 3.884048, 5.301793])
        self.assertClose(logits[1, :3], [-1.016190, -3.219367, -9.952835])
        self.assertEqual(logits.argmax(1).tolist(), [22, 22])

    def test_a_mixer_convolves_its_halves_apart(self):
        torch.manual_seed(0)
        mixer, x = sf_mamba.MambaMixer(12), torch.randn(2, 9, 12)
        halves = x.transpose(1, 2).chunk(2, dim=1)
        expected = torch.cat([mixer.conv1d_x(halves[0]), mixer.conv1d_z(halves[1])], dim=1)
        torch.testing.assert_close(mixer.convolve(x), expected.transpose(1, 2))

    def test_attention_in_bf16_is_fp32_s_of_the_rounded_inputs(self):
        torch.manual_seed(0)
        attention = sf_mamba.Attention(32, 4)
        x = torch.randn(2, 9, 32)
        with torch.autocast('cpu', torch.bfloat16):
            qkv = attention.qkv(x).view(2, 9, 3, 4, 8).permute(2, 0, 3, 1, 4)
            inner = torch.nn.functional.scaled_dot_product_attention
            with torch.autocast('cpu', enabled=False):
                expected = inner(*qkv.float()).transpose(1, 2).reshape(2, 9, 32)
            self.assertTrue(torch.equal(attention(x), attention.proj(expected)))
            with torch.autocast('cpu', enabled=False):
                rough = inner(*qkv).transpose(1, 2).reshape(2, 9, 32)
            self.assertFalse(torch.equal(rough.float(), expected))

    def test_variants_have_the_published_sizes(self):
        for variant, count in PARAMETERS.items():
            with self.subTest(variant), torch.device('meta'):
                self.assertEqual(parameters(sf_mamba.make(variant)), count)

    def test_scan_and_its_gradient_agree_with_the_loop(self):
        for package in {None, sf_mamba.sfmamba_scan}:  # Without the package, and with it.
            with self.subTest(package), mock.patch.object(sf_mamba, 'sfmamba_scan', package):
                self.scan_agrees_with_the_loop()

    def scan_agrees_with_the_loop(self):
        torch.manual_seed(0)
        for L in (1, 2, 3, 38):
            S, D, n = 3, 7, sf_mamba.STATES
            args = [torch.randn(S, L, D), torch.randn(S, L, D), -torch.rand(D, n) * 4,
                    torch.randn(S, L, n), torch.randn(S, L, n), torch.randn(D), torch.randn(D)]
            args = [x.double().requires_grad_() for x in args]
            weight = torch.randn(S, L, D).double()
            results = []
            for scan in (sf_mamba.selective_scan, sf_mamba.selective_scan_loop):
                y = scan(*args)
                results.append([y, *torch.autograd.grad((y * weight).sum(), args)])
            for fast, slow in zip(*results):
                self.assertClose(fast, slow, atol=1e-10)


if __name__ == '__main__':
    unittest.main()
