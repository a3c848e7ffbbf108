"""Compiles the kernels for the installed PyTorch. pyproject.toml has the package's metadata.

The kernels work only with the PyTorch for which they are compiled. By default, pip runs this
script in an isolated environment. If the isolated environment has no PyTorch, the script imports
the PyTorch of the environment into which pip installs the package. The kernels support CUDA
tensors if this PyTorch is built for CUDA and there is an nvcc of the same CUDA major version.

The sources include headers from the neighbouring folders. A source distribution has copies of
these headers in shared/, so that it can be built without the repository.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import site
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
SHARED = HERE / 'shared' if (HERE / 'shared').is_dir() else HERE.parent
FOLDERS = ('base', 'cuda', 'simd')  # The folders in SHARED that the kernels need.
SOURCES = ('*.h', '*.cc', '*.cu')
COMMON = ['-std=c++17', '-O3', '-fPIC', '-DNDEBUG', '-fvisibility=hidden']
# The same options as in kernels/simd/simd_kernel.bzl. With -ffp-contract=off, the compiler never
# computes a * b + c by one instruction, which would round only once. An expression therefore gives
# the same bits in every function and for every instruction set.
KERNEL = ['-ffp-contract=off', '-fno-math-errno', '-Wno-maybe-uninitialized',
          '-Wno-uninitialized']
ISAS = {
    'avx2': ('8', ['-mavx2', '-mfma']),
    'avx512': ('16', ['-mavx512f', '-mavx512bw', '-mavx512dq', '-mavx512vl', '-mfma']),
}
CUDA = ['-std=c++17', '-O3', '-DNDEBUG', '--expt-relaxed-constexpr',
        '-Xcompiler=-fPIC,-fvisibility=hidden']
KERNELS = ['channel_scan', 'causal_conv1d']


def import_torch():
    try:
        import torch
    except ImportError:
        for folder in {sysconfig.get_path('purelib'), sysconfig.get_path('platlib')}:
            site.addsitedir(folder)
        try:
            import torch
        except ImportError as error:
            sys.exit('sfmamba_scan: no PyTorch to compile for: pip install torch, then try '
                     f'again ({error})')
    return torch


def cuda_toolkit(torch):
    """Returns the folder of a CUDA toolkit with PyTorch's CUDA major version, or None."""
    from torch.utils.cpp_extension import CUDA_HOME
    if not torch.version.cuda or not CUDA_HOME:
        return None
    try:
        version = subprocess.run([f'{CUDA_HOME}/bin/nvcc', '--version'], check=True,
                                 capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    fits = f'release {torch.version.cuda.partition(".")[0]}.' in version
    return pathlib.Path(CUDA_HOME) if fits else None


def of_isa(source, isa):
    """Returns the text of a *_isa.cc for one instruction set, as simd_kernel.bzl generates it."""
    width = ISAS[isa][0]
    source = re.sub(r'(Vec|Bytes)Isa\b', rf'\g<1>{width}', source)
    return re.sub(r'Isa\b', isa.capitalize(), source.replace('_isa.h', f'{width}.h'))


def check_shared():
    missing = [name for name in FOLDERS if not (SHARED / name).is_dir()]
    if missing:
        sys.exit(f'sfmamba_scan: {", ".join(missing)}: no such folders in {SHARED}, whose headers '
                 'the kernels include: install kernels/python of the whole repository, or a source '
                 'distribution, which "python -m build --sdist kernels/python" makes')


def include_tree(folder):
    """Makes `folder`/include/kernels with links to all folders whose headers are included."""
    kernels = folder / 'include/kernels'
    shutil.rmtree(kernels, ignore_errors=True)
    kernels.mkdir(parents=True)
    for name in FOLDERS:
        (kernels / name).symlink_to(SHARED / name)
    (kernels / 'python').symlink_to(HERE)


class SourceDistribution(sdist):
    """Adds the sources of this folder and of FOLDERS to a source distribution."""

    def make_release_tree(self, base_dir, files):
        check_shared()
        super().make_release_tree(base_dir, files)
        target = pathlib.Path(base_dir)
        places = [(HERE, target)] + [(SHARED / name, target / 'shared' / name) for name in FOLDERS]
        for source, copy in places:
            for pattern in SOURCES:
                for file in [*source.glob(pattern), *source.glob(f'nvcc/**/{pattern}')]:
                    to = copy / file.relative_to(source)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, to)


