"""Compares registers, spills and instructions of the CUDA kernels with recorded numbers.

The tests are skipped without --config=cuda. These commands build the kernels and record new
numbers:

  for family in detection linear pixels scan segmentation sequence; do
    bazel build --config=cuda //kernels/$family:cuda_objects{,_ptxas}
  done
  PATH=.deps/cuda-disassembler/nvidia/cu13/bin:$PATH \\
      python3 tests/kernels/cuda/compile_test.py --record bazel-bin/kernels
"""

import os
import pathlib
import re
import shutil
import sys
import unittest
from concurrent import futures

import ptxas
import sass

HERE = pathlib.Path(__file__).parent
KERNELS = HERE.parents[2] / 'kernels'
REGISTERS = HERE / 'register_budgets.txt'
INSTRUCTIONS = HERE / 'scan_instructions.txt'

# The allowed bytes of stack per kernel, and the reason: {'file: Kernel<...>': (64, '')}.
STACKS = {}

# Only these scan kernels are disassembled, because each takes seconds.
SCAN_ARCHS = ('80', '90')
SCAN_TYPE = '<BFloat16'

# The opcodes whose counts are recorded for a scan kernel's hottest loop.
SHOWN = ('all', 'MUFU', 'FFMA', 'FMUL', 'LDG', 'STG', 'LDS', 'SHFL')


def reports(folder: pathlib.Path) -> dict[tuple[str, str], ptxas.Kernel]:
    """Returns the kernels by ('file: kernel', architecture)."""
    found = {}
    for path in sorted(folder.rglob('*_object.ptxas.txt')):
        file = path.name.removesuffix('_object.ptxas.txt')
        for kernel in ptxas.kernels(path.read_text()):
            found[f'{file}: {kernel.name}', kernel.arch] = kernel
    return found


def scans(folder: pathlib.Path, cuobjdump: pathlib.Path) -> dict:
    """Returns the hottest loops of the scan kernels, by ('file: kernel', architecture)."""
    jobs = []
    for path in sorted(folder.rglob('selective_scan*_object.ptxas.txt')):
        file = path.name.removesuffix('_object.ptxas.txt')
        for arch in SCAN_ARCHS:
            functions = tuple(kernel.mangled for kernel in ptxas.kernels(path.read_text())
                              if kernel.arch == arch and SCAN_TYPE in kernel.name)
            if functions:
                jobs.append((file, arch, functions))

    def disassemble(job):
        file, arch, functions = job
        return sass.disassemble(cuobjdump, folder / 'scan' / f'{file}_object.o', arch, functions)

    found = {}
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (file, arch, _), text in zip(jobs, pool.map(disassemble, jobs)):
            for (name, _), counts in sass.count(text).items():
                if counts:
                    found[f'{file}: {name}', arch] = counts
    return found


def read(path: pathlib.Path) -> dict[tuple[str, str], dict[str, int]]:
    """Reads lines 'file: kernel | 80 key 1 key 2 | 90 ...'. A # begins a comment."""
    found = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith('#'):
            kernel, *archs = line.split(' | ')
            for arch, *pairs in (each.split() for each in archs):
                found[kernel, arch] = dict(zip(pairs[::2], map(int, pairs[1::2])))
    return found


def write(path: pathlib.Path, comment: str, figures: dict):
    lines = {}
    for (kernel, arch), values in sorted(figures.items(),
                                         key=lambda item: (item[0][0], int(item[0][1]))):
        shown = ' '.join(f'{key} {value}' for key, value in values.items())
        lines.setdefault(kernel, []).append(f'{arch} {shown}')
    path.write_text(comment + ''.join(
        ' | '.join([kernel, *archs]) + '\n' for kernel, archs in lines.items()))


def record(folder: pathlib.Path):
    write(REGISTERS, '# The most registers of a thread, by kernel and architecture.\n',
          {key: {'registers': kernel.registers} for key, kernel in reports(folder).items()})
    cuobjdump = shutil.which('cuobjdump')
    if not cuobjdump:
        sys.exit('no cuobjdump on the PATH: only the registers were recorded')
    write(INSTRUCTIONS,
          '# Instructions of one iteration of the hottest loop (sass.py).\n',
          {key: {opcode: counts[opcode] for opcode in SHOWN}
           for key, counts in scans(folder, pathlib.Path(cuobjdump)).items()})


