"""The asyncio version of _stream.py."""

import asyncio
import time
from typing import Any, AsyncIterable, AsyncIterator, Callable, Iterable, List, Optional, Union

import grpc

from ._channel import Channels, Connection
from ._errors import VisionError
from ._flow import ATTEMPTS, END, Call, Flow, is_harmless, silence
from ._retry import Patience


def _true_error(error: VisionError) -> VisionError:
    """Corrects an error of grpc.aio. If a call ends while a request is being written, grpc.aio
    loses the call's status and reports this INTERNAL error instead. The function replaces it by
    UNAVAILABLE. The stream then makes another call, which receives the true status if the cause
    persists."""
    if error.code is grpc.StatusCode.INTERNAL and error.message == 'Internal error from Core':
        return VisionError(grpc.StatusCode.UNAVAILABLE, 'the server has ended the stream')
    return error


class AsyncStream:
    """Sends the pictures of `flow` and yields each picture with its answer. Belongs to one event
    loop.

    One task reads `images`, and two tasks send and receive. If a call ends before all pictures are
    answered, the next call sends the unanswered ones again.
    """

    def __init__(self, connection: Connection, channels: Callable[[], Channels], flow: Flow,
                 images: Union[Iterable[Any], AsyncIterable[Any]], timeout: float) -> None:
        self._connection = connection
        self._channels = channels  # Returns the Channels of the running loop.
        self._flow = flow
        self._images = images
        self._timeout = timeout
        self._changed = asyncio.Condition()
        # The error that `images` raised.
        self._failure: Optional[BaseException] = None
        self._patience = Patience(ATTEMPTS, connection.has_answered)
        self._only_healthy = True  # Whether the next call goes only to healthy servers.
        self._heard = time.monotonic()  # Time of the last answer or request.

    async def answers(self) -> AsyncIterator[Any]:
        call: Optional[Call] = None  # None while there is nothing to send.
        tasks = [asyncio.create_task(self._read_images())]
        try:
            while True:
                while answers := await self._next_answers(call):
                    for answer in answers:
                        yield answer
                if self._flow.done():
                    return
                if call is None:
                    call = Call(self._only_healthy)
                    call.call = self._channels().stream(call.only_healthy)(
                        metadata=self._connection.metadata())
                    tasks[1:] = [asyncio.create_task(self._send(call)),
                                 asyncio.create_task(self._receive(call))]
                    continue
                await self._end(tasks[1:])
                await self._before_next(call)
                call = None
        finally:
            await self._end(tasks)

    @staticmethod
    async def _end(tasks: List['asyncio.Task[None]']) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _before_next(self, call: Call) -> None:
        """Like Stream._before_next()."""
        self._only_healthy = call.next_only_healthy()
        asks = self._flow.asks()
        self._flow.sends_all_again()
        if is_harmless(call, asks, self._flow.has_request()):
            return
        delay = self._patience.delay_after(call.failure())
        if delay is None:
            raise call.failure()
        await asyncio.sleep(delay)

    async def _next_answers(self, call: Optional[Call]) -> List[Any]:
        """Waits for answers and returns at least one. Returns an empty list if the call has ended.
        Without a call, returns an empty list as soon as there is a picture to send."""
        async with self._changed:
            while True:
                answers = list(self._flow.take_answers())
                if answers:
                    self._changed.notify_all()
                    return answers
                if self._failure is not None:
                    raise self._failure
                if call.ended if call else self._flow.has_request() or self._flow.done():
                    return []
                if not await self._wait():
                    return []

    async def _wait(self) -> bool:
        """Like Stream._wait()."""
        left = None
        if self._flow.done():
            left = END
        elif self._flow.asks():
            left = self._heard + self._timeout - time.monotonic()
            if left <= 0:
                raise silence(self._timeout)
        try:
            await asyncio.wait_for(self._changed.wait(), left)
        except asyncio.TimeoutError:
            return not self._flow.done()
        return True

    async def _read_images(self) -> None:
        try:
            if isinstance(self._images, AsyncIterable):
                async for image in self._images:
                    await self._add(image)  # Returns when there is room for another.
            else:
                for image in self._images:
                    await self._add(image)
        except Exception as error:  # This is an error of `images`.
            self._failure = error
        async with self._changed:
            self._flow.exhausted = True
            self._changed.notify_all()

    async def _add(self, image: Any) -> None:
        request = await asyncio.to_thread(self._flow.request, image)
        async with self._changed:
            self._flow.add(image, request)
            self._changed.notify_all()
            await self._changed.wait_for(self._flow.has_room)

    async def _send(self, call: Call) -> None:
        try:
            await call.call.write(self._flow.config())
            while True:
                async with self._changed:
                    await self._changed.wait_for(
                        lambda: not call.takes_requests or self._flow.has_request()
                        or self._flow.exhausted)
                    if not call.takes_requests or not self._flow.has_request():
                        break
                    if not self._flow.asks():
                        self._heard = time.monotonic()
                    request = self._flow.next_request()
                    self._changed.notify_all()
                await call.call.write(request)
            await call.call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # _receive() finds out why the call has ended.

    async def _receive(self, call: Call) -> None:
        error: Optional[VisionError] = None
        try:
            async for response in call.call:
                async with self._changed:
                    self._heard = time.monotonic()
                    self._flow.take(response, call)
                    if call.answered:
                        self._patience.answered()
                        self._connection.has_answered = True
                    self._changed.notify_all()
        except grpc.RpcError as rpc_error:
            error = _true_error(self._connection.error(rpc_error))
        except VisionError as refused:
            error = refused
        finally:
            call.call.cancel()  # No effect on a call that has ended.
        async with self._changed:
            call.error = error
            call.ended = True
            self._changed.notify_all()
