"""Tests what gpu.md contains for a few lines of JSON."""

import unittest

import engine_tables
import parts
import report

SETTING = {'benchmark': 'setting', 'clock_mhz': 1980, 'copy_bytes_per_s': 4e12,
           'device': 'NVIDIA H200', 'multiprocessors': 132, 'driver': '580.1', 'build': 'abc'}


def engine(**changes):
    return {'benchmark': 'engine', 'group': 'batch', 'variant': 'sf_mamba_t',
            'precision': 'bf16', 'batch': 128, 'side': 224, 'club': False, 'fold_rows': 0,
            'slots': 2, 'tuned': False, 'images_per_second': 25000.0, 'ms': 5.0, 'ms_p10': 4.9,
            'ms_p90': 5.2, 'device_ms': 4.0, 'device_ms_p10': 3.9, 'device_ms_p90': 4.1,
            'padded_images': 128, 'device_mib': 900, 'note': '', 'uncaptured': '',
            **changes}


def scan(**changes):
    return {'benchmark': 'scan', 'group': 'paper', 'case': 'paper T stage 4',
            'shape': 'bf16 640 channels 8 states 128 x 49', 'sequences': 128, 'kernel': 'fold',
            'plan': '2 items', 'rows': 128, 'us': 40.0, 'us_p10': 39.0, 'us_p90': 41.0,
            'us_cold': 45.0, 'ns_per_value': 0.01, 'share_of_bound': 0.5, **changes}


def clock(when, **changes):
    return {'benchmark': 'clocks', 'when': when, 'sm_mhz': 1980, 'memory_mhz': 3201,
            'celsius': 50, 'watts': 300, 'reasons': 0, **changes}


def part(name, **changes):
    return {'benchmark': 'part', 'part': name, 'status': 'passed', 'note': '', 'seconds': 9.0,
            **changes}


class PageTest(unittest.TestCase):
    def test_an_empty_page_says_so_in_every_section(self):
        text = report.render([], {part.name: 'why' for part in parts.PARTS})
        for words in ('The setting was not measured', 'No test was run', 'could not be read',
                      'None was measured', 'It was not measured', 'Nothing was tuned',
                      'PyTorch was not measured', 'None was profiled', '- smoke (', ': why'):
            self.assertIn(words, text)

    def test_a_line_that_nobody_expected_spoils_one_section(self):
        text = report.render([SETTING, {'benchmark': 'pass'}, engine()], {})
        self.assertIn('## passes\n\nThis section could not be written: KeyError', text)
        self.assertIn('| sf_mamba_t, bf16 |', text)

    def test_the_header_is_the_setting(self):
        peer = {'benchmark': 'peer_setting', 'torch': '2.11.0', 'cuda': '13.0', 'cudnn': '9.19',
                'mamba_ssm': '2.3', 'mamba_ssm_missing': ''}
        text = report.header([SETTING, peer])
        self.assertTrue(text.startswith('# NVIDIA H200\n'))
        self.assertIn('copies 4.00 TB/s', text)
        self.assertIn('torch 2.11.0, CUDA 13.0, cuDNN 9.19.', text)

    def test_what_ran_and_what_did_not(self):
        text = report.what_ran([part('smoke'), part('smoke', status='failed', note='models: no')],
                               {'peers': 'no time'})
        self.assertIn('| smoke | models: no | 9 |', text)
        self.assertEqual(text.count('| smoke |'), 1)
        self.assertIn('- peers (PyTorch and mamba-ssm beside them): no time', text)
        self.assertIn('Everything was run.', report.what_ran([part('smoke')], {}))


class CorrectnessTest(unittest.TestCase):
    def test_failures_have_names(self):
        tests = {'benchmark': 'tests', 'part': 'smoke', 'step': 'models', 'passed': 7,
                 'failed': ['A.b'], 'crashed': ['C.d'], 'skipped': ['E.f', 'E.g'], 'cut': 'H.i',
                 'findings': None}
        text = report.correctness([
            tests, {**tests, 'part': 'memcheck', 'step': 'memcheck', 'failed': [], 'crashed': [],
                    'cut': '', 'findings': 0}])
        self.assertIn('| smoke: models | 7 | 3 | 2 | - |', text)
        self.assertIn('| memcheck | 7 | 0 | 2 | 0 |', text)
        for line in ('- smoke: models: A.b\n', '- smoke: models: C.d (crashed)\n',
                     '- smoke: models: H.i (running at the limit)'):
            self.assertIn(line, text)

    def test_many_failures_are_counted(self):
        tests = {'benchmark': 'tests', 'part': 'a', 'step': 'a', 'passed': 0, 'skipped': [],
                 'failed': [f'A.{i}' for i in range(50)], 'crashed': [], 'cut': '',
                 'findings': None}
        self.assertTrue(report.correctness([tests]).endswith('- a: A.19\n- and 30 more'))


