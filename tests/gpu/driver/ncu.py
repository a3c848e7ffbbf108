"""Reads the CSV of Nsight Compute, which has one row for each kernel and metric."""

import csv
import re

# Converts the units of ncu to microseconds and bytes.
UNITS = {'ns': 1e-3, 'nsecond': 1e-3, 'us': 1, 'usecond': 1, 'ms': 1e3, 'msecond': 1e3,
         's': 1e6, 'second': 1e6, 'byte': 1, 'Kbyte': 1e3, 'Mbyte': 1e6, 'Gbyte': 1e9}
COLUMNS = {'ID', 'Kernel Name', 'Metric Name', 'Metric Unit', 'Metric Value'}
METRICS = {'gpu__time_duration.sum': 'us', 'dram__bytes.sum': 'bytes'}


def parse(text):
    """Returns [{'id', 'name', 'us', 'bytes'}] in the order of the launches.

    Ignores lines that are not CSV, and values that are not numbers, such as "n/a".
    """
    rows = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    columns = {title: i for i, title in enumerate(rows[0])} if rows else {}
    if not COLUMNS <= columns.keys():
        return []
    kernels = {}
    for row in rows[1:]:
        if len(row) != len(columns):
            continue
        key = METRICS.get(row[columns['Metric Name']])
        value = number(row[columns['Metric Value']])
        scale = UNITS.get(row[columns['Metric Unit']])
        if key is None or value is None or scale is None:
            continue
        number_of = int(row[columns['ID']])
        kernel = kernels.setdefault(number_of, {
            'id': number_of, 'name': row[columns['Kernel Name']], 'us': 0, 'bytes': 0})
        kernel[key] = value * scale
    return [kernels[key] for key in sorted(kernels)]


def number(text):
    try:
        return float(text.replace(',', ''))
    except ValueError:
        return None


def short(name):
    """Returns a kernel's name without its return type, parameters and most template arguments.

    If a kernel only applies a functor, returns the functor's name.
    """
    functor = re.search(r'(\w+[Ff]unctor\w*|\w+_kernel_cuda|\w+_kernel_impl)\b', name)
    outer = re.sub(r'\(anonymous namespace\)::|<unnamed>::', '', name)
    outer = re.sub(r'^void ', '', outer)
    outer = re.split(r'[<(]', outer, maxsplit=1)[0].split('::')[-1].strip()
    if functor and functor.group(1) != outer and 'elementwise' in outer:
        outer += f' ({functor.group(1)})'
    return outer[:80]
