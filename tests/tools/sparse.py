"""Makes checkpoints of the true size that take no disk space. The tensors' data are holes in the
file."""

import json
import math
import struct
import zipfile

from checkpoints import SIZES, Storage, View, _Pickler, pickled


def views(shapes, dtype='F32', first=0):
    """Returns a View for each shape, by name. The storages are numbered from `first`."""
    def hole(number, shape):
        return Storage(str(number), dtype, range(math.prod(shape) * SIZES[dtype]))
    return {name: View(hole(first + i, shape), shape)
            for i, (name, shape) in enumerate(shapes.items())}


def _add_hole(archive, name, size):
    info = zipfile.ZipInfo(name)
    info.file_size = info.compress_size = size
    info.CRC = 0  # This is wrong, so reading the hole would fail.
    info.header_offset = archive.fp.tell()
    archive.fp.write(info.FileHeader())
    archive.fp.seek(size, 1)
    archive.filelist.append(info)
    archive.start_dir = archive.fp.tell()


def write_zip(path, value):
    """Writes a file like checkpoints.zip_file(). The tensors must be Views that views() made."""
    pickler = _Pickler(False)
    pickle = pickled(value, pickler)
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('archive/data.pkl', pickle)
        archive.writestr('archive/byteorder', b'little')
        for storage in pickler.storages.values():
            _add_hole(archive, f'archive/data/{storage.key}', len(storage.data))


def write_safetensors(path, shapes, dtype='F32'):
    header, position = {'__metadata__': {'format': 'pt'}}, 0
    for name, shape in shapes.items():
        size = math.prod(shape) * SIZES[dtype]
        header[name] = {'dtype': dtype, 'shape': list(shape),
                        'data_offsets': [position, position + size]}
        position += size
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        file.truncate(8 + len(text) + position)
