"""Writes checkpoints in PyTorch's formats, byte by byte and without PyTorch."""

import dataclasses
import io
import json
import math
import struct
import zipfile

import numpy as np

LEGACY_MAGIC = 0x1950a86a20f9469cfc6c
STORAGES = {'F64': 'DoubleStorage', 'F32': 'FloatStorage', 'F16': 'HalfStorage',
            'BF16': 'BFloat16Storage', 'I64': 'LongStorage', 'Q8': 'QInt8Storage'}
SIZES = {'F64': 8, 'F32': 4, 'F16': 2, 'BF16': 2, 'I64': 8, 'Q8': 1}
HISTORY_BUFFER = 'mmengine.logging.history_buffer.HistoryBuffer'


# pickled() accepts the classes below, and Python's None, bool, int, float, str, list, tuple and
# dict.

@dataclasses.dataclass(frozen=True)
class Raw:
    """Pickle operations that are written unchanged."""
    code: bytes


@dataclasses.dataclass(frozen=True)
class Name:
    full: str


@dataclasses.dataclass(frozen=True)
class Call:
    name: str
    args: tuple = ()
    state: object = None   # The state for a BUILD operation after the call.
    items: dict = None     # Items to set in the result.
    call: bytes = b'R'     # REDUCE or NEWOBJ.


@dataclasses.dataclass(frozen=True)
class Storage:
    key: str
    dtype: str
    data: bytes
    numel: int = None      # The size in the file. None: the true size.

    def count(self):
        return len(self.data) // SIZES[self.dtype] if self.numel is None else self.numel


@dataclasses.dataclass(frozen=True)
class View:
    """A tensor, which is a view of a storage."""
    storage: Storage
    shape: tuple
    strides: tuple = None  # None means contiguous.
    offset: int = 0


def tensor(key, array, dtype=None):
    """Returns a View of the whole array in a new storage. A bfloat16 array is passed as uint16."""
    array = np.asarray(array)
    dtype = dtype or {'f8': 'F64', 'f4': 'F32', 'f2': 'F16', 'i8': 'I64'}[array.dtype.str[1:]]
    return View(Storage(key, dtype, np.ascontiguousarray(array).tobytes()), array.shape)


def tensors(arrays):
    """Returns a View for each array, by name. The storages are numbered."""
    return {name: tensor(str(i), array) for i, (name, array) in enumerate(arrays.items())}


def ordered(items):
    return Call('collections.OrderedDict', (), items=items, state={'_metadata': {}})


def row_major(shape):
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


class _Pickler:
    """Writes protocol 2 of pickle. `storages` collects the storages of the tensors."""

    def __init__(self, legacy):
        self.legacy = legacy
        self.storages = {}

    def code(self, value):
        forms = {Raw: lambda v: v.code, Name: self._name, Call: self._call, View: self._view,
                 list: lambda v: b'](' + self._each(v) + b'e',
                 tuple: lambda v: b'(' + self._each(v) + b't',
                 dict: lambda v: b'}' + self._items(v),
                 str: lambda v: b'X' + struct.pack('<I', len(v.encode())) + v.encode(),
                 float: lambda v: b'G' + struct.pack('>d', v),
                 bool: lambda v: b'\x88' if v else b'\x89', int: self._int,
                 type(None): lambda _: b'N'}
        return forms[type(value)](value)

    def _each(self, values):
        return b''.join(map(self.code, values))

    def _items(self, value):
        return b'(' + b''.join(self.code(k) + self.code(v) for k, v in value.items()) + b'u'

    def _int(self, value):
        size = value.bit_length() // 8 + 1
        return b'\x8a' + bytes([size]) + value.to_bytes(size, 'little', signed=True)

    def _name(self, name):
        return 'c{}\n{}\n'.format(*name.full.rsplit('.', 1)).encode()

    def _call(self, call):
        code = self._name(Name(call.name)) + self.code(call.args) + call.call
        if call.items is not None:
            code += self._items(call.items)
        return code if call.state is None else code + self.code(call.state) + b'b'

    def _view(self, view):
        storage = view.storage
        self.storages[storage.key] = storage
        identifier = ['storage', Name('torch.' + STORAGES[storage.dtype]), storage.key, 'cuda:0',
                      storage.count()]
        identifier = self.code(tuple(identifier + [None] * self.legacy)) + b'Q'
        strides = row_major(view.shape) if view.strides is None else view.strides
        return self.code(Call('torch._utils._rebuild_tensor_v2', (
            Raw(identifier), view.offset, view.shape, strides, False, ordered({}))))


