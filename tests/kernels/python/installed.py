"""Builds the package of kernels/python in a temporary folder, and makes it importable.

The source distribution is built from a copy outside of the repository, in which kernels/python is
called copy/scan. The copy is then deleted, and the package is built from the distribution alone. If
the environment variable SFMAMBA_SCAN_SITE names a folder with a built package, this package is used
instead.
"""

import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch

torch.set_num_threads(1)  # The tensors are small.
ROOT = pathlib.Path(__file__).parents[3]


def _build():
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for part, name in (('base', 'base'), ('cuda', 'cuda'), ('simd', 'simd'), ('python', 'scan')):
        shutil.copytree(ROOT / 'kernels' / part, folder / 'copy' / name)
    subprocess.run([sys.executable, 'setup.py', '--quiet', 'sdist', '--dist-dir', folder],
                   cwd=folder / 'copy/scan', check=True)
    shutil.rmtree(folder / 'copy')
    [archive] = folder.glob('*.tar.gz')
    shutil.unpack_archive(archive, folder / 'unpacked')
    [source] = (folder / 'unpacked').iterdir()
    subprocess.run([sys.executable, 'setup.py', '--quiet', 'build', '--build-lib', folder / 'site',
                    '--build-temp', folder / 'temp'], cwd=source, check=True)
    return folder / 'site'


SITE = os.environ.get('SFMAMBA_SCAN_SITE') or str(_build())
sys.path.insert(0, SITE)


def run(*command, **environment):
    """Runs Python with the arguments `command` and the package on its path. Returns its standard
    output. Raises AssertionError if it fails. `environment` has more environment variables.
    """
    here = str(pathlib.Path(__file__).parent)
    result = subprocess.run([sys.executable, '-B', *command], capture_output=True, text=True,
                            check=False, cwd=here,
                            env={**os.environ, **environment, 'PYTHONPATH': SITE + ':' + here,
                                 'SFMAMBA_SCAN_SITE': SITE})
    if result.returncode:
        raise AssertionError(result.stdout + result.stderr)
    return result.stdout