class CompileTest(unittest.TestCase):

    def setUp(self):
        self.found = reports(KERNELS)
        if not self.found:
            self.skipTest('built without --config=cuda')

    def test_every_source_is_compiled(self):
        sources = {path.stem for path in KERNELS.rglob('*.cu')}
        compiled = {path.name.removesuffix('_object.ptxas.txt')
                    for path in KERNELS.rglob('*_object.ptxas.txt')}
        self.assertTrue(sources)
        self.assertEqual(sources, compiled)

    def test_nothing_spills(self):
        for (name, arch), kernel in self.found.items():
            with self.subTest(kernel=name, arch=arch):
                self.assertEqual((kernel.spill_stores, kernel.spill_loads), (0, 0))
                self.assertLessEqual(kernel.stack, STACKS.get(name, (0,))[0])

    def test_registers_stay_within_their_budget(self):
        budgets = read(REGISTERS)
        for key, kernel in self.found.items():
            with self.subTest(kernel=key):
                budget = budgets.get(key)
                self.assertIsNotNone(budget, 'has no recorded budget')
                self.assertLessEqual(kernel.registers, budget['registers'])
        archs = {arch for _, arch in self.found}
        gone = {key for key in budgets if key[1] in archs} - set(self.found)
        self.assertFalse(gone, 'recorded kernels that do not exist')


class ScanInstructionsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.found = {}
        cls.recorded = read(INSTRUCTIONS)
        cuobjdump = pathlib.Path(os.environ['TEST_SRCDIR'], 'cuda', 'cuobjdump')
        if cuobjdump.exists():
            cls.found = scans(KERNELS, cuobjdump.resolve())

    def setUp(self):
        if not list(KERNELS.rglob('*_object.o')):
            self.skipTest('built without --config=cuda')
        if not self.found:
            self.skipTest('no cuobjdump: run deploy/setup.sh --cuda')

    def test_every_recorded_loop_is_there(self):
        archs = {arch for _, arch in self.found}
        recorded = {key for key in self.recorded if key[1] in archs}
        self.assertEqual(recorded, set(self.found))

    def test_no_exponential_is_computed_twice(self):
        """Expects states + 2 MUFU instructions for each output value that the loop stores: an
        exponential for each state, and an exponential and a logarithm for softplus. A store (STG)
        writes the values of one token for all channels of a thread.
        """
        seen = 0
        for (name, arch), counts in self.found.items():
            # The parts of LaneKernel<type, states, lanes per channel, channels per thread>.
            lane = re.search(r'\bLaneKernel<\w+, (\d+), (\d+), (\d+)>', name)
            if not lane:
                continue
            seen += 1
            states, _, channels = map(int, lane.groups())
            with self.subTest(kernel=name, arch=arch):
                self.assertEqual(counts['MUFU'], (states + 2) * counts['STG'] * channels)
        self.assertGreater(seen, 0)

    def test_counts_are_the_recorded_ones(self):
        for key, counts in self.found.items():
            want = self.recorded.get(key)
            with self.subTest(kernel=key):
                self.assertEqual(counts['LDL'] + counts['STL'], 0)
                self.assertIsNotNone(want, 'has no recorded counts')
                self.assertEqual(counts['MUFU'], want['MUFU'])
                self.assertLessEqual(abs(counts['all'] - want['all']), 0.1 * want['all'])


class PixelConvolutionTest(unittest.TestCase):
    """Checks the disassembly for sm_90."""

    @classmethod
    def setUpClass(cls):
        object_file = KERNELS / 'pixels' / 'pixel_convolution_cuda_object.o'
        if not object_file.exists():
            raise unittest.SkipTest('built without --config=cuda')
        cuobjdump = pathlib.Path(os.environ['TEST_SRCDIR'], 'cuda', 'cuobjdump')
        if not cuobjdump.exists():
            raise unittest.SkipTest('no cuobjdump: run deploy/setup.sh --cuda')
        cls.text = sass.disassemble(cuobjdump.resolve(), object_file, '90')

    def test_multiply_adds_fill_the_hottest_loop(self):
        """Expects that one iteration multiplies 3 of the 27 taps, for 8 pixels and 8 channels, and
        that at least 80 % of the iteration's instructions are FFMA.
        """
        found = sass.count(self.text, work=('FFMA',))
        self.assertEqual(len(found), 3)
        for (name, _), counts in found.items():
            with self.subTest(kernel=name):
                self.assertEqual(counts['LDL'] + counts['STL'], 0)
                self.assertEqual(counts['FFMA'], 27 * 8 * 8 / 9)
                self.assertGreaterEqual(counts['FFMA'], 0.8 * counts['all'])

    def test_stores_move_16_bytes(self):
        for (_, name), instructions in sass.parse(self.text).items():
            stores = {each['rest'].split()[0] for each in instructions
                      if each['opcode'] == 'STG'}
            with self.subTest(kernel=name):
                self.assertEqual(stores, {'.E.128'})


if __name__ == '__main__':
    if len(sys.argv) != 3 or sys.argv[1] != '--record':
        sys.exit(__doc__)
    record(pathlib.Path(sys.argv[2]))
