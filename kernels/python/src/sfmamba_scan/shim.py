"""Replaces mamba-ssm and causal-conv1d if they are not installed.

    import sfmamba_scan
    sfmamba_scan.install_shim()      # Before the modules that need them are imported.

    python -m sfmamba_scan.shim program.py ARGUMENT...

Programs then find selective_scan_fn in mamba_ssm.ops.selective_scan_interface and
causal_conv1d_fn in causal_conv1d, and run unmodified on a CPU.
"""

import importlib.machinery
import importlib.util
import runpy
import sys
import types

from sfmamba_scan import functions

# The functions of this package that each replacement module has.
MODULES = {
    'mamba_ssm': (),
    'mamba_ssm.ops': (),
    'mamba_ssm.ops.selective_scan_interface': ('selective_scan_fn', 'selective_scan_ref'),
    'causal_conv1d': ('causal_conv1d_fn',),
    'causal_conv1d.causal_conv1d_interface': ('causal_conv1d_fn',),
}


def install_shim():
    """Registers replacements for packages that are not installed, and returns their names.

    A package that is installed is not changed.
    """
    packages = {name.partition('.')[0] for name in MODULES}
    missing = {name for name in packages if importlib.util.find_spec(name) is None}
    for name, functions_of in MODULES.items():
        if name.partition('.')[0] not in missing:
            continue
        module = types.ModuleType(name, 'Stands in for the package: see sfmamba_scan.shim.')
        is_package = any(other.startswith(name + '.') for other in MODULES)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=is_package)
        if is_package:
            module.__path__ = []
        for function in functions_of:
            setattr(module, function, getattr(functions, function))
        sys.modules[name] = module
        parent, _, last = name.rpartition('.')
        if parent:
            setattr(sys.modules[parent], last, module)
    return sorted(missing)


def main():
    if len(sys.argv) < 2:
        sys.exit('usage: python -m sfmamba_scan.shim program.py ARGUMENT...')
    install_shim()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name='__main__')


if __name__ == '__main__':
    main()
