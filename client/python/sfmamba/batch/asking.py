"""From pictures to rows: reads pictures, sends them to the servers and makes rows of the
answers."""

import asyncio
import concurrent.futures
import itertools
import re
import threading
from typing import (Any, Callable, Hashable, Iterable, Iterator, List, Optional, Sequence, Set, Tuple,
                    Union)

from .. import _messages
from .._errors import VisionError
from .._images import Resized, to_image
from .rows import TASKS, Requests, Row
from .servers import Access, Servers

# A path (perhaps of an fsspec filesystem), the bytes of a file, or a function that returns them.
Source = Union[str, bytes, Callable[[], bytes]]

_READERS = 16  # Threads. Most of them wait for a disk or a network.
_READ_AHEAD = 64  # Pictures read in addition to the servers' capacity.
_MOST_BYTES = 256 << 20  # Limit of the bytes of unanswered requests.
_AT_ONCE = 64  # Pictures that a thread takes from the input at a time.


def is_remote(path: str) -> bool:
    return '://' in path


def load(source: Source) -> bytes:
    """Returns the bytes of a picture's file. Raises OSError if it cannot be read."""
    if callable(source):
        return source()
    if isinstance(source, bytes):
        return source
    if is_remote(source):
        import fsspec
        with fsspec.open(source, 'rb') as file:
            return bytes(file.read())
    with open(source, 'rb') as file:
        return file.read()


class Asker:
    """Sends pictures to servers and makes rows of their answers. Belongs to one event loop.

      async with Asker('classify', addresses, 'photographs') as asker:
          await asker.each([('a', 'a.jpg'), ('b', data)], lambda key, row: print(key, row))

    A row has the columns of its task without the id. If a picture cannot be read or answered, its
    row has a reason and a message instead.

    Attributes:
      task: the task of the requests, with its columns.
      model: the model that answers.
    """

    def __init__(self, task: str, addresses: Sequence[str], model: str = '',
                 access: Optional[Access] = None, resize: bool = False, **parameters: Any) -> None:
        self.task = TASKS[task]
        self.task.question(model, **parameters)  # Raises an error for invalid parameters.
        if resize and task != 'classify':
            raise ValueError('only a classifier takes pictures that are resized by the client')
        self._servers = Servers(addresses, model, self.task.kind, access or Access())
        self._parameters = parameters
        self._resize = resize
        self._readers = concurrent.futures.ThreadPoolExecutor(_READERS, 'reader')
        self._held = 0  # The bytes of all unanswered requests.

    async def __aenter__(self) -> 'Asker':
        await self._servers.__aenter__()
        self.model = self._servers.model
        question = self.task.question(self.model.name, **self._parameters)
        self._requests = Requests(question)
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self._servers.__aexit__()
        self._readers.shutdown(wait=False)

    async def each(self, pictures: Iterable[Tuple[Hashable, Source]],
                   take: Callable[[Any, Row], None]) -> None:
        """Calls take(key, row) for each picture, in the order of the answers. Reads ahead only as
        many pictures as the servers have room for. Raises JobError if the job cannot continue.
        Errors of `pictures` and `take` are passed on."""
        changed = asyncio.Event()
        running: Set['asyncio.Task[None]'] = set()
        failures: List[BaseException] = []

        def ended(task: 'asyncio.Task[None]') -> None:
            running.discard(task)
            if not task.cancelled() and task.exception():
                failures.append(task.exception())  # type: ignore[arg-type]
            changed.set()

        async def wait_while(is_so: Callable[[], bool]) -> None:
            while is_so() and not failures:
                changed.clear()
                await changed.wait()
            if failures:
                raise failures[0]

        async def ask(key: Hashable, source: Source) -> None:
            take(key, await self._row(source))

        try:
            iterator = iter(pictures)
            while some := await asyncio.to_thread(_next, iterator):
                for key, source in some:
                    await wait_while(lambda: len(running) >= self._most())
                    task = asyncio.create_task(ask(key, source))
                    running.add(task)
                    task.add_done_callback(ended)
            await wait_while(lambda: bool(running))
        finally:
            left = list(running)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def _most(self) -> int:
        """Returns how many pictures may be read and not yet answered."""
        return self._servers.capacity() + _READ_AHEAD if self._held < _MOST_BYTES else 0

    async def _row(self, source: Source) -> Row:
        try:
            image = await asyncio.get_running_loop().run_in_executor(
                self._readers, self._image, source)
        except Exception as error:  # Any error of Pillow or a filesystem for this picture.
            return self.task.failure('UNREADABLE', _text(error))
        request = self._requests.about(image)
        size = request.ByteSize()
        self._held += size
        try:
            response = await self._servers.ask(self._requests.method, request)
        except VisionError as error:
            return self.task.error(error)
        finally:
            self._held -= size
        return self.task.answer(response)

    def _image(self, source: Source) -> Any:
        data = load(source)
        return to_image(Resized(data, self.model)) if self._resize else _messages.Image(encoded=data)


def _next(iterator: Iterator[Any]) -> List[Any]:
    return list(itertools.islice(iterator, _AT_ONCE))


def _text(error: Exception) -> str:
    """Returns the text of an error without paths and memory addresses, so that a job gives the same
    rows everywhere."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f'{type(error).__name__}: {re.sub(" <.*?>", "", str(error))}'


class Rows:
    """An Asker for threads, such as workers of Ray and Spark. The parameters are Asker's.

      rows = Rows('classify', addresses, 'photographs')
      rows(['a.jpg', data])  # A row each, in order.
    """

    def __init__(self, *arguments: Any, **parameters: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._asker = Asker(*arguments, **parameters)
            self._run(self._asker.__aenter__())
        except BaseException:
            self._stop()
            raise
        self.task = self._asker.task

    def __call__(self, sources: Sequence[Source]) -> List[Row]:
        rows: List[Row] = [{}] * len(sources)
        self._run(self._asker.each(enumerate(sources), rows.__setitem__))
        return rows

    def close(self) -> None:
        self._run(self._asker.__aexit__())
        self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
