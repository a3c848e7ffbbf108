"""Tests the decisions of run.py and how it runs processes."""

import pathlib
import sys
import tarfile
import tempfile
import time
import unittest

import gtest_log
import ncu
import parts
import process
import results
import run


VALUES = {'lines': 'LINES', 'csv': 'CSV', 'seconds': 100, 'work': 'WORK', 'operators': 'OPERATORS',
          'properties': 'PROPERTIES'}


class PartsTest(unittest.TestCase):
    def test_the_most_valuable_come_first(self):
        names = [part.name for part in parts.PARTS[:10]]
        self.assertEqual(names, ['smoke', 'changes', 'operators', 'device', 'engines', 'headline',
                                 'rounds', 'attention', 'server', 'server_stress'])

    def test_a_preset_fits_into_one_call(self):
        self.assertEqual(parts.PRESETS.keys(), {'changes', 'server'})
        for name, minutes in (('changes', 8), ('server', 4)):
            chosen = parts.PRESETS[name]
            self.assertEqual(run.parse_arguments([f'--preset={name}']).parts, list(chosen))
            self.assertLessEqual(sum(part.seconds for part in parts.chosen(chosen, (), False)),
                                 60 * minutes)

    def test_a_part_fits_into_one_command(self):
        for part in parts.PARTS:
            self.assertLessEqual(part.seconds, 300, part.name)
            self.assertLess(sum(step.reserve for step in part.steps[1:]), part.seconds, part.name)

    def test_names_are_unique(self):
        names = [part.name for part in parts.PARTS]
        steps = [step.name for part in parts.PARTS for step in part.steps]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(steps), len(set(steps)))

    def chosen(self, *arguments):
        return [part.name for part in parts.chosen(*arguments)]

    def test_what_is_done_is_not_run_again(self):
        self.assertEqual(self.chosen(['memcheck', 'smoke'], {'smoke'}, False), ['memcheck'])
        self.assertEqual(self.chosen(['memcheck', 'smoke'], {'smoke'}, True),
                         ['smoke', 'memcheck'])
        self.assertEqual(self.chosen([], {'smoke'}, False)[0], 'changes')
        with self.assertRaisesRegex(ValueError, 'no part speed'):
            self.chosen(['speed'], set(), False)

    def test_a_step_leaves_the_time_that_later_ones_reserve(self):
        steps = tuple(parts.Step(name, 'suite', (), reserve) for name, reserve in
                      (('a', 10), ('b', 20), ('c', 30)))
        part = parts.Part('part', '', 100, steps)
        self.assertEqual(parts.step_limit(part, 0, 100, 1), 50)
        self.assertEqual(parts.step_limit(part, 1, 90, 1), 60)
        self.assertEqual(parts.step_limit(part, 2, 5, 1), 5)
        self.assertEqual(parts.step_limit(part, 0, 40, 1), 0)
        self.assertEqual(parts.step_limit(part, 0, 10, 0.1), 5)


GTEST = '''Running main()
[==========] Running 4 tests from 2 test suites.
[ RUN      ] A.Passes
[       OK ] A.Passes (3 ms)
[ RUN      ] A.Fails
a.cc:3: Failure
[  FAILED  ] A.Other (0 ms)
[  FAILED  ] A.Fails, where GetParam() = small 1 x 96 (5 ms)
[ RUN      ] B.Skips/0
[  SKIPPED ] B.Skips/0 (0 ms)
[ RUN      ] B.Runs
'''


class GtestLogTest(unittest.TestCase):
    def test_a_program_that_crashed(self):
        log = gtest_log.parse(GTEST)
        self.assertEqual(log.passed, ['A.Passes'])
        self.assertEqual(log.failed, ['A.Fails'])
        self.assertEqual(log.skipped, ['B.Skips/0'])
        self.assertEqual(log.running, 'B.Runs')
        self.assertFalse(log.finished)
        self.assertEqual(log.seen(), ['A.Passes', 'A.Fails', 'B.Skips/0', 'B.Runs'])

    def test_the_summary_is_not_counted_twice(self):
        log = gtest_log.parse(GTEST + '[       OK ] B.Runs (1 ms)\n'
                              '[==========] 4 tests from 2 test suites ran. (9 ms total)\n'
                              '[  FAILED  ] A.Fails, where GetParam() = small 1 x 96\n')
        self.assertEqual(log.passed, ['A.Passes', 'B.Runs'])
        self.assertEqual(log.failed, ['A.Fails'])
        self.assertTrue(log.finished)

    def test_filters(self):
        self.assertEqual(gtest_log.without('Gpu*', []), 'Gpu*')
        self.assertEqual(gtest_log.without('Gpu*', ['A.b', 'C.d/0']), 'Gpu*-A.b:C.d/0')
        self.assertEqual(gtest_log.without('-*Gpu*', ['A.b']), '-*Gpu*:A.b')

    def test_findings_of_the_sanitizer(self):
        self.assertIsNone(gtest_log.findings('killed'))
        self.assertEqual(gtest_log.findings('========= ERROR SUMMARY: 0 errors'), 0)
        self.assertEqual(gtest_log.findings('========= ERROR SUMMARY: 1 error'), 1)
        self.assertEqual(gtest_log.findings(
            '========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)'), 2)


