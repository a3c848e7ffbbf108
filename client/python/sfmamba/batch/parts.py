"""The output folder of a job. Parts are fixed ranges of the input, so that files do not depend on
the time of answers.

  part-0001-00000.parquet          a complete part, ordered by input
  _job/job.json                    describes the job: model, parameters, inputs
  _job/shard-0001.lock             held while a process works on the shard
  _job/part-0001-00000.journal     an incomplete part: a line per answer, in order of arrival
  _job/part-0001-00000.json        a part's manifest, written last: the part is committed

Readers of Parquet folders ignore names that begin with "_".
"""

import fcntl
import json
import os
import pathlib
import secrets
import time
from typing import IO, Any, Dict, Iterator, List, Optional, Tuple

import pyarrow as pa
import pyarrow.parquet as pq

from .rows import Row
from .servers import JobError

Json = Dict[str, Any]

_OWN = '_job'
FORMATS = ('parquet', 'jsonl')


def write_whole(path: pathlib.Path, data: bytes) -> None:
    """Writes a file so that it exists either completely or not at all, even after a crash."""
    temporary = path.with_name(f'.{path.name}.{secrets.token_hex(4)}')
    try:
        with open(temporary, 'wb') as file:
            file.write(data)
            _make_durable(file)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _make_folder_durable(path.parent)