class ClocksTest(unittest.TestCase):
    def test_a_part_that_was_throttled_is_named(self):
        text = report.clocks([clock('before', sm_mhz=345), clock('after'), part('smoke'),
                              clock('before'), clock('after', reasons=0x24, watts=700),
                              part('engines')])
        self.assertIn('before SM 345 to 1980 MHz, memory 3201 MHz; after SM 1980 MHz', text)
        self.assertIn('at most 50 C and 700 W', text)
        self.assertIn('Throttled: engines (heat), engines (power cap).', text)

    def test_rest_is_no_throttling(self):
        self.assertIn('Never throttled.', report.clocks([clock('after', reasons=1)]))


class EnginesTest(unittest.TestCase):
    def test_slots_stand_beside_the_paper(self):
        text = engine_tables.render([
            engine(), engine(slots=3, images_per_second=26000.0),
            engine(variant='mamba_vision_t', device_ms=5.0, images_per_second=20000.0),
            engine(tuned=True, images_per_second=26500.0)])
        self.assertIn('| sf_mamba_t | 32000 | - | - | 25000 | 26000 | - | 26500 | 7600 |', text)

    def test_the_papers_gain_stands_beside_the_same_question(self):
        peer = {'benchmark': 'peer_model', 'variant': 'mamba_vision_t', 'precision': 'bf16',
                'batch': 128, 'setting': 'graph', 'note': '', 'images_per_second': 12500.0}
        text = engine_tables.render([
            engine(), peer, {**peer, 'setting': 'eager', 'images_per_second': 5000.0},
            {**peer, 'setting': 'compile', 'note': 'no', 'images_per_second': None}])
        self.assertIn('| sf_mamba_t | - | 0 | 2.00x | 1.14x | - | 0.99x |', text)

    def test_what_replays_without_pauses_is_compared_with_the_like(self):
        lines = []
        for number, (own, other, peer) in enumerate(
                [(4.0, 3.96, 8.0), (4.1, 4.1, 8.2), (4.0, 4.04, 8.4)], 1):
            lines += [engine(sustained_ms=own, overlapped_images_per_second=33000.0, round=number,
                             slots=2),
                      engine(sustained_ms=other, variant='mamba_vision_t', round=number, slots=2),
                      {'benchmark': 'peer_sustained', 'variant': 'mamba_vision_t', 'note': '',
                       'images_per_second': 128e3 / peer}]
        text = engine_tables.render(lines)
        self.assertIn('| sf_mamba_t | 32000 | 32000 | 33000 | 25000 |', text)
        self.assertIn('| sf_mamba_t | 2.000 (2.000 to 2.100) | 3 | - | 1.14x | '
                      '1.000 (0.990 to 1.010) | 0.99x |', text)
        # A peer that is measured a second time has no line of ours next to it.
        self.assertEqual(len(engine_tables.beside_peers(lines + lines[-1:])['sf_mamba_t']), 3)

    def test_neighbours_of_a_round_are_compared(self):
        lines = []
        for number, (own, other) in enumerate([(99, 100), (198, 200), (101, 100)], 1):
            lines += [engine(round=number, images_per_second=own, sm_mhz=1700 + number),
                      engine(round=number, images_per_second=other, sm_mhz=1800,
                             variant='mamba_vision_t')]
        text = engine_tables.render(lines)
        self.assertIn('| sf_mamba_t | bf16 | 128 | 2 | 3 | 0.990 (0.990 to 1.010) | '
                      '1.000 (1.000 to 1.000) | - | 1701 to 1800 |', text)
        self.assertNotIn('in turn', engine_tables.render(lines[:4]))

    def test_batches_stand_beside_the_paper(self):
        text = engine_tables.render([engine(), engine(batch=1, images_per_second=900.0,
                                                      device_ms=1.0)])
        self.assertIn('| sf_mamba_t, bf16 | 900 | - | - | 25000 | - | - | - |', text)
        self.assertIn('| GPU alone | 1000 | - | - | 32000 | - | - | - |', text)
        self.assertIn('| sf_mamba_t, the paper | 126 | - | 3962 | 7600 | 7801 | 8009 | 8190 |',
                      text)

    def test_latency_says_who_is_waited_for(self):
        text = engine_tables.render([engine(), engine(batch=1, images_per_second=240.0),
                                     engine(batch=8, device_ms=0)])
        self.assertIn('| sf_mamba_t | bf16 | 128 | 5.000 (4.900, 5.200) | 4.000 | host | 900 |',
                      text)
        self.assertIn('| sf_mamba_t | bf16 | 1 | 5.000 (4.900, 5.200) | 4.000 | GPU | 900 |', text)
        self.assertIn('| sf_mamba_t | bf16 | 8 | 5.000 (4.900, 5.200) | - | - | 900 |', text)

    def test_resolutions_and_what_does_not_fit(self):
        text = engine_tables.render([
            engine(group='resolution', batch=32, side=896, club=True, images_per_second=900.0),
            engine(group='resolution', batch=32, side=3584, note='OOM')])
        self.assertIn('| sf_mamba_t, batch 32 | - | - | - | - | OOM |', text)
        self.assertIn('| sf_mamba_t, batch 32, club | - | - | 900 | - | - |', text)
        self.assertIn('| sf_mamba_t, batch 32, club, the paper | - | - | 427 | 105 | 27 |', text)
        self.assertIn('| mamba_vision_t, batch 1, the paper | 119 | 121 | 120 | 48 | 5 |', text)

    def test_folds(self):
        mine = dict(group='fold', variant='mamba_vision_t', tuned=True)
        text = engine_tables.render([
            engine(**mine, fold_rows=128, images_per_second=20000.0),
            engine(**mine, fold_rows=4, images_per_second=21000.0), engine(**mine)])
        self.assertIn('| 128: no folding | 20000 | 1.00x | 32000 | 6989 | 1.00x |', text)
        self.assertIn('| 4 | 21000 | 1.05x | 32000 | 7641 | 1.09x |', text)
        self.assertIn("| adaptive: the table's choice | 25000 | 1.25x |", text)

    def test_errors_are_told(self):
        text = engine_tables.render([engine(note='INTERNAL: no'),
                                     engine(batch=1, uncaptured='INTERNAL: why')])
        self.assertIn('- sf_mamba_t, bf16, batch 128, 224 pixels, 2 slots: INTERNAL: no', text)
        self.assertIn('batch 1, 224 pixels, 2 slots: a graph could not be recorded: INTERNAL: why',
                      text)