def pickled(value, pickler=None):
    return b'\x80\x02' + (pickler or _Pickler(False)).code(value) + b'.'


def zip_file(value, byteorder=b'little', compression=zipfile.ZIP_STORED):
    """Returns the bytes of a file in the format of torch.save()."""
    pickler = _Pickler(False)
    pickle = value.code if isinstance(value, Raw) else pickled(value, pickler)
    file = io.BytesIO()
    with zipfile.ZipFile(file, 'w', compression) as archive:
        archive.writestr('model/data.pkl', pickle)
        archive.writestr('model/byteorder', byteorder)
        for storage in pickler.storages.values():
            archive.writestr(f'model/data/{storage.key}', storage.data)
        archive.writestr('model/version', b'3\n')
    return file.getvalue()


def legacy_file(value):
    """Returns the bytes of a file in the format that PyTorch used before version 1.6."""
    pickler = _Pickler(True)
    pickle = value.code if isinstance(value, Raw) else pickled(value, pickler)
    keys = sorted(pickler.storages)
    system = {'protocol_version': 1001, 'little_endian': True, 'type_sizes': {'int': 4}}
    head = b''.join(map(pickled, (LEGACY_MAGIC, 1001, system))) + pickle + pickled(keys)
    return head + b''.join(struct.pack('<Q', pickler.storages[key].count()) +
                           pickler.storages[key].data for key in keys)


def safetensors_file(arrays, change=lambda header: header):
    """Returns the bytes of a safetensors file. `change` may damage its header."""
    header, data = {'__metadata__': {'format': 'pt'}}, b''
    for name, array in arrays.items():
        dtype = {'f8': 'F64', 'f4': 'F32', 'f2': 'F16', 'u2': 'BF16', 'i8': 'I64'}[
            array.dtype.str[1:]]
        header[name] = {'dtype': dtype, 'shape': list(array.shape),
                        'data_offsets': [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(change(header)).encode()
    return struct.pack('<Q', len(text)) + text + data


def _numpy(values):
    encode = Call('_codecs.encode', ('\x00' * 8 * len(values), 'latin1'))
    dtype = Call('numpy.dtype', ('f8', False, True), (3, '<', None, None, None, -1, -1, 0))
    return Call('numpy.core.multiarray._reconstruct',
                (Name('numpy.ndarray'), (0,), Call('_codecs.encode', ('b', 'latin1'))),
                (1, (len(values),), dtype, False, encode))


def mmengine(state, classes):
    """Returns a checkpoint with the contents that mmengine's runner saves. The weights are one of
    many entries."""
    methods = {'min': Call('__builtin__.getattr', (Name(HISTORY_BUFFER), 'min'))}
    history = Call(HISTORY_BUFFER, (), {'max_length': 1000000, '_log_history': _numpy([0.5, 0.25]),
                                        'statistics_methods': methods}, call=b'\x81')
    scalar = Call('numpy.core.multiarray.scalar', (
        Call('numpy.dtype', ('f8', False, True)), Call('_codecs.encode', ('\x00' * 8, 'latin1'))))
    average = tensor('optimizer', np.ones(3, np.float32))
    return {
        'meta': {'epoch': 36, 'dataset_meta': {'classes': tuple(classes), 'palette': [(1, 2, 3)]},
                 'cfg': 'model = dict()', 'seed': 7},
        'state_dict': ordered(state),
        'message_hub': {'log_scalars': ordered({'train/loss': history}),
                        'runtime_info': ordered({'best': scalar}), 'resumed_keys': {}},
        'optimizer': {'state': {0: {'step': 9, 'exp_avg': average}},
                      'param_groups': [{'lr': 0.1, 'params': [0]}]},
        'param_schedulers': [{'last_step': 9}],
    }
