import contextlib
import io
import pathlib
import tempfile
import unittest

import benchmark_load


def row(mode='latency', times=2, arrivals='bursts', load=4, goodput=0.5, late=0.01, p99=0.9):
    return {'mode': mode, 'deadline_batch_times': times, 'arrivals': arrivals, 'load': load,
            'goodput': goodput, 'late': late, 'p99_of_deadline': p99}


class MostTest(unittest.TestCase):
    def test_nobody_answers_more_than_is_asked_or_than_the_peak(self):
        self.assertEqual(benchmark_load.most('poisson', 0.5, 2), 0.5)
        self.assertEqual(benchmark_load.most('poisson', 4, 2), 1)
        self.assertEqual(benchmark_load.most('bursts', 0.5, 2), 0.5)

    def test_a_burst_can_be_answered_until_its_last_deadline(self):
        self.assertEqual(benchmark_load.most('bursts', 4, 2), 0.75)
        self.assertEqual(benchmark_load.most('bursts', 4, 1), 0.5)
        self.assertEqual(benchmark_load.most('bursts', 4, 10), 1)


class TotalTest(unittest.TestCase):
    TEXT = ('# TYPE sfmamba_items_total counter\n'
            'sfmamba_items_total{model="fixed",outcome="ok"} 3\n'
            'sfmamba_items_total{model="latency",outcome="ok"} 5\n'
            'sfmamba_items_total{model="latency",outcome="error"} 7\n'
            'sfmamba_items_total_more{model="latency",outcome="ok"} 11\n')

    def test_adds_the_series_with_all_labels(self):
        total = benchmark_load.total
        self.assertEqual(total(self.TEXT, 'items_total', model='latency', outcome='ok'), 5)
        self.assertEqual(total(self.TEXT, 'items_total', model='latency'), 12)
        self.assertEqual(total(self.TEXT, 'items_total', model='other'), 0)

    def test_takes_what_was_there_before_away(self):
        before = 'sfmamba_items_total{model="latency",outcome="ok"} 1\n'
        self.assertEqual(benchmark_load.change(before, self.TEXT, 'items_total', model='latency'),
                         11)


class TableTest(unittest.TestCase):
    def test_modes_stand_beside_each_other(self):
        lines = benchmark_load.table([row(), row('fixed', goodput=0.25, late=0.5, p99=1)])
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[2], '| 2 | bursts | 4x | 0.75 | 0.50 | 1.0 % | 0.90 | '
                                   '0.25 | 50.0 % | 1.00 |')
        self.assertEqual(len({line.count('|') for line in lines}), 1)

    def test_what_was_not_measured_is_left_empty(self):
        self.assertIn('| - | - | - | 0.50 |', benchmark_load.table([row('fixed')])[2])

    def test_pieces_come_in_one_order(self):
        rows = [row(load=10), row(load=2), row(arrivals='poisson'), row(times=10)]
        self.assertEqual([line.split(' | ')[:3] for line in benchmark_load.table(rows)[2:]],
                         [['| 10', 'bursts', '4x'], ['| 2', 'poisson', '4x'],
                          ['| 2', 'bursts', '2x'], ['| 2', 'bursts', '10x']])


class ModelsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, *flags):
        repository = self.folder / 'repository'
        benchmark_load.write_models(benchmark_load.parse_args(['a.jpg', *flags]), repository)
        return {path.relative_to(repository).as_posix(): path.read_text()
                for path in repository.rglob('*') if path.is_file()}

    def test_a_model_is_served_once_for_each_mode(self):
        source = self.folder / 'model' / '1'
        source.mkdir(parents=True)
        (source / 'config.textproto').write_text('num_classes: 3\ndefault_for_task: true\n')
        (source / 'labels.txt').write_text('a\n')
        files = self.write('--model', str(source), '--max_batch_size=4')
        self.assertEqual(set(files), {f'{mode}/1/{name}' for mode in ('latency', 'fixed')
                                      for name in ('config.textproto', 'labels.txt')})
        self.assertEqual(files['fixed/1/config.textproto'],
                         'num_classes: 3\nbatching { max_batch_size: 4 mode: FIXED }\n')

    def test_a_variant_needs_no_weights(self):
        files = self.write('--variant', 'sf_mamba_t', '--modes', 'latency')
        self.assertEqual(set(files), {'latency/1/config.textproto'})
        self.assertIn('variant: "sf_mamba_t"', files['latency/1/config.textproto'])

    def test_a_model_with_batching_of_its_own_is_refused(self):
        source = self.folder / 'model' / '1'
        source.mkdir(parents=True)
        (source / 'config.textproto').write_text('batching { max_batch_size: 2 }\n')
        with self.assertRaisesRegex(SystemExit, 'no field batching'):
            self.write('--model', str(source))


class ArgumentsTest(unittest.TestCase):
    def test_wants_pictures_or_a_table(self):
        with contextlib.redirect_stderr(io.StringIO()) as error, self.assertRaises(SystemExit):
            benchmark_load.parse_args([])
        self.assertIn('pictures', error.getvalue())
        self.assertEqual(benchmark_load.parse_args(['--table', 'x']).table, ['x'])


if __name__ == '__main__':
    unittest.main()