class ScansTest(unittest.TestCase):
    def test_each_fold_stands_beside_the_paper(self):
        text = report.scans([scan(), scan(rows=4, us=25.0, plan='a'),
                             scan(rows=4, us=20.0, plan='b'),
                             scan(kernel='lane', rows=0, us=10.0)])
        self.assertIn('| paper T stage 4: 128 x 49, 640 channels, B1 = | 1 | 2 |', text)
        self.assertIn('| the paper | 0.2380 (1.74x) |', text)
        self.assertIn('| fold | - | - | 20.00 (2.00x) | - | - | - | - | 40.00 (1.00x) |', text)
        self.assertIn('| lane | - | - | - | - | - | - | - | 10.00 (1.00x) |', text)

    def test_models_have_a_row_each(self):
        text = report.scans([scan(group='model', case='T stage 3', kernel='lane')])
        self.assertIn('| T stage 3 | bf16 640 channels 8 states 128 x 49 | lane | 2 items | 40.00 '
                      '(39.00, 41.00) | 45.00 | 0.0100 | 50 % |', text)

    def test_the_fold_table_has_its_gains(self):
        fold = {'benchmark': 'fold', 'shape': 'bf16 160 channels 8 states 128 x 198',
                'kernel': 'lane', 'plan': '4 lanes, B1 = 64', 'us': 10.0,
                'default_plan': 'lane, 2 lanes', 'default_us': 20.0, 'unfolded_us': 15.0}
        text = report.fold_table([fold, {**fold, 'shape': 'fp16 1', 'default_us': 10.0}])
        self.assertIn('2 shapes; tuning gains 41.4 %', text)
        self.assertIn('| bf16 160 channels 8 states 128 x 198 | lane, 4 lanes, B1 = 64 | 10.00 | '
                      '20.00 | 2.00x | 1.50x |', text)
        self.assertNotIn('fp16', text)


