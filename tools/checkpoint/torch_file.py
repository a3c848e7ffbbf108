"""Reads files that torch.save() has written. They may have the zip format or the older plain
format, which PyTorch used before 1.6.
"""

import collections
import dataclasses
import struct
import zipfile
import zlib

from checkpoint.pickle_reader import STORAGE_TYPES, Dropped, Name, PickleReader
from checkpoint.tensor import CheckpointError, Storage, printable

LEGACY_MAGIC = 0x1950a86a20f9469cfc6c
LEGACY_PROTOCOL = 1001


@dataclasses.dataclass
class TorchFile:
    value: object  # The saved object: dictionaries, lists, tensors, numbers, strings.
    dropped: dict  # The names of dropped values, with the number of their calls.


def _identifier(identifier, length):
    """Returns (dtype, key, number of elements) from a storage's persistent identifier. dtype is a
    Dropped if the type is not known.
    """
    if isinstance(identifier, tuple) and identifier and identifier[0] == 'module':
        raise CheckpointError('the file holds a whole module with its code; expected a state dict')
    if not isinstance(identifier, tuple) or len(identifier) != length or (
            identifier[0] != 'storage' or not isinstance(identifier[2], str)):
        raise CheckpointError('the pickle refers to something that is not a storage')
    kind, numel = identifier[1], identifier[4]
    if isinstance(kind, Dropped) and kind.name:
        return kind, identifier[2], numel
    if not isinstance(kind, Name) or kind.full not in STORAGE_TYPES:
        raise CheckpointError('the pickle has a storage of no known type')
    if type(numel) is not int or not 0 <= numel < 2**60:
        raise CheckpointError('the pickle has a storage whose size is not a number')
    return STORAGE_TYPES[kind.full], identifier[2], numel


def _remember(storages, key, dtype, numel):
    """Returns the Storage of this key, which several tensors may share."""
    storage = storages.setdefault(key, Storage(dtype, numel))
    if (storage.dtype, storage.numel) != (dtype, numel):
        raise CheckpointError(f'storage {printable(key)} has two types or sizes')
    return storage


class _Archive:
    """The entries of a zip file in which nothing is compressed."""

    def __init__(self, file, data):
        try:
            entries = zipfile.ZipFile(file).infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError,
                struct.error, EOFError) as error:
            raise CheckpointError(f'a damaged or truncated zip file ({error})') from error
        if sum(entry.compress_size for entry in entries) > len(data):
            raise CheckpointError('a zip file whose entries overlap')
        self._data = data
        self._entries = {entry.filename: entry for entry in entries}
        pickles = [name for name in self._entries if name.split('/')[1:] == ['data.pkl']]
        if len(pickles) != 1:
            raise CheckpointError('a zip file, but not one that torch.save wrote: it has '
                                  f'{len(pickles)} data.pkl, expected 1')
        self._folder = pickles[0].split('/')[0]

    def find(self, name):
        """Returns the size of an entry, or None if there is no such entry."""
        entry = self._entries.get(f'{self._folder}/{name}')
        return None if entry is None else entry.file_size

    def read(self, name):
        """Returns the bytes of an entry without copying them. Verifies the checksum."""
        entry = self._entries[f'{self._folder}/{name}']
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 or (
                entry.file_size != entry.compress_size):
            raise CheckpointError(f'{printable(name)}: compressed or encrypted; torch.save stores '
                                  'entries as they are')
        header = bytes(self._data[entry.header_offset:entry.header_offset + 30])
        if len(header) < 30 or not header.startswith(b'PK\x03\x04'):
            raise CheckpointError(f'{printable(name)}: its place in the zip file holds no entry')
        start = entry.header_offset + 30 + sum(struct.unpack('<HH', header[26:30]))
        content = self._data[start:start + entry.file_size]
        if len(content) != entry.file_size:
            raise CheckpointError(f'{printable(name)}: reaches beyond the end of the file')
        if zlib.crc32(content) != entry.CRC:
            raise CheckpointError(f'{printable(name)}: damaged, its checksum differs')
        return content


