import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import benchmark_load


def row(times=2, arrivals='bursts', load=4, goodput=0.5, late=0.01, p99=0.9):
    return {'deadline_batch_times': times, 'arrivals': arrivals, 'load': load,
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
            'sfmamba_items_total{model="other",outcome="ok"} 3\n'
            'sfmamba_items_total{model="mine",outcome="ok"} 5\n'
            'sfmamba_items_total{model="mine",outcome="error"} 7\n'
            'sfmamba_items_total_more{model="mine",outcome="ok"} 11\n')

    def test_adds_the_series_with_all_labels(self):
        total = benchmark_load.total
        self.assertEqual(total(self.TEXT, 'items_total', model='mine', outcome='ok'), 5)
        self.assertEqual(total(self.TEXT, 'items_total', model='mine'), 12)
        self.assertEqual(total(self.TEXT, 'items_total', model='none'), 0)

    def test_takes_what_was_there_before_away(self):
        before = 'sfmamba_items_total{model="mine",outcome="ok"} 1\n'
        self.assertEqual(benchmark_load.change(before, self.TEXT, 'items_total', model='mine'),
                         11)


class TableTest(unittest.TestCase):
    def test_a_load_has_one_row_of_its_last_run(self):
        lines = benchmark_load.table([row(goodput=0.25), row()])
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[2], '| 2 | bursts | 4x | 0.75 | 0.50 | 1.0 % | 0.90 |')
        self.assertEqual(len({line.count('|') for line in lines}), 1)

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
        benchmark_load.write_model(benchmark_load.parse_args(['a.jpg', *flags]), repository)
        return {path.relative_to(repository).as_posix(): path.read_text()
                for path in repository.rglob('*') if path.is_file()}

    def test_a_model_is_served_with_the_batches_of_the_flag(self):
        source = self.folder / 'model' / '1'
        source.mkdir(parents=True)
        (source / 'config.textproto').write_text('num_classes: 3\n')
        (source / 'labels.txt').write_text('a\n')
        files = self.write('--model', str(source), '--max_batch_size=4')
        self.assertEqual(set(files), {'model/1/config.textproto', 'model/1/labels.txt'})
        self.assertEqual(files['model/1/config.textproto'],
                         'num_classes: 3\nbatching { max_batch_size: 4 }\n')

    def test_a_variant_needs_no_weights(self):
        files = self.write('--variant', 'sf_mamba_t')
        self.assertEqual(set(files), {'model/1/config.textproto'})
        self.assertIn('variant: "sf_mamba_t"', files['model/1/config.textproto'])

    def test_a_model_with_batching_of_its_own_is_refused(self):
        source = self.folder / 'model' / '1'
        source.mkdir(parents=True)
        (source / 'config.textproto').write_text('batching { max_batch_size: 2 }\n')
        with self.assertRaisesRegex(SystemExit, 'no field batching'):
            self.write('--model', str(source))


class ServerTest(unittest.TestCase):
    def test_what_a_server_says_as_it_ends_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            server = pathlib.Path(folder, 'server')
            server.write_text('#!/bin/sh\necho no such variant >&2\nexit 3\n')
            server.chmod(0o755)
            program = (f'import sys; sys.path = {sys.path}; import benchmark_load as b; '
                       f'b.Server(b.parse_args(["a.jpg", "--server_bin={server}", '
                       '"--client_bin=/bin/false"]), "")')
            run = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True)
        self.assertEqual(run.stderr, 'no such variant\nthe server ended with 3\n')


class ArgumentsTest(unittest.TestCase):
    def test_wants_pictures_or_a_table(self):
        with contextlib.redirect_stderr(io.StringIO()) as error, self.assertRaises(SystemExit):
            benchmark_load.parse_args([])
        self.assertIn('pictures', error.getvalue())
        self.assertEqual(benchmark_load.parse_args(['--table', 'x']).table, ['x'])


if __name__ == '__main__':
    unittest.main()
