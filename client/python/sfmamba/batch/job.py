"""One run of a job or of one of its shards. It makes rows for all pictures that have none yet."""

import asyncio
import itertools
import pathlib
from typing import Iterator, Optional, Set, Tuple

from .asking import Asker, Source
from .inputs import Inputs, Listing
from .parts import Json, Lock, Part, claim, parts_of
from .rows import SCHEMA_VERSION, Row

_COMMIT = 3.0  # Seconds that a commit may take after an interrupt.

Key = Tuple[Part, int, str]  # The part, number and id of a picture.


class Progress:
    """Counts of the pictures of one shard.

    Attributes:
      total: all pictures.
      done: pictures with a row, whether they failed or not.
      failed: pictures without an answer.
      before: pictures that were done when this run began.
    """

    def __init__(self) -> None:
        self.total = self.done = self.failed = self.before = 0


def describe(asker: Asker, parameters: Json, inputs: Listing, part_size: int, shards: int,
             file_format: str) -> Json:
    """Returns the description of a job. A run can resume a job only if its description is equal."""
    return {'task': asker.task.method.__name__, 'model': asker.model.name,
            'weights': asker.model.content_sha256, 'parameters': parameters,
            'inputs': len(inputs.hashes), 'inputs_hash': inputs.digest, 'part_size': part_size,
            'shards': shards, 'format': file_format, 'schema_version': SCHEMA_VERSION}


class Job:
    """Runs a shard of a job into a folder. Raises JobError if the folder contains another job, or
    if another process works on the shard."""

    def __init__(self, asker: Asker, inputs: Inputs, listing: Listing, job: Json,
                 folder: pathlib.Path, shard: int, retry_failed: bool) -> None:
        self._asker = asker
        self._inputs = inputs
        self._listing = listing
        self._job = job
        self._retry_failed = retry_failed
        self._failure: Optional[BaseException] = None  # The error of a commit.
        self._commits: Set['asyncio.Task[None]'] = set()
        self._open: Set[Part] = set()
        claim(folder, job)
        lock = Lock(folder, shard)
        self._parts = list(parts_of(folder, job, shard, asker.task.schema))
        counts = [part.counts() for part in self._parts]
        self.progress = Progress()
        self.progress.total = sum(part.end - part.first for part in self._parts)
        self.progress.failed = sum(failed for _, failed in counts)
        self.progress.done = sum(rows for rows, _ in counts)
        if retry_failed:
            self.progress.done -= self.progress.failed
            self.progress.failed = 0
        self.progress.before = self.progress.done
        lock.take(self.progress.done)
        self._lock = lock  # Held until the process ends.

    async def run(self) -> None:
        """Returns when every picture has a row and every part is committed."""
        try:
            await self._asker.each(self._pictures(), self._take)
        finally:
            if self._commits:
                await asyncio.wait(self._commits, timeout=_COMMIT)
            for part in self._open:
                part.close()
        self._check()

    def _pictures(self) -> Iterator[Tuple[Key, Source]]:
        """Yields the pictures without a row. Runs in several threads, but only in one at a time."""
        pictures: Iterator[Tuple[str, Source]] = iter(())
        at = -1  # Number of the next picture of `pictures`.
        for part in self._parts:
            part.open(self._retry_failed)
            if not part.left:
                if not part.committed:
                    part.commit(self._job)
                continue
            if at < 0:
                pictures, at = self._inputs.pictures(part.first), part.first
            pictures = itertools.islice(pictures, part.first - at, None)
            self._open.add(part)
            left = frozenset(part.left)  # A copy, because part.left shrinks meanwhile.
            for number in range(part.first, part.end):
                name, source = next(pictures, ('', b''))
                self._listing.check(number, name)
                if number in left:
                    yield (part, number, name), source
            at = part.end

    def _take(self, key: Key, row: Row) -> None:
        self._check()
        part, number, name = key
        is_complete = part.add(number, {'id': name, **row})
        self.progress.done += 1
        self.progress.failed += row['reason'] is not None
        if is_complete:
            task = asyncio.create_task(self._commit(part))
            self._commits.add(task)
            task.add_done_callback(self._commits.discard)

    async def _commit(self, part: Part) -> None:
        try:
            await asyncio.to_thread(part.commit, self._job)
        except OSError as error:
            self._failure = error
        else:
            self._open.discard(part)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
