"""Runs run.sh from end to end without a GPU. The suite runs on the emulator and the server on the
CPU, both in tiny sizes. Stand-ins print what the real tools would print. One part fails, one part
hangs, and one test crashes. One of the server's clients fails, and one hangs.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

GPU = pathlib.Path(__file__).parents[1]
ROOT = GPU.parents[1]
SCALE = 0.2  # The factor of all limits.
BUDGET = 40  # In seconds. Too short for a limit of 240 s, but enough for the first part.
HANGS, FAILS = 'passes', 'synccheck'

SUITE = '''#!/bin/bash
# Runs only some tests of each kind. One test crashes the program. --parts=pass hangs. Some
# steps measure fewer models. Only --slots=3 also replays a graph without pauses.
case $* in
  *--slots=3*) set -- "$@" --variants=sf_mamba_t --sustained=10ms ;;
  *--rounds=5*) set -- "$@" --variants=sf_mamba_t,mamba_vision_t --sustained=0s ;;
  *--sustained=* | *--batches=1,*) set -- "$@" --variants=sf_mamba_t --sustained=0s ;;
esac
case $* in
  *--gtest_filter=\\*Gpu\\*-*) exec {suite} '--gtest_filter=GpuPromisesTest.Pixels*' ;;
  *--gtest_filter=\\*GpuPixels*) exec {suite} '--gtest_filter=*GpuPixels*.Padding*/Fp32' ;;
  *--gtest_filter=\\*Depthwise*) exec {suite} '--gtest_filter=ChannelScanCudaTest.Without*' ;;
  *--gtest_filter=-\\*Gpu\\*) echo '[ RUN      ] Fake.Crashes'; kill -SEGV $$ ;;
  *--gtest_filter=-*) exec {suite} '--gtest_filter=RowSums*' ;;
  *--parts=pass*) sleep 1000 & wait ;;
  *) exec {suite} --tiny "$@" --duration=5ms --rounds=1 --tune_budget=2s ;;
esac
'''

NCU = '''#!/bin/bash
# Runs the program and writes what ncu would say of two kernels.
while [ "$1" != --log-file ]; do shift; done
log=$2
shift 2
"$@" || exit 1
cat >"$log" <<END
==PROF== Connected to process 1
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","1","void sfmamba::LaneScan<8>(Args)","dram__bytes.sum","byte","58,000,000"
"0","1","void sfmamba::LaneScan<8>(Args)","gpu__time_duration.sum","ns","20,000"
"1","1","sm90_gemm","dram__bytes.sum","byte","9,000,000"
"1","1","sm90_gemm","gpu__time_duration.sum","ns","30,000"
END
'''

SANITIZER = '''#!/bin/bash
# compute-sanitizer --error-exitcode=3 --tool=TOOL SUITE FILTER
tool=$2
"$3" '--gtest_filter=-Gpu*:done'
if [ $tool = --tool=synccheck ]; then
  echo '========= ERROR SUMMARY: 2 errors'
  exit 3
fi
echo '========= ERROR SUMMARY: 0 errors'
'''

PYTHON = '''#!/bin/bash
# Stands in for Python. Runs the driver's own scripts. In place of scripts that measure
# PyTorch, runs a script that writes fixed lines. Skips cuda_test.py, which needs a GPU.
# Skips the part server_first, because other parts run its steps.
case $* in
  */cuda_test.py | *--steps=models,ready*) exit ;;
esac
case $1 in
  *gpu.py | */torch/*) exec /usr/bin/python3 -B {peer} "$@" ;;
  *measure.py) exec /usr/bin/python3 -B "$@" --device=cpu --tiny --time_scale={scale} ;;
  *) exec /usr/bin/python3 "$@" ;;
esac
'''

CLIENT = '''#!/bin/bash
# The client; one of its calls hangs, another one fails.
case $* in
  *--tensor=fp32*) exec sleep 1000 ;;
  *coffee.jpg\ --json*) echo 'no picture' >&2; exit 1 ;;
esac
exec {client} "$@"
'''

PEER = '''
import json, sys
line = {"benchmark": "peer_model", "variant": "sf_mamba_t", "precision": "bf16", "batch": 128,
        "setting": "graph", "ms": 10.0, "note": "", "images_per_second": 12800.0}
sustained = dict(line, benchmark="peer_sustained", variant="mamba_vision_t")
setting = {"benchmark": "peer_setting", "torch": "2.11.0", "cuda": "13.0", "cudnn": "9.19.0",
           "mamba_ssm": "", "mamba_ssm_missing": "it is not installed"}
with open(sys.argv[sys.argv.index("--out") + 1], "a") as file:
    for one in (setting, line, sustained):
        file.write(json.dumps(one) + "\\n")
'''

NVIDIA_SMI = '''#!/bin/bash
case $* in
  *event_reasons*) echo 0x0000000000000004 ;;
  *clocks.sm*) echo '1755, 3201, 61, 690.12' ;;
  *) echo 580.1 ;;
esac
'''


class RehearsalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.home = cls.root / 'home'
        cls.tool('suite', SUITE.format(suite=GPU / 'rehearsal_suite'))
        cls.tool('peer.py', PEER)
        cls.tool('python', PYTHON.format(peer=cls.root / 'peer.py', scale=SCALE))
        for name, program in (('sfmamba_server', ROOT / 'server/sfmamba_server'),
                              ('serving_ceiling_benchmark',
                               ROOT / 'tests/server/ceiling/serving_ceiling_benchmark')):
            cls.tool(name, f'#!/bin/bash\nexec {program} "$@"\n')
        cls.tool('sfmamba', CLIENT.format(client=ROOT / 'client/sfmamba'))
        for name, text in (('ncu', NCU), ('sanitizer', SANITIZER), ('nvidia-smi', NVIDIA_SMI)):
            cls.tool(name, text)
        cls.first = cls.call(f'--budget={BUDGET}')
        cls.left_first = cls.left()
        cls.second = cls.call()
        cls.third = cls.call()
        cls.lines = [json.loads(line) for line in
                     (cls.home / 'gpu.jsonl').read_text().splitlines()]
        cls.page = (cls.home / 'gpu.md').read_text()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    @classmethod
    def tool(cls, name, text):
        path = cls.root / name
        path.write_text(text)
        path.chmod(0o755)

    @classmethod
    def call(cls, *arguments):
        environment = {**os.environ, 'SUITE': str(cls.root / 'suite'), 'OUT': str(cls.home),
                       'NCU': str(cls.root / 'ncu'), 'SANITIZER': str(cls.root / 'sanitizer'),
                       'PYTHON': str(cls.root / 'python'), 'SERVER': str(cls.root),
                       'PATH': f'{cls.root}:{os.environ["PATH"]}'}
        return subprocess.run(
            ['/bin/bash', GPU / 'run.sh', f'--time_scale={SCALE}',
             f'--results={cls.root / "results"}', *arguments],
            env=environment, capture_output=True, text=True, timeout=240)

    @classmethod
    def left(cls):
        last = (cls.home / 'summary.txt').read_text().splitlines()[-1]
        return last.removeprefix('run: left: ').split(', ')

    def statuses(self):
        return {line['part']: line for line in self.lines if line['benchmark'] == 'part'}

    def of(self, kind):
        return [line for line in self.lines if line['benchmark'] == kind]

    def test_a_part_that_does_not_fit_is_left_for_the_next_call(self):
        self.assertNotIn('smoke', self.left_first)
        for name in ('batches', 'racecheck', 'resolution'):
            self.assertIn(name, self.left_first)
        self.assertEqual(self.first.stdout.splitlines()[-1],
                         'run: left: ' + ', '.join(self.left_first))

    def test_a_later_call_goes_on(self):
        self.assertNotIn('== smoke', self.second.stdout)
        self.assertIn('== batches', self.second.stdout)
        self.assertEqual(self.second.stdout.splitlines()[-1], 'run: nothing is left')
        self.assertEqual(self.third.stdout, 'run: nothing is left\n')
        self.assertEqual(self.third.returncode, 0)

    def test_what_fails_or_hangs_stops_nothing(self):
        notes = {name: line['note'] for name, line in self.statuses().items() if line['note']}
        self.assertEqual(notes, {
            'tests': 'kernels: 1 failed', 'server': 'server: exit status 1',
            FAILS: f'{FAILS}: 2 findings',
            HANGS: f'{HANGS}: timed out after {25 * SCALE:.0f} s'},
            self.first.stdout + self.second.stdout + self.second.stderr)
        self.assertEqual(self.second.returncode, 1)
        self.assertEqual(list(self.statuses())[-1], 'scans')

    def test_tests_behind_a_crash_are_run(self):
        tests = {line['step']: line for line in self.of('tests')}
        self.assertEqual(tests['kernels']['crashed'], ['Fake.Crashes'])
        for step in ('graphs', 'models', 'kernels'):
            self.assertGreater(tests[step]['passed'], 0, step)
        self.assertEqual(tests[FAILS]['findings'], 2)

    def test_the_server_was_measured(self):
        statuses = {line['step']: line['status'] for line in self.of('server_step')}
        self.assertEqual({step: status for step, status in statuses.items()
                          if status != 'passed'}, {
            'jpeg': 'ServerError: the client ended with 1: no picture',
            'fp32': 'ServerError: the client took too long'})
        self.assertEqual(set(statuses), {
            'ready', 'answers', 'uint8', 'jpeg', 'fp32', 'rates', 'requests', 'overload', 'reload',
            'sigterm', 'models', 'ceiling'})
        for kind in ('server_ready', 'server_answers', 'server_models', 'server_reload',
                     'server_stop', 'server_ceiling'):
            self.assertTrue(self.of(kind), kind)
        self.assertTrue(all(line['server_us'] > 0 for line in self.of('server_load')))

    def test_everything_else_came_home(self):
        groups = {line['group'] for line in self.of('engine')}
        self.assertEqual(groups, {'batch', 'resolution', 'fold'})
        self.assertEqual({line['slots'] for line in self.of('engine')}, {2, 3, 4})
        self.assertFalse([line for line in self.of('engine') if line['note']])
        self.assertTrue(any(line['tuned'] for line in self.of('engine')))
        self.assertEqual({line['group'] for line in self.of('scan')},
                         {'paper', 'model', 'long', 'mixed'})
        self.assertEqual(len(self.of('kernel')), 3 * 2)
        self.assertTrue(any(line['sustained_ms'] > 0 for line in self.of('engine')))
        self.assertTrue((self.home / 'device_properties.json').exists())
        for kind in ('setting', 'clocks', 'fold', 'peer_setting', 'peer_model'):
            self.assertTrue(self.of(kind), kind)
        self.assertIn('emulator', (self.home / 'fold_table.txt').read_text())
        with tarfile.open(self.home / 'logs.tar.gz') as archive:
            names = archive.getnames()
        for name in ('slots_2.log', 'ncu_sf_mamba_t.csv', 'kernels.log', 'peers.log',
                     'server.log'):
            self.assertIn(f'logs/{name}', names)

    def test_the_page_has_every_section(self):
        for title in ('# emulator', '## Correctness', '## Clocks', '## Whole models',
                      '## The server', '## The scan', '## Fold table', '## Peers',
                      '## Kernels of a pass', '## Parts'):
            self.assertIn(f'{title}\n', self.page)
        for text in ('- tests: kernels: Fake.Crashes (crashed)', 'power cap',
                     '| sf_mamba_t, bf16 |', '| images/s, batch 128 |',
                     'mamba_vision_t, batch 128, B1', 'paper T stage 3: 128 x 196',
                     'as mamba-ssm is missing (it is not installed)',
                     '| LaneScan | 1 | 20.00 |', 'timed out after', 'Everything was run.',
                     "over PyTorch's MambaVision", 'READY after',
                     "our reproduction of the paper's bucketed block scan"):
            self.assertIn(text, self.page)


if __name__ == '__main__':
    unittest.main()
