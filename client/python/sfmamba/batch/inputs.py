"""Finds pictures, in a fixed order and each with an id. There may be ten million pictures, so they
are never all in memory as Python objects."""

import base64
import functools
import glob
import hashlib
import itertools
import json
import os
import tarfile
from typing import IO, Any, Iterator, List, NamedTuple, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from .asking import Source, is_remote
from .servers import JobError

Picture = Tuple[str, Source]  # The id comes first.

_PICTURES = ('.jpg', '.jpeg', '.png', '.webp')
_HASH_BYTES = 16
# The number of rows of a Parquet file that are read at a time. A row may contain a whole picture.
_ROWS_AT_ONCE = 256


class Inputs:
    """A list of pictures that can be read several times."""

    def ids(self) -> Iterator[str]:
        """Yields all ids, in order."""
        return (name for name, _ in self.pictures(0))

    def pictures(self, start: int) -> Iterator[Picture]:
        """Yields all pictures from number `start` on."""
        raise NotImplementedError


def find(path: str, id_column: str, image_column: str) -> Inputs:
    """Returns the pictures in `path`: a folder, a file, or several files given as a pattern such as
    'shards/*.tar'. Raises JobError if there is nothing, or if the files are not all of one kind."""
    if _is_folder(path):
        return _RemoteFolder(path) if is_remote(path) else Folder(path)
    files = _matching(path)
    kinds = {os.path.splitext(file)[1].lower() for file in files}
    if len(kinds) != 1:
        raise JobError(f'{path}: got ' + (f'files of the kinds {", ".join(sorted(kinds))}' if kinds
                                          else 'neither a folder nor a file')
                       + ', expected a folder, or files of one kind')
    kind = kinds.pop()
    if kind == '.parquet':
        return Parquet(files, id_column, image_column)
    if kind in ('.jsonl', '.ndjson'):
        return JsonLines(files, id_column, image_column)
    if kind == '.tar':
        return Tars(files)
    return TextList(files)


def _filesystem(path: str) -> Tuple[Any, str]:
    try:
        import fsspec
    except ModuleNotFoundError:
        raise JobError(f'{path} needs fsspec: pip install fsspec') from None
    found: Tuple[Any, str] = fsspec.core.url_to_fs(path)
    return found


def _is_folder(path: str) -> bool:
    if is_remote(path):
        filesystem, inner = _filesystem(path)
        return bool(filesystem.isdir(inner))
    return os.path.isdir(path)


def _matching(path: str) -> List[str]:
    if is_remote(path):
        filesystem, inner = _filesystem(path)
        return [filesystem.unstrip_protocol(one) for one in sorted(filesystem.glob(inner))]
    return [path] if os.path.exists(path) else sorted(glob.glob(path))


def _open(path: str) -> IO[bytes]:
    if is_remote(path):
        filesystem, inner = _filesystem(path)
        return filesystem.open(inner, 'rb')  # type: ignore[no-any-return]
    return open(path, 'rb')


# ---- Kinds of inputs ----


class Folder(Inputs):
    """The pictures in a folder and its subfolders, found by their file name extensions. A folder's
    own pictures come first, by name. Its subfolders follow, by name. Hidden files and folders are
    skipped. Ids are relative paths."""

    def __init__(self, path: str) -> None:
        self._path = os.fsencode(path)

    def pictures(self, start: int) -> Iterator[Picture]:
        return itertools.islice(self._below(b''), start, None)

    def _below(self, folder: bytes) -> Iterator[Picture]:
        files, folders = _Names(), _Names()
        with os.scandir(os.path.join(self._path, folder)) as entries:
            for entry in entries:
                if entry.name.startswith(b'.'):
                    continue
                if entry.is_dir():
                    folders.add(entry.name)
                elif entry.name.lower().endswith(_ENDS):
                    files.add(entry.name)
        for name in files.in_order():
            path = os.path.join(folder, name)
            # A path that is not UTF-8 is escaped, because a column of strings cannot contain it.
            yield (path.decode('utf-8', 'backslashreplace'),
                   os.fsdecode(os.path.join(self._path, path)))
        for name in folders.in_order():
            yield from self._below(os.path.join(folder, name))


