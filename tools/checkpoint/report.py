"""Reports for each tensor whether it is used, skipped, missing, surplus or unfit."""

import collections
import dataclasses

from checkpoint.tensor import FLOAT_TYPES, Tensor, printable

PROBLEMS = ('missing', 'surplus', 'unfit')
MAX_PROBLEMS = 20  # The short form shows at most this many problems.


@dataclasses.dataclass(frozen=True)
class Row:
    fate: str  # "used", "skipped" or one of PROBLEMS.
    key: str   # The name in the file, or in the model if the tensor is missing.
    why: str


@dataclasses.dataclass
class Match:
    tensors: dict  # The model's tensors by name, in the model's shapes.
    rows: list     # A Row for every tensor.

    @property
    def loads(self):
        return not any(row.fate in PROBLEMS for row in self.rows)


def _shape(shape):
    return f'[{", ".join(map(str, shape))}]'


def _fitting(name, tensor, shape):
    """Returns the tensor in the model's shape. If it does not fit, returns a text with the reason.
    """
    if tensor.dtype not in FLOAT_TYPES:
        return f'{tensor.dtype}, expected floating point'
    if tensor.shape == shape:
        return tensor
    # This weight is stored as a convolution with one tap.
    if name.endswith('dt_proj.weight') and tensor.shape == (*shape, 1):
        return Tensor(tensor.storage, tensor.offset, shape, tensor.strides[:-1])
    return f'{_shape(tensor.shape)}, expected {_shape(shape)}'


def match(state, expected):
    """Returns the Match of the StateDict's tensors with a model whose tensors have the `expected`
    shapes.
    """
    tensors, rows = {}, []
    for name, tensor in state.tensors.items():
        source = state.sources[name]
        if name not in expected:
            rows.append(Row('surplus', source, f'{_shape(tensor.shape)}: the model has none'))
            continue
        fitting = _fitting(name, tensor, expected[name])
        if isinstance(fitting, str):
            rows.append(Row('unfit', source, fitting))
            continue
        tensors[name] = fitting
        renamed = '' if name == source else f', as {name}'
        rows.append(Row('used', source, f'{tensor.dtype} {_shape(tensor.shape)}{renamed}'))
    rows += [Row('skipped', key, why) for key, why in state.skipped.items()]
    rows += [Row('missing', name, f'expected {_shape(shape)}')
             for name, shape in expected.items() if name not in state.tensors]
    return Match(tensors, rows)


def _line(row):
    return f'{row.fate:8} {printable(row.key)}  {row.why}'


def table(rows):
    return [_line(row) for row in rows]


def problems(rows):
    """Returns the lines of the first problems, and the number of further problems."""
    found = [_line(row) for row in rows if row.fate in PROBLEMS]
    more = len(found) - MAX_PROBLEMS
    return found[:MAX_PROBLEMS] + ([f'and {more} more'] if more > 0 else [])


def summary(rows):
    """Returns a line with the counts, and with the reasons for what was skipped."""
    counts = collections.Counter(row.fate for row in rows)
    reasons = collections.Counter(row.why for row in rows if row.fate == 'skipped')
    why = '; '.join(f'{count} {reason}' for reason, count in reasons.most_common())
    return (f'used {counts["used"]}, skipped {counts["skipped"]}{f" ({why})" if why else ""}, '
            + ', '.join(f'{fate} {counts[fate]}' for fate in PROBLEMS))