def _make_durable(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _make_folder_durable(folder: pathlib.Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def claim(folder: pathlib.Path, job: Json) -> None:
    """Writes the description of the job to the folder. Raises JobError if the folder contains
    another job."""
    path = folder / _OWN / 'job.json'
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_whole(path, _pretty(job))
    found = json.loads(path.read_text())
    for key in sorted(job.keys() | found.keys()):
        if found.get(key) != job.get(key):
            raise JobError(f'{folder} has another job: {key} is {found.get(key)} there, and '
                           f'{job.get(key)} here. Take another folder, or the same {key}')


def job_in(folder: pathlib.Path) -> Json:
    """Returns the description of the folder's job. Raises JobError if there is no job."""
    try:
        found: Json = json.loads((folder / _OWN / 'job.json').read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise JobError(f'{folder} has no job') from None
    return found


def _pretty(data: Json) -> bytes:
    return (json.dumps(data, indent=1, sort_keys=True) + '\n').encode()


class Lock:
    """Lets only one process at a time work on a shard. The lock ends with the process."""

    def __init__(self, folder: pathlib.Path, shard: int) -> None:
        self._folder = folder
        self._path = folder / _OWN / f'shard-{shard:04}.lock'
        self._temporary = f'.part-{shard:04}-*'

    def take(self, done: int) -> None:
        """Takes the lock. Raises JobError if another process has it. `done` is the number of
        existing rows."""
        self._file = open(self._path, 'a+')
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobError(f'another process works on this: {self._path} is locked') from None
        self._file.truncate(0)
        self._file.write(json.dumps({'pid': os.getpid(), 'since': time.time(), 'done': done}))
        self._file.flush()
        for left in self._folder.rglob(self._temporary):
            left.unlink()  # Left by a process that was killed.

    def holder(self) -> Optional[Json]:
        """Returns what the process with the lock wrote, or None if no process has the lock."""
        try:
            with open(self._path) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    text = file.read()
                    return json.loads(text) if text else None
        except FileNotFoundError:
            pass
        return None


class Part:
    """The rows of the inputs [first, end). Until the part is complete, its rows are only in the
    journal.

    Attributes:
      left: numbers of the inputs without a row. When it is empty, the part is committed.
      committed: the number of rows and of failed rows of the committed part. None if the part is
        not committed.
    """

    def __init__(self, folder: pathlib.Path, shard: int, number: int, first: int, end: int,
                 schema: pa.Schema, suffix: str) -> None:
        name = f'part-{shard:04}-{number:05}'
        self._data = folder / f'{name}.{suffix}'
        self._manifest = folder / _OWN / f'{name}.json'
        self._journal = folder / _OWN / f'{name}.journal'
        self._schema = schema
        self.first = first
        self.end = end
        self._file: Optional[IO[bytes]] = None
        manifest = json.loads(self._manifest.read_text()) if self._manifest.exists() else None
        self.committed: Optional[Tuple[int, int]] = (
            (manifest['rows'], manifest['failed']) if manifest else None)
        self.left: 'set[int]' = set()

    def open(self, retry_failed: bool) -> None:
        """Finds the inputs that need a row."""
        if self.committed and not (retry_failed and self.committed[1]):
            # The process that committed the part may have been killed before it deleted the
            # journal.
            self._journal.unlink(missing_ok=True)
            return
        known = self._known()
        self.left = set(range(self.first, self.end))
        self.left -= {number for number, row in known.items()
                      if not (retry_failed and row['reason'] is not None)}

    def counts(self) -> Tuple[int, int]:
        """Returns the number of rows and how many of them have failed."""
        if self.committed:
            return self.committed
        rows = _journaled(self._journal)
        return len(rows), sum(row['reason'] is not None for row in rows.values())

    def failed(self) -> Iterator[Row]:
        """Returns the rows that have failed."""
        known = self._known() if not self.committed or self.committed[1] else {}
        return (row for _, row in sorted(known.items()) if row['reason'] is not None)

    def add(self, number: int, row: Row) -> bool:
        """Writes a row to the journal. Returns whether the part is complete. Raises OSError if the
        disk is full. Earlier rows are safe then."""
        if self._file is None:
            self._file = open(self._journal, 'ab', buffering=0)
            _cut_torn_line(self._journal)
        line = json.dumps([number, row], separators=(',', ':')).encode() + b'\n'
        written = self._file.write(line)
        if written != len(line):
            raise OSError(f'{self._journal}: the disk is full')
        self.left.discard(number)
        return not self.left

    def commit(self, job: Json) -> Tuple[int, int]:
        """Writes the part, then its manifest, and deletes the journal. Returns the counts of the
        part."""
        known = self._known()
        rows = [known[number] for number in range(self.first, self.end)]
        self._write(rows)
        failed = sum(row['reason'] is not None for row in rows)
        write_whole(self._manifest, _pretty({
            **job, 'first': self.first, 'rows': len(rows), 'failed': failed}))
        self.close()
        self._journal.unlink(missing_ok=True)
        self.committed = (len(rows), failed)
        return self.committed

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, rows: List[Row]) -> None:
        if self._data.suffix == '.jsonl':
            data = b''.join(json.dumps(row).encode() + b'\n' for row in rows)
        else:
            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pylist(rows, self._schema), sink, compression='zstd')
            data = sink.getvalue()
        write_whole(self._data, data)

    def _known(self) -> Dict[int, Row]:
        """Returns the rows by number. A row of the journal replaces the row of the part."""
        rows: List[Row] = []
        if self.committed and self._data.suffix == '.jsonl':
            with open(self._data) as lines:
                rows = [json.loads(line) for line in lines]
        elif self.committed:
            rows = pq.read_table(self._data).to_pylist()
        return {**dict(enumerate(rows, self.first)), **_journaled(self._journal)}


def _journaled(journal: pathlib.Path) -> Dict[int, Row]:
    """Returns the rows of a journal. The last line is ignored if it is incomplete."""
    if not journal.exists():
        return {}
    with open(journal, 'rb') as lines:
        return dict(json.loads(line) for line in lines if line.endswith(b'\n'))


def _cut_torn_line(journal: pathlib.Path) -> None:
    """Removes an incomplete last line, so that the next row begins on a new line."""
    with open(journal, 'rb+') as file:
        end = 0
        for line in file:
            end += len(line) if line.endswith(b'\n') else 0
        file.truncate(end)


def parts_of(folder: pathlib.Path, job: Json, shard: int, schema: pa.Schema) -> Iterator[Part]:
    """Yields all parts of a shard. Shards are ranges of the inputs and are counted from 1."""
    count, shards, size = job['inputs'], job['shards'], job['part_size']
    begin, end = count * (shard - 1) // shards, count * shard // shards
    for number, first in enumerate(range(begin, end, size)):
        yield Part(folder, shard, number, first, min(first + size, end), schema, job['format'])