NCU = '''==PROF== Connected to process 1
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","1","void scan<8>(Args<bf16>)","dram__bytes.sum","byte","2,000,000"
"0","1","void scan<8>(Args<bf16>)","gpu__time_duration.sum","ns","12,500"
"1","1","gemm","dram__bytes.sum","Mbyte","1.5"
"1","1","gemm","gpu__time_duration.sum","us","3"
"2","1","copy","gpu__time_duration.sum","us","n/a"
"3","1","cut off
'''


class NcuTest(unittest.TestCase):
    def test_a_kernel_has_its_time_and_bytes(self):
        self.assertEqual(ncu.parse(NCU), [
            {'id': 0, 'name': 'void scan<8>(Args<bf16>)', 'us': 12.5, 'bytes': 2e6},
            {'id': 1, 'name': 'gemm', 'us': 3, 'bytes': 1.5e6}])
        self.assertEqual(ncu.parse('==ERROR== no permission'), [])

    def test_names_are_short(self):
        self.assertEqual(ncu.short('void sfmamba::(anonymous namespace)::LaneScan<8, true>('
                                   'sfmamba::Args<x>)'), 'LaneScan')
        self.assertEqual(ncu.short('sm90_xmma_gemm_bf16bf16_bf16f32'),
                         'sm90_xmma_gemm_bf16bf16_bf16f32')
        self.assertEqual(
            ncu.short('void at::native::vectorized_elementwise_kernel<4, '
                      'at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3>>(int)'),
            'vectorized_elementwise_kernel (CUDAFunctor_add)')


class ResultsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.results = results.Results(self.root / 'results', self.root / 'home')

    def test_a_line_that_was_cut_off_is_passed_over(self):
        self.results.append({'benchmark': 'part', 'part': 'smoke'})
        with open(self.results.path(results.LINES), 'a') as file:
            file.write('{"benchmark": "part", "pa')
        self.assertEqual(self.results.done(), {'smoke'})
        self.assertEqual(len(self.results.lines()), 1)

    def test_the_end_of_each_log_goes_home(self):
        self.results.append({'benchmark': 'setting'})
        (self.results.logs / 'long.log').write_bytes(b'a' * results.LOG_BYTES + b'end')
        self.results.publish('# page\n', 'left\n')
        home = self.root / 'home'
        self.assertEqual(sorted(path.name for path in home.iterdir()),
                         ['gpu.jsonl', 'gpu.md', 'logs.tar.gz', 'summary.txt'])
        with tarfile.open(home / 'logs.tar.gz') as archive:
            text = archive.extractfile('logs/long.log').read()
        self.assertEqual(len(text), results.LOG_BYTES)
        self.assertTrue(text.endswith(b'aend'))

    def test_the_last_line_of_a_key_counts(self):
        lines = [{'benchmark': 'a', 'x': 1, 'y': 1}, {'benchmark': 'a', 'x': 2, 'y': 2},
                 {'benchmark': 'b', 'x': 1, 'y': 3}, {'benchmark': 'a', 'x': 1, 'y': 4}]
        self.assertEqual([line['y'] for line in results.latest(lines, 'a', 'x')], [4, 2])


class ProcessTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = pathlib.Path(folder.name, 'log')

    def run_shell(self, script, seconds=20):
        return process.run(['/bin/sh', '-c', script], self.log, seconds)

    def test_says_how_it_ended(self):
        self.assertEqual(self.run_shell('echo one').status, 'passed')
        self.assertEqual(self.run_shell('echo two >&2; exit 3').status, 'exit status 3')
        self.assertEqual(self.run_shell('kill -SEGV $$').status, 'killed by SIGSEGV')
        self.assertEqual(self.log.read_text(), 'one\ntwo\n')
        self.assertIn('No such file', process.run(['/no/program'], self.log, 1).status)

    def test_ticks_come_while_it_runs(self):
        ticks = []
        self.addCleanup(setattr, process, 'TICK', process.TICK)
        process.TICK = 0.05
        for script, passed in (('sleep 0.3', True), ('sleep 60', False)):
            ticks.clear()
            ended = process.run(['/bin/sh', '-c', script], self.log, 0.5 if not passed else 20,
                                tick=lambda: ticks.append(1))
            self.assertEqual(ended.timed_out, not passed)
            self.assertGreater(len(ticks), 2)

    def test_the_whole_group_ends_at_the_limit(self):
        start = time.monotonic()
        ended = self.run_shell('trap "" TERM; sleep 60 & sleep 60', seconds=0.3)
        self.assertTrue(ended.timed_out)
        self.assertIn('timed out', ended.status)
        self.assertLess(time.monotonic() - start, 20)

    def test_what_is_left_behind_ends_too(self):
        self.run_shell('sleep 60 & echo $!')
        left = pathlib.Path('/proc', self.log.read_text().strip(), 'stat')
        for _ in range(50):
            if not left.exists() or left.read_text().split()[2] == 'Z':
                return
            time.sleep(0.1)
        self.fail('it still runs')