class BuildKernels(build_ext):
    """Compiles each source with the options of its instruction set, and links the objects."""

    def build_extension(self, ext):
        check_shared()
        torch = import_torch()
        cuda = cuda_toolkit(torch)
        folder = pathlib.Path(self.build_temp).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        include_tree(folder)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = list(pool.map(lambda job: self.compile(*job, folder, cuda),
                                    self.jobs(torch, cuda, folder)))
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        packages = pathlib.Path(torch.__file__).parent
        library = packages / 'lib'
        # Links the OpenMP library (libgomp) that comes with PyTorch. A second OpenMP library would
        # have its own thread pool. Waiting threads spin, so each pool would take CPU time from the
        # other.
        openmp = [*library.glob('libgomp*.so*'),
                  *packages.with_name('torch.libs').glob('libgomp*.so*'), '-lgomp'][0]
        runtime = ['-lc10_cuda', next(cuda.glob('lib*/libcudart.so*'))] if cuda else []
        self.call([self.cxx(), '-shared', *objects, f'-L{library}', '-ltorch', '-ltorch_cpu',
                   '-lc10', *runtime, openmp, f'-Wl,-rpath,{library}', '-o', target])

    @staticmethod
    def jobs(torch, cuda, folder):
        """Returns the sources, each with its compiler options."""
        include = pathlib.Path(torch.__file__).parent / 'include'
        framework = [f'-I{include}', f'-I{include / "torch/csrc/api/include"}', '-fopenmp',
                     f'-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}']
        jobs = [(SHARED / 'simd/cpu_features.cc', [])]
        for name in KERNELS:
            jobs.append((HERE / f'{name}_cpu.cc', KERNEL))
            jobs.append((HERE / f'{name}_operators.cc', framework))
            for isa, (_, options) in ISAS.items():
                source = folder / f'{name}_{isa}.cc'
                source.write_text(of_isa((HERE / f'{name}_isa.cc').read_text(), isa))
                jobs.append((source, KERNEL + options))
        if cuda:
            # If no GPU is visible, compiles to PTX, which the driver compiles for the GPU that it
            # finds.
            arch = 'native' if torch.cuda.is_available() else 'compute_75'
            for name in KERNELS:
                jobs.append((HERE / f'{name}_cuda.cu', [f'-arch={arch}']))
                jobs.append((HERE / f'{name}_cuda_operators.cc',
                             [*framework, f'-I{cuda / "include"}']))
        return jobs

    def compile(self, source, options, folder, cuda):
        target = folder / f'{source.stem}.o'
        if source.suffix == '.cu':
            command = [cuda / 'bin/nvcc', '-ccbin', self.cxx(), *CUDA, f'-I{HERE / "nvcc"}']
        else:
            command = [self.cxx(), *COMMON]
        self.call([*command, f'-I{folder / "include"}', *options, '-c', source, '-o', target])
        return target

    @staticmethod
    def cxx():
        return os.environ.get('CXX', 'g++')

    @staticmethod
    def call(command):
        try:
            subprocess.run([str(part) for part in command], check=True)
        except FileNotFoundError:
            sys.exit(f'sfmamba_scan: no compiler {command[0]}: install g++ or name one by CXX')
        except subprocess.CalledProcessError:
            sys.exit('sfmamba_scan: the command above failed: ' + ' '.join(map(str, command)))


setup(ext_modules=[Extension('sfmamba_scan._kernels', [])],
      cmdclass={'build_ext': BuildKernels, 'sdist': SourceDistribution})
