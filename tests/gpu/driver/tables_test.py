"""Tests what the page says about the server, the ladder and attention. The ladder measures
MambaVision-T in PyTorch with the paper's optimisations, step by step.
"""

import unittest

import report
import server_tables
import torch_tables


def load(case, **fields):
    return {'benchmark': 'server_load', 'step': case.split(' ')[0], 'case': case,
            'images_per_second': 27000.0, 'goodput': 27000.0, 'rate': 0, 'images_per_request': 1,
            'p50_ms': 30.0, 'p99_ms': 45.5, 'mean_batch_size': 120.25, 'in_time': 1, 'late': 3,
            'failed': 0, 'codes': {'OK': 5}, 'threads_us': {'batch': 60.5, 'decode': 20.0},
            'server_us': 250.4, **fields}


def step(name, status='passed'):
    return {'benchmark': 'server_step', 'step': name, 'status': status, 'seconds': 1.0}


class ServerTest(unittest.TestCase):
    def test_it_says_that_nothing_was_measured(self):
        self.assertIn('It was not measured.', server_tables.render([]))

    def test_rates_stand_beside_the_engines(self):
        engine = {'benchmark': 'engine', 'variant': 'sf_mamba_t', 'precision': 'bf16',
                  'batch': 128, 'sustained_ms': 4.0}
        text = server_tables.render([engine, load('uint8 tensors'), step('uint8')])
        self.assertIn('| uint8 tensors | - | 27000 | 84 % | 120.2 | 30.00 | 45.50 | 250 |', text)
        self.assertIn('| uint8 tensors | batch 60.5, decode 20.0 |', text)

    def test_an_overload_stands_beside_the_peak(self):
        text = server_tables.render([
            load('uint8 tensors'), load('overload 10 times', rate=270000.0, goodput=24300.0,
                                        codes={'OK': 2, 'RESOURCE_EXHAUSTED': 9}),
            step('overload')])
        self.assertIn('| overload 10 times | 270000 | 24300 | 90 % | 3 | 45.5 | OK 2, '
                      'RESOURCE_EXHAUSTED 9 |', text)

    def test_single_figures_are_sentences(self):
        text = server_tables.render([
            {'benchmark': 'server_ready', 'seconds': 31.25, 'device': 'NVIDIA H100', 'slots': 3,
             'max_batch_size': 128},
            {'benchmark': 'server_answers', 'pictures': 17, 'deviation': 0.0213, 'same_first': 16},
            {'benchmark': 'server_models', 'pictures': 17, 'deviation': 0.001, 'same_first': 17,
             'ready_seconds': {'cuda': 12.34, 'cpu': 0.9}},
            {'benchmark': 'server_reload', 'loads': 5, 'load_seconds': [9.0, 12.5], 'failed': 0,
             'p99_ms': 20.0},
            {'benchmark': 'server_stop', 'code': 0, 'seconds': 1.5},
            {'benchmark': 'server_ceiling', 'code': 0, 'text': 'echo 100000/s'},
            step('ready'), step('fp32', 'ServerError: it hung')])
        for part in ('3 slots on NVIDIA H100: READY after 31.2 s.',
                     'The default models are READY on cuda after 12.3 s.', '16 of 17 pictures',
                     '5 times a second model was loaded, in 12.5 s at most', 'ended with 0 in 1.5',
                     '- fp32: ServerError: it hung', 'echo 100000/s'):
            self.assertIn(part, text)
        self.assertNotIn('- ready', text)


class TorchTest(unittest.TestCase):
    def rung(self, name, round, speed):
        return {'benchmark': 'ladder', 'step': name, 'setting': 'eager', 'round': round,
                'images_per_second': speed, 'note': ''}

    def test_a_step_is_compared_within_its_round(self):
        lines = [{'benchmark': 'ladder_setting', 'mamba_ssm': '2.3'}]
        for round, base in enumerate((10000, 11000, 12000), 1):
            lines += [self.rung('mamba-ssm', round, base),
                      self.rung('our kernels', round, base * (1.1 + round / 1000))]
        text = torch_tables.ladder(lines)
        self.assertIn('| mamba-ssm | eager | 3 | 11000 | 1.000 (1.000 to 1.000) | 6662 | 1.00x |',
                      text)
        self.assertIn('| our kernels | eager | 3 | 12122 | 1.102 (1.101 to 1.103) | 6989 | 1.05x |',
                      text)
        self.assertNotIn('missing', text)
        self.assertIn('mamba-ssm was missing', torch_tables.ladder(
            [{**lines[0], 'mamba_ssm': ''}, *lines[1:]]))
        self.assertEqual(torch_tables.ladder([]), '')

    def test_backends_stand_beside_each_other(self):
        line = {'benchmark': 'sdpa', 'case': 'T stage 3', 'note': ''}
        text = torch_tables.attention([{**line, 'backend': 'chosen', 'us': 50.0},
                                       {**line, 'backend': 'MATH', 'us': None}])
        self.assertIn('| case | chosen | MATH |', text)
        self.assertIn('| T stage 3 | 50.00 | - |', text)
        self.assertEqual(torch_tables.attention([]), '')

    def test_the_page_has_them(self):
        text = report.render([step('ready'), self.rung('mamba-ssm', 1, 1.0)], {})
        self.assertNotIn('could not be written', text)
        self.assertIn("## The paper's ladder", text)


if __name__ == '__main__':
    unittest.main()