class RunTest(unittest.TestCase):
    def status(self, timed_out=False, status='passed', findings=None, crashed=(), **kinds):
        return run.tests_status(process.Ended(status, 1, timed_out), gtest_log.Log(**kinds),
                                list(crashed), findings)

    def test_what_tests_come_to(self):
        self.assertEqual(self.status(passed=['a']), 'passed')
        self.assertEqual(self.status(passed=['a'], failed=['b'], crashed=['c'], status='exit 1'),
                         '2 failed')
        self.assertEqual(self.status(passed=['a'], failed=['b'], timed_out=True,
                                     status='timed out after 9 s'),
                         '1 failed, timed out after 9 s')
        self.assertEqual(self.status(passed=['a'], findings=4, status='exit status 3'),
                         '4 findings')
        self.assertEqual(self.status(status='exit status 127'), 'exit status 127')
        self.assertEqual(self.status(), 'none passed, 0 skipped')

    def test_commands(self):
        tools = run.Tools('SUITE', 'SANITIZER', 'NCU', 'PYTHON', {})
        values = {**VALUES, 'table': '/no/table'}
        commands = {step.name: tools.command(step, values)
                    for part in parts.PARTS for step in part.steps}
        self.assertEqual(commands['models'], ['SUITE', '--gtest_filter=*Gpu*-*GpuPixels*'])
        self.assertEqual(commands['memcheck'], [
            'SANITIZER', '--error-exitcode=3', '--tool=memcheck', 'SUITE',
            '--gtest_filter=-*Gpu*'])
        self.assertEqual(commands['changed_racecheck'][:3],
                         ['SANITIZER', '--error-exitcode=3', '--tool=racecheck'])
        self.assertEqual(commands['operators'],
                         ['PYTHON', 'tests/kernels/python/cuda_test.py'])
        self.assertEqual(commands['ncu_sf_mamba_t'][0], 'NCU')
        self.assertEqual(commands['ncu_sf_mamba_t'][-3:],
                         ['CSV', 'SUITE', '--once=sf_mamba_t,bf16,128'])
        self.assertEqual(commands['peers'], ['PYTHON', 'tools/benchmark_peers/gpu.py', '--out',
                                             'LINES', '--budget', '100'])
        self.assertEqual(commands['server'], [
            'PYTHON', 'tests/gpu/server/measure.py', '--out', 'LINES', '--work', 'WORK',
            '--seconds', '100', '--steps=ready,answers,uint8,jpeg,fp32,rates,requests'])
        self.assertNotIn('--fold_table=/no/table', commands['tuned'])

    def test_a_fold_table_is_loaded_where_there_is_one(self):
        tools = run.Tools('SUITE', 'SANITIZER', 'NCU', 'PYTHON', {})
        with tempfile.NamedTemporaryFile() as table:
            values = {**VALUES, 'table': table.name}
            tuned = [step.name for part in parts.PARTS for step in part.steps
                     if f'--fold_table={table.name}' in tools.command(step, values)]
        self.assertEqual(tuned, ['tuned', 'resolution', 'folds'])

    def test_libraries_are_those_of_pythons_torch(self):
        with tempfile.TemporaryDirectory() as site:
            library = pathlib.Path(site, 'nvidia/cu13/lib/libcudart.so.13')
            library.parent.mkdir(parents=True)
            library.touch()
            links = pathlib.Path(site, 'links')
            for _ in range(2):
                self.assertEqual(run.library_folders(f'{site}/torch', links),
                                 [f'{site}/torch/lib', f'{site}/links'])
            self.assertEqual([link.readlink() for link in links.iterdir()], [library])
        self.assertEqual(run.library_folders('', links), [])

    def test_the_last_line_says_what_is_left(self):
        self.assertEqual(run.left_line({'peers': 'why', 'tests': 'why'}),
                         'run: left: peers, tests')
        self.assertEqual(run.left_line({}), 'run: nothing is left')


if __name__ == '__main__':
    unittest.main()
