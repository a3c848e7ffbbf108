"""Reads the report of ptxas -v on each kernel."""

import dataclasses
import re
import subprocess


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel on one architecture. All sizes are in bytes per thread."""

    mangled: str
    name: str  # Demangled, without parts that all names share.
    arch: str  # '90'
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int


_ENTRY = re.compile(
    r"Compiling entry function '(?P<name>\S+)' for 'sm_(?P<arch>\w+)'\n"
    r'(?:ptxas info[^\n]*\n)*?'
    r'\s*(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, '
    r'(?P<loads>\d+) bytes spill loads\n'
    r'(?:ptxas info[^\n]*\n)*?'
    r'[^\n]*Used (?P<registers>\d+) registers')


def demangle(names: list[str]) -> list[str]:
    """Returns short names, such as LaneKernel<float, 8, 1, 2>, without return type and namespaces.
    """
    result = subprocess.run(['c++filt'], input='\n'.join(names), text=True,
                            capture_output=True, timeout=60, check=True)
    return [_shorten(name) for name in result.stdout.splitlines()]


def _shorten(name: str) -> str:
    name = name.removeprefix('void ').replace('(anonymous namespace)::', '')
    name = re.sub(r'\b(?:sfmamba|kernels)::', '', name)
    depth = 0
    for i, c in enumerate(name):  # Parameters begin outside of any <>.
        depth += {'<': 1, '>': -1}.get(c, 0)
        if c == '(' and depth == 0:
            return name[:i]
    return name


def kernels(report: str) -> list[Kernel]:
    """Returns every kernel of a report, once for each architecture."""
    entries = list(_ENTRY.finditer(report))
    if len(entries) != report.count('Compiling entry function'):
        raise ValueError('ptxas reports in a form that this does not know')
    names = demangle([entry['name'] for entry in entries])
    return [
        Kernel(entry['name'], name, entry['arch'], *(int(entry[key]) for key in
                                      ('registers', 'stack', 'stores', 'loads')))
        for name, entry in zip(names, entries)
    ]