class PeersTest(unittest.TestCase):
    def model(self, setting, ms, note=''):
        return {'benchmark': 'peer_model', 'variant': 'sf_mamba_t', 'precision': 'bf16',
                'batch': 128, 'setting': setting, 'ms': ms, 'note': note,
                'images_per_second': 128 / ms * 1e3 if ms else None}

    def setting(self, missing):
        return {'benchmark': 'peer_setting', 'torch': '2.11.0', 'cuda': '13.0', 'cudnn': '9.19',
                'mamba_ssm': '' if missing else '2.3', 'mamba_ssm_missing': missing}

    def test_the_fastest_setting_counts(self):
        text = report.peers([self.setting(''), engine(), self.model('eager', 20.0),
                             self.model('graph', 10.0), self.model('compile', 16.0),
                             self.model('graph channels_last', None, 'out of memory')])
        self.assertIn('mamba-ssm 2.3', text)
        self.assertIn('| sf_mamba_t | bf16 | 128 | 12800 | graph | 8000 | 32000 | 25000 | 2.50x | '
                      '1.95x |', text)

    def test_scans_of_either_side_have_a_row(self):
        peer = {'benchmark': 'peer_scan', 'case': 'paper T stage 4', 'what': 'alone', 'us': 80.0,
                'us_cold': 90.0}
        bucket = "our reproduction of the paper's bucketed block scan"
        text = report.peers([
            self.setting('No module'), peer, {**peer, 'what': 'with copies', 'us': 120.0},
            scan(), scan(kernel=bucket, us=60.0, rows=4), scan(kernel=bucket, us=70.0, rows=128),
            scan(case='T stage 3', group='model', us=20.0)])
        self.assertIn('none at all, as mamba-ssm is missing (No module)', text)
        self.assertIn('| paper T stage 4 | 80.00 (90.00) | 120.00 (90.00) | 70.00 (45.00) | '
                      '60.00 (45.00) | 40.00 (45.00) | fold, 2 items | 2.00x | 3.00x |', text)
        self.assertIn('| T stage 3 | - | - | - | - | 20.00 (45.00) | fold, 2 items | - | - |', text)


class KernelsTest(unittest.TestCase):
    def kernel(self, name, us, bytes, of=1):
        return {'benchmark': 'kernel', 'variant': 'sf_mamba_t', 'precision': 'bf16',
                'batch': 128, 'pass': of, 'id': 0, 'name': name, 'us': us, 'bytes': bytes}

    def test_the_slowest_stand_beside_a_copy(self):
        text = report.kernels([
            SETTING, self.kernel('old', 9, 0), self.kernel('void f::Scan<8>(int)', 10.0, 2e7, 2),
            self.kernel('void f::Scan<4>(int)', 10.0, 2e7, 2), self.kernel('gemm', 1.0, 4e6, 2)])
        self.assertIn('sf_mamba_t, bf16, batch 128: 3 launches, 0.02 ms, memory alone 11.00 us; 1 '
                      'launches below 1.5 us', text)
        self.assertIn('| Scan | 2 | 20.00 | 95.2 % | 40 | 10.00 | 50 % |', text)
        self.assertNotIn('old', text)

    def test_without_a_setting_there_is_no_bound(self):
        self.assertIn('| gemm | 1 | 1.00 | 100.0 % | 4 | - | - |',
                      report.kernels([self.kernel('gemm', 1.0, 4e6)]))

    def test_passes(self):
        line = {'benchmark': 'pass', 'kernel': 'LayerNorm', 'tokens': 25344, 'channels': 320,
                'mib': 41.0, 'us': 20.0, 'share_of_copy': 0.5, 'us_cold': 40.0,
                'share_of_copy_cold': 0.25}
        self.assertIn('| LayerNorm | 25344 x 320 | 41.0 | 20.00 | 50 % | 40.00 | 25 % |',
                      report.passes([line]))


if __name__ == '__main__':
    unittest.main()
