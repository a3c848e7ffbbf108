"""Tensors of a checkpoint, whose data is read only when it is needed, and their types."""

import dataclasses
import math

import numpy as np

MAX_RANK = 8
_MAX_NAMED = 5  # The largest number of tensors that a message names.


class CheckpointError(Exception):
    """Raised if a checkpoint cannot be converted. The message is one line with the reason."""


# The element types, by their names in the safetensors format, with NumPy's types for them. NumPy
# has no bfloat16, so the bits of a bfloat16 are stored in a uint16.
DTYPES = {
    'F64': np.dtype('<f8'), 'F32': np.dtype('<f4'), 'F16': np.dtype('<f2'),
    'BF16': np.dtype('<u2'), 'I64': np.dtype('<i8'), 'I32': np.dtype('<i4'),
    'I16': np.dtype('<i2'), 'I8': np.dtype('i1'), 'U64': np.dtype('<u8'),
    'U32': np.dtype('<u4'), 'U16': np.dtype('<u2'), 'U8': np.dtype('u1'),
    'BOOL': np.dtype('u1'), 'F8_E4M3': np.dtype('u1'), 'F8_E5M2': np.dtype('u1'),
    'C64': np.dtype('<c8'), 'C128': np.dtype('<c16'),
}
FLOAT_TYPES = ('F64', 'F32', 'F16', 'BF16')


def printable(text):
    """Returns the beginning of a text from a file, up to 200 characters, with control characters
    escaped.
    """
    return text[:200].encode('unicode_escape').decode('ascii')


class Storage:
    """A block of elements in the file. Tensors are views of it.

    `read` returns the bytes of the block. It is called only once, when the first element is needed.
    It raises CheckpointError if the bytes do not match the file's header.
    """

    def __init__(self, dtype, numel, read=None):
        self.dtype = dtype
        self.numel = numel
        self.read = read
        self._data = None

    @property
    def nbytes(self):
        return self.numel * DTYPES[self.dtype].itemsize

    def elements(self):
        """Returns a read-only view of all elements."""
        if self._data is None:
            self._data = self.read()
        return np.frombuffer(self._data, DTYPES[self.dtype], self.numel)


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A view of elements that lie inside a storage. `offset` and `strides` are in elements."""

    storage: Storage
    offset: int
    shape: tuple
    strides: tuple

    @property
    def dtype(self):
        return self.storage.dtype

    @property
    def numel(self):
        return math.prod(self.shape)

    def array(self):
        """Reads the elements from the file. The array is row-major."""
        if self.numel == 0:
            return np.empty(self.shape, DTYPES[self.dtype])
        elements = self.storage.elements()[self.offset:]
        size = elements.itemsize
        view = np.lib.stride_tricks.as_strided(
            elements, self.shape, [stride * size for stride in self.strides], writeable=False)
        return np.ascontiguousarray(view).reshape(self.shape)


def _are_counts(values):
    return isinstance(values, (tuple, list)) and len(values) <= MAX_RANK and all(
        type(value) is int and 0 <= value < 2**63 for value in values)


def _row_major(shape):
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * shape[i]
    return tuple(strides)


def checked_tensor(storage, offset, shape, strides=None):
    """Returns a Tensor, after checking that it lies inside its storage. Without `strides` it is
    contiguous.
    """
    if not _are_counts(shape) or not _are_counts((offset,)):
        raise CheckpointError(f'a tensor\'s shape and offset: expected whole numbers, at most '
                              f'{MAX_RANK} in the shape')
    strides = _row_major(shape) if strides is None else strides
    if not _are_counts(strides) or len(shape) != len(strides):
        raise CheckpointError('a tensor\'s strides: expected as many whole numbers as in its shape')
    tensor = Tensor(storage, offset, tuple(shape), tuple(strides))
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides))
    if tensor.numel > storage.numel or tensor.numel > 0 and last >= storage.numel:
        raise CheckpointError(
            f'a tensor of shape {list(shape)}, strides {list(strides)}, offset {offset} reaches '
            f'beyond its storage of {storage.numel} elements')
    return tensor


def _to_float32(values):
    """Converts float64 to float32 with rounding to odd. A second rounding, to a shorter type, then
    gives the same result as a single rounding.
    """
    nearest = values.astype(np.float32)
    error = values - nearest
    even = (nearest.view(np.uint32) & 1) == 0
    towards = np.where(error > 0, np.float32(np.inf), np.float32(-np.inf))
    inexact = even & (error != 0) & np.isfinite(nearest) & ~np.isnan(error)
    return np.where(inexact, np.nextafter(nearest, towards), nearest)


def _to_bfloat16(values):
    """Converts float32 to the bits of bfloat16, rounded to nearest even. A NaN stays a NaN."""
    bits = values.view(np.uint32)
    rounded = (bits + (np.uint32(0x7fff) + ((bits >> 16) & 1))) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


def _widened(array, dtype):
    if dtype != 'BF16':
        return array
    return (array.astype(np.uint32) << 16).view(np.float32)


def convert(array, dtype, wanted):
    """Converts elements of one float type to another, rounded to nearest even. NaNs stay NaNs."""
    if dtype == wanted:
        return array
    with np.errstate(over='ignore', invalid='ignore'):
        values = _widened(array, dtype)
        if wanted != 'BF16':
            return values.astype(DTYPES[wanted])
        narrow = _to_float32(values) if dtype == 'F64' else values.astype(np.float32)
        return _to_bfloat16(narrow)


def fits(array, dtype, wanted):
    """Returns whether all finite elements stay finite in the type `wanted`."""
    before = np.isfinite(_widened(array, dtype))
    after = np.isfinite(_widened(convert(array, dtype, wanted), wanted))
    return bool(np.array_equal(before, after))


def check_finite(tensors):
    """Raises an error that names the float tensors with a NaN or an infinity."""
    broken = [name for name, tensor in tensors.items()
              if not np.isfinite(_widened(tensor.array(), tensor.dtype)).all()]
    if broken:
        more = f' and {len(broken) - _MAX_NAMED} more' if len(broken) > _MAX_NAMED else ''
        raise CheckpointError('NaN or infinite values in '
                              f'{", ".join(map(printable, broken[:_MAX_NAMED]))}{more}')
