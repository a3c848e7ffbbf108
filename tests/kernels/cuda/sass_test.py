import unittest

import ptxas
import sass


def listing(*instructions: str) -> list:
    """Returns the instructions at intervals of 16 bytes, parsed from cuobjdump's format."""
    text = '\tcode for sm_90\n\t\tFunction : f\n\t.headerflags\t@"EF_CUDA"\n'
    for i, each in enumerate(instructions):
        text += f'        /*{16 * i:04x}*/    {each} ;    /* 0x00000000000079c3 */\n'
        text += '                                  /* 0x000e2e0000002600 */\n'
    return sass.parse(text)['90', 'f']


class HottestLoopTest(unittest.TestCase):

    def test_counts_one_iteration(self):
        counts = sass.hottest_loop(listing(
            'LDC R1, c[0x0][0x28]',
            'MUFU.EX2 R2, R3',  # 0x10: the head.
            'FFMA.FTZ R4, R2, R3, R4',
            '@!P0 STG.E desc[UR4][R6.64], R4',
            '@P1 BRA 0x10',
            'EXIT'))
        self.assertEqual(counts, {'MUFU': 1, 'FFMA': 1, 'STG': 1, 'BRA': 1, 'all': 4})

    def test_is_empty_without_exponentials(self):
        self.assertFalse(sass.hottest_loop(listing(
            'MUFU.EX2 R2, R3', 'MUFU.RCP R2, R3', '@P0 BRA 0x10', 'EXIT')))

    def test_counts_the_loop_with_the_most_of_other_work(self):
        counts = sass.hottest_loop(listing(
            'MUFU.EX2 R2, R3',  # 0x00: a loop without this work.
            '@P0 BRA 0x0',
            'FFMA R4, R2, R3, R4',  # 0x20
            'FFMA.FTZ R5, R2, R3, R5',
            '@P1 BRA 0x20',
            'EXIT'), work=('FFMA',))
        self.assertEqual(counts, {'FFMA': 2, 'BRA': 1, 'all': 3})

    def test_takes_the_innermost_of_nested_loops(self):
        counts = sass.hottest_loop(listing(
            'IADD3 R0, R0, 0x1, RZ',  # 0x00: the outer head.
            'MUFU.EX2 R2, R3',        # 0x10: the inner head.
            '@P0 BRA 0x10',
            '@P1 BRA 0x0',
            'EXIT'))
        self.assertEqual(counts, {'MUFU': 1, 'BRA': 1, 'all': 2})

    def test_takes_the_way_with_the_most_work_then_the_shortest(self):
        counts = sass.hottest_loop(listing(
            '@P0 BRA 0x40',  # 0x00: the head, before the long way.
            'MUFU.EX2 R2, R3',
            'FADD R2, R2, R2',
            'BRA 0x60',
            '@P1 BRA 0x60',  # 0x40: the short way, if any.
            'MUFU.EX2 R2, R3',
            '@P2 BRA 0x0',         # 0x60
            'EXIT'))
        self.assertEqual(counts, {'MUFU': 1, 'BRA': 3, 'all': 4})

    def test_goes_through_inner_loops_once(self):
        counts = sass.hottest_loop(listing(
            'MUFU.LG2 R2, R3',        # 0x00: the head.
            'ISETP.GT.AND P0, PT, R1, R2, PT',
            '@!P0 BRA P5, 0x10',      # Looks for the end of a sequence.
            'MUFU.EX2 R2, R3',
            '@P1 BRA 0x0',
            'EXIT'))
        self.assertEqual(counts, {'MUFU': 2, 'ISETP': 1, 'BRA': 2, 'all': 5})

    def test_knows_that_a_guarded_exit_goes_on(self):
        counts = sass.hottest_loop(listing(
            '@P0 EXIT', 'MUFU.EX2 R2, R3', 'BRA 0x0'))
        self.assertEqual(counts['all'], 3)


class PtxasTest(unittest.TestCase):

    REPORT = '''ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN7sfmamba54_GLOBAL__N__37dddd5e_16_row_sums_cuda_cu_a8b5e873_82267RowSumsINS_7Float16EEEvPKT_iPf' for 'sm_80'
ptxas info    : Function properties for _ZN7sfmamba54_GLOBAL__N__37dddd5e_16_row_sums_cuda_cu_a8b5e873_82267RowSumsINS_7Float16EEEvPKT_iPf
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 27 registers, used 1 barriers, 16 bytes smem, 376 bytes cmem[0]
ptxas info    : Compile time = 28.525 ms
'''

    def test_reads_registers_stack_and_spills(self):
        kernel, = ptxas.kernels(self.REPORT)
        self.assertTrue(kernel.mangled.startswith('_ZN7sfmamba'))
        self.assertEqual((kernel.name, kernel.arch), ('RowSums<Float16>', '80'))
        self.assertEqual((kernel.registers, kernel.stack), (27, 8))
        self.assertEqual((kernel.spill_stores, kernel.spill_loads), (4, 12))

    def test_refuses_a_report_that_it_cannot_read(self):
        with self.assertRaises(ValueError):
            ptxas.kernels(self.REPORT.replace('bytes stack frame', 'stack'))


if __name__ == '__main__':
    unittest.main()