_ENDS = tuple(end.encode() for end in _PICTURES)


class _Names:
    """Sorts names of files. Needs a third of the memory that a list of strings needs."""

    def __init__(self) -> None:
        self._last: List[bytes] = []
        self._chunks: List[pa.Array] = []

    def add(self, name: bytes) -> None:
        self._last.append(name)
        if len(self._last) == 1 << 16:
            self._seal()

    def _seal(self) -> None:
        self._chunks.append(pa.array(self._last, pa.large_binary()))
        self._last = []

    def in_order(self) -> Iterator[bytes]:
        self._seal()
        names = pa.concat_arrays(self._chunks)
        self._chunks = []
        order = pc.sort_indices(names)
        for at in range(0, len(order), 1 << 16):
            yield from names.take(order.slice(at, 1 << 16)).to_pylist()


class _RemoteFolder(Inputs):
    """The pictures in a folder of an fsspec filesystem and its subfolders, ordered by path. Hidden
    files and folders are skipped. Ids are relative paths."""

    def __init__(self, path: str) -> None:
        self._filesystem, self._inner = _filesystem(path)

    def pictures(self, start: int) -> Iterator[Picture]:
        return itertools.islice(self._all(), start, None)

    def _all(self) -> Iterator[Picture]:
        folder = self._inner.rstrip('/') + '/'
        for path in sorted(self._filesystem.find(self._inner)):
            name = path[len(folder):]
            if (name.lower().endswith(_PICTURES)
                    and not any(part.startswith('.') for part in name.split('/'))):
                yield name, self._filesystem.unstrip_protocol(path)


class TextList(Inputs):
    """Text files with one path per line. Ids are the paths as written."""

    def __init__(self, files: List[str]) -> None:
        self._files = files

    def pictures(self, start: int) -> Iterator[Picture]:
        def lines() -> Iterator[Picture]:
            for file in self._files:
                with _open(file) as text:
                    for line in text:
                        path = line.rstrip(b'\r\n').decode()
                        if path:
                            yield path, path
        return itertools.islice(lines(), start, None)


class JsonLines(Inputs):
    """Files with one JSON object per line. The image is a path, or {"bytes": base64}."""

    def __init__(self, files: List[str], id_column: str, image_column: str) -> None:
        self._files = files
        self._id = id_column
        self._image = image_column

    def pictures(self, start: int) -> Iterator[Picture]:
        def lines() -> Iterator[Picture]:
            for file in self._files:
                with _open(file) as text:
                    for number, line in enumerate(text, 1):
                        try:
                            row = json.loads(line)
                            yield str(row[self._id]), _source(row[self._image])
                        except (KeyError, TypeError, ValueError) as error:
                            raise JobError(f'{file}:{number}: got {line[:60]!r}, expected an object '
                                           f'with {self._id} and {self._image}: {error}') from None
        return itertools.islice(lines(), start, None)


class Parquet(Inputs):
    """Parquet files. The image column contains paths, bytes, or structures of both as in Hugging
    Face's data sets."""

    def __init__(self, files: List[str], id_column: str, image_column: str) -> None:
        self._files = files
        self._id = id_column
        self._image = image_column
        for file in files:
            with _open(file) as opened:
                columns = pq.ParquetFile(opened).schema_arrow.names
            for column in (id_column, image_column):
                if column not in columns:
                    raise JobError(f'{file} has the columns {", ".join(columns)}, and no {column}: '
                                   'name it by --id_column or --image_column')

    def ids(self) -> Iterator[str]:
        for file in self._files:
            with _open(file) as opened:
                for batch in pq.ParquetFile(opened).iter_batches(columns=[self._id]):
                    yield from map(str, batch.column(0).to_pylist())

    def pictures(self, start: int) -> Iterator[Picture]:
        for file in self._files:
            with _open(file) as opened:
                table = pq.ParquetFile(opened)
                groups = []
                for group in range(table.num_row_groups):
                    rows = table.metadata.row_group(group).num_rows
                    if start >= rows and not groups:
                        start -= rows
                    else:
                        groups.append(group)
                batches = table.iter_batches(_ROWS_AT_ONCE, groups, [self._id, self._image])
                for batch in batches if groups else ():
                    skipped = min(start, batch.num_rows)
                    start -= skipped
                    rest = batch.slice(skipped)
                    yield from zip(map(str, rest.column(self._id).to_pylist()),
                                   map(_source, rest.column(self._image).to_pylist()))


