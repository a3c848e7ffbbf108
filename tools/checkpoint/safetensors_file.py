"""Reads and writes the safetensors format. A file has a JSON header with each tensor's type, shape
and place, followed by the data.
"""

import hashlib
import json
import struct

from checkpoint.tensor import (DTYPES, FLOAT_TYPES, CheckpointError, Storage, checked_tensor,
                               convert, fits, printable)

MAX_HEADER = 100_000_000


def is_safetensors(data):
    return len(data) > 8 and data[8] == ord('{')


def _unique(pairs):
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError('a name stands twice')
    return entries


def _read_header(data):
    size = struct.unpack('<Q', data[:8])[0]
    if size > min(MAX_HEADER, len(data) - 8):
        raise CheckpointError(f'a header of {size} bytes reaches beyond the file')
    try:
        header = json.loads(bytes(data[8:8 + size]), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f'the header is not the JSON it should be ({error})') from error
    if not isinstance(header, dict):
        raise CheckpointError('the header is not an object')
    header.pop('__metadata__', None)
    return header, data[8 + size:]


def _tensor(entry, data):
    if not isinstance(entry, dict) or set(entry) != {'dtype', 'shape', 'data_offsets'}:
        raise CheckpointError('expected dtype, shape and data_offsets')
    offsets, dtype = entry['data_offsets'], entry['dtype']
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise CheckpointError(f'unknown dtype {printable(str(dtype))}')
    if not isinstance(offsets, list) or [type(o) for o in offsets] != [int, int] or (
            not 0 <= offsets[0] <= offsets[1] <= len(data)):
        raise CheckpointError(f'data_offsets beyond the file\'s {len(data)} bytes of data')
    begin, end = offsets
    numel, rest = divmod(end - begin, DTYPES[dtype].itemsize)
    storage = Storage(dtype, numel, lambda: data[begin:end])
    tensor = checked_tensor(storage, 0, entry['shape'])
    if tensor.numel != numel or rest != 0:
        raise CheckpointError(f'{end - begin} bytes, expected {tensor.numel} elements of {dtype}')
    return tensor, begin, end


def read_safetensors(data):
    """Returns the tensors by name. `data`, the bytes of the file, must outlive them."""
    header, data = _read_header(data)
    tensors, places = {}, []
    for name, entry in header.items():
        try:
            tensors[name], begin, end = _tensor(entry, data)
        except CheckpointError as error:
            raise CheckpointError(f'tensor {printable(name)}: {error}') from error
        places.append((begin, end))
    position = 0
    for begin, end in sorted(places):
        if begin != position:
            raise CheckpointError(f'the tensors overlap or leave a gap at byte {position} of data')
        position = end
    if position != len(data):
        raise CheckpointError(f'{len(data) - position} bytes behind the last tensor')
    return tensors


def stored_type(tensor, wanted):
    """Returns the type in which a float tensor is stored if the user wants `wanted`. If `wanted` is
    None, the tensor's own type is wanted.

    F64 becomes F32, because the server does not read F64. A half-precision type also becomes F32 if
    a value would become infinite in it.
    """
    wanted = wanted or tensor.dtype
    if wanted == 'F64':
        return 'F32'
    if wanted in ('F16', 'BF16') and wanted != tensor.dtype and (
            not fits(tensor.array(), tensor.dtype, wanted)):
        return 'F32'
    return wanted


def write_safetensors(file, tensors, types):
    """Writes tensors one at a time, in the order of their names. `tensors` is {name: Tensor}.
    `types` is {name: the float type to write}.

    Returns the number of bytes that were written, and their sha256 in hexadecimal.
    """
    header, position = {}, 0
    for name in sorted(tensors):
        assert types[name] in FLOAT_TYPES
        size = tensors[name].numel * DTYPES[types[name]].itemsize
        header[name] = {'dtype': types[name], 'shape': list(tensors[name].shape),
                        'data_offsets': [position, position + size]}
        position += size
    text = json.dumps(header, separators=(',', ':')).encode('ascii')
    text += b' ' * (-len(text) % 8)
    digest = hashlib.sha256()
    total = 0
    for part in _parts(struct.pack('<Q', len(text)) + text, tensors, types):
        file.write(part)
        digest.update(part)
        total += len(part)
    return total, digest.hexdigest()


def _parts(head, tensors, types):
    yield head
    for name in sorted(tensors):
        tensor = tensors[name]
        yield convert(tensor.array(), tensor.dtype, types[name]).tobytes()
