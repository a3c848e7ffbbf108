"""Tests the stand-in for mamba-ssm and causal-conv1d."""

import pathlib
import tempfile
import unittest

import installed

PROGRAM = '''
import sys
import torch
from causal_conv1d import causal_conv1d_fn
from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
u = torch.ones(1, 2, 3)
print(sys.argv[1:], selective_scan_fn(u, u, -torch.ones(2, 1), u[:, :1], u[:, :1]).shape[2],
      causal_conv1d_fn(u, torch.ones(2, 2)).sum().item())
'''


class ShimTest(unittest.TestCase):
    def test_a_program_for_mamba_ssm_runs_unmodified(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, 'program.py')
            program.write_text(PROGRAM)
            self.assertEqual(installed.run('-m', 'sfmamba_scan.shim', str(program), 'one', '--two'),
                             "['one', '--two'] 3 10.0\n")

    def test_what_is_installed_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, 'mamba_ssm.py').write_text('real = True\n')
            program = pathlib.Path(folder, 'program.py')
            program.write_text('import sfmamba_scan\n'
                               'print(sfmamba_scan.install_shim(), sfmamba_scan.install_shim())\n'
                               'import mamba_ssm\nprint(mamba_ssm.real)\n')
            self.assertEqual(installed.run(str(program)), "['causal_conv1d'] []\nTrue\n")


if __name__ == '__main__':
    unittest.main()