def _source(value: Any) -> Source:
    if isinstance(value, dict):
        data = value.get('bytes')
        if data is not None:
            return base64.b64decode(data) if isinstance(data, str) else data
        value = value.get('path')
    if not isinstance(value, (str, bytes)):
        raise JobError(f'an image is a path or bytes, not {value!r}')
    return value


class Tars(Inputs):
    """WebDataset shards, which contain one picture per sample. Ids are the samples' keys, which are
    paths up to the first dot of the file's name."""

    def __init__(self, files: List[str]) -> None:
        self._files = files

    def pictures(self, start: int) -> Iterator[Picture]:
        def members() -> Iterator[Picture]:
            for file in self._files:
                with _open(file) as opened, tarfile.open(fileobj=opened, mode='r:') as tar:
                    for member in tar:
                        # Otherwise tarfile would keep the headers of all members in memory.
                        tar.members = []  # type: ignore[misc]
                        name = member.name
                        if not member.isfile() or not name.lower().endswith(_PICTURES):
                            continue
                        folder, slash, base = name.rpartition('/')
                        yield (folder + slash + base.partition('.')[0],
                               functools.partial(_read, file, member.offset_data, member.size))
        return itertools.islice(members(), start, None)


def _read(path: str, offset: int, size: int) -> bytes:
    with _open(path) as file:
        file.seek(offset)
        return file.read(size)


# ---- The ids of a job's inputs ----


class Listing(NamedTuple):
    """The ids of a job's inputs as hashes, which need less memory than texts.

    Attributes:
      hashes: uint8 [N, 16], the hash of each id, in the order of the pictures.
      digest: the hash of all `hashes`, in hexadecimal.
    """

    hashes: NDArray[np.uint8]
    digest: str

    def check(self, number: int, name: str) -> None:
        """Raises JobError if picture `number` does not have the id `name`. The cause is that the
        inputs have changed since the job began. `name` is '' if there is no such picture now."""
        if number >= len(self.hashes) or self.hashes[number].tobytes() != _hash(name):
            raise JobError('the inputs have changed since the job was begun: picture '
                           f'{number} ' + (f'is now {name}' if name else 'is missing'))


def _hash(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=_HASH_BYTES).digest()


def listing(inputs: Inputs) -> Listing:
    """Reads all ids. Raises JobError if there are none, or if an id occurs twice."""
    buffer = bytearray()
    for name in inputs.ids():
        buffer += _hash(name)
    if not buffer:
        raise JobError('got no picture, expected names that end in ' + ', '.join(_PICTURES)
                       + ', or a list that is not empty')
    hashes = np.frombuffer(buffer, f'S{_HASH_BYTES}')
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if twice.size:
        wanted = {bytes(one).ljust(_HASH_BYTES, b'\0') for one in twice[:3]}
        names = dict.fromkeys(name for name in inputs.ids() if _hash(name) in wanted)
        raise JobError(f'ids stand for one picture each; {twice.size} stand for several, such as '
                       + ', '.join(names))
    return Listing(np.frombuffer(buffer, np.uint8).reshape(-1, _HASH_BYTES),
                   hashlib.blake2b(buffer, digest_size=_HASH_BYTES).hexdigest())