def _read_zip(file, data):
    archive = _Archive(file, data)
    if archive.find('byteorder') is not None and bytes(archive.read('byteorder')) != b'little':
        raise CheckpointError('byte order: expected little')

    storages = {}

    def load_storage(identifier):
        dtype, key, numel = _identifier(identifier, 5)
        if isinstance(dtype, Dropped):
            return dtype
        storage = _remember(storages, key, dtype, numel)
        entry = f'data/{key}'
        storage.read = lambda: archive.read(entry)
        if archive.find(entry) != storage.nbytes:
            raise CheckpointError(
                f'storage {printable(key)}: {numel} elements of {dtype} take {storage.nbytes} '
                f'bytes, the file has {archive.find(entry)}')
        return storage

    reader = PickleReader(archive.read('data.pkl'), 0, load_storage)
    return TorchFile(reader.read(), dict(reader.dropped))


def _place(data, position, key, storages):
    """Assigns the bytes at `position` to the storage `key`. Returns the position after them."""
    if key not in storages:
        raise CheckpointError('the file lists a storage that no tensor has')
    storage = storages[key]
    start = position + 8
    end = start + storage.nbytes
    if end > len(data):
        raise CheckpointError(
            f'storage {printable(key)}: {storage.numel} elements of {storage.dtype} reach beyond '
            'the end of the file')
    if struct.unpack('<Q', data[position:start])[0] != storage.numel:
        raise CheckpointError(f'storage {printable(key)}: its size is not that of the pickle')
    storage.read = lambda: data[start:end]
    return end


def _read_legacy(data):
    storages = {}
    position = 0
    dropped = collections.Counter()

    def load_storage(identifier):
        if isinstance(identifier, tuple) and identifier[5:] not in ((), (None,)):
            raise CheckpointError('the pickle has a view of a storage, a form of before PyTorch 0.4')
        dtype, key, numel = _identifier(identifier, 6)
        if isinstance(dtype, Dropped):
            raise dtype.refusal()  # The size is unknown, and so is the place of the next storage.
        return _remember(storages, key, dtype, numel)

    def read():
        nonlocal position
        reader = PickleReader(data, position, load_storage)
        value = reader.read()
        position = reader.position
        dropped.update(reader.dropped)
        return value

    try:
        magic = read()
    except CheckpointError as error:
        raise CheckpointError(f'not a file of PyTorch or safetensors ({error})') from error
    if isinstance(magic, Dropped) and magic.name:
        raise magic.refusal()
    if magic != LEGACY_MAGIC:
        raise CheckpointError('a pickle, but not one that torch.save wrote')
    if read() != LEGACY_PROTOCOL:
        raise CheckpointError(f'PyTorch\'s file protocol: expected {LEGACY_PROTOCOL}')
    system = read()
    if not isinstance(system, dict) or system.get('little_endian') is not True:
        raise CheckpointError('byte order: expected little')
    value = read()
    keys = read()
    if not isinstance(keys, list) or len(keys) != len(storages):
        raise CheckpointError('the list of storages does not fit the pickle')
    for key in keys:
        position = _place(data, position, key if isinstance(key, str) else '', storages)
    for key, storage in storages.items():
        if storage.read is None:
            raise CheckpointError(f'storage {printable(key)} is not in the file')
    return TorchFile(value, dict(dropped))


def read_torch_file(file, data):
    """Returns the TorchFile of the open `file`. `data` is the file's bytes, which must outlive the
    result.
    """
    if bytes(data[:4]) == b'PK\x03\x04':
        return _read_zip(file, data)
    if bytes(data[257:262]) == b'ustar':
        raise CheckpointError('a tar file; torch.save has not written these since PyTorch 0.1')
    return _read_legacy(data)
