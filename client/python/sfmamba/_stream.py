"""A stream of pictures for threads. _aio_stream.py is the version for asyncio."""

import threading
import time
from typing import Any, Iterable, Iterator, Optional

import grpc

from ._channel import Channels, Connection
from ._errors import VisionError
from ._flow import ATTEMPTS, END, Call, Flow, is_harmless, silence
from ._retry import Patience


class Stream:
    """Sends the pictures of `flow` and yields each picture with its answer.

    A thread reads `images`, and gRPC's threads send and receive. The iterator's own thread only
    waits. If a call ends before all pictures are answered, the next call sends the unanswered ones
    again.
    """

    def __init__(self, connection: Connection, channels: Channels, flow: Flow,
                 images: Iterable[Any], timeout: float) -> None:
        self._connection = connection
        self._channels = channels
        self._flow = flow
        self._images = images
        self._timeout = timeout
        self._changed = threading.Condition()  # Guards the flow, its calls and the members below.
        self._stopped = False
        # The error that `images` raised.
        self._failure: Optional[BaseException] = None
        self._patience = Patience(ATTEMPTS, connection.has_answered)
        self._only_healthy = True  # Whether the next call goes only to healthy servers.
        self._heard = time.monotonic()  # Time of the last answer or request.

    def answers(self) -> Iterator[Any]:
        call: Optional[Call] = None  # None while there is nothing to send.
        threading.Thread(target=self._read_images, daemon=True).start()
        try:
            while True:
                yield from self._until_end(call)
                if self._flow.done():
                    return
                if call is None:
                    call = self._start()
                    continue
                self._before_next(call)
                call = None
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
            if call is not None:
                call.call.cancel()

    def _before_next(self, call: Call) -> None:
        """Waits before the next call. Raises the last call's error if there must be no other call.
        If a server ends a call because it drains or has nothing to do, there is no error."""
        self._only_healthy = call.next_only_healthy()
        with self._changed:
            asks = self._flow.asks()
            self._flow.sends_all_again()
            is_owed = self._flow.has_request()
        if is_harmless(call, asks, is_owed):
            return
        delay = self._patience.delay_after(call.failure())
        if delay is None:
            raise call.failure()
        time.sleep(delay)

    def _until_end(self, call: Optional[Call]) -> Iterator[Any]:
        """Yields answers until the call has ended. Without a call, yields answers until there is a
        picture to send."""
        while True:
            with self._changed:
                answers = list(self._flow.take_answers())
                if answers:
                    self._changed.notify_all()
                elif self._failure is not None:
                    raise self._failure
                elif call.ended if call else self._flow.has_request() or self._flow.done():
                    return
                elif not self._wait():
                    return
            yield from answers

    def _wait(self) -> bool:
        """Waits until something changes. Returns False if all pictures are answered and the call
        does not end in time. Raises VisionError if the server is silent for too long."""
        left = None
        if self._flow.done():
            left = END
        elif self._flow.asks():
            left = self._heard + self._timeout - time.monotonic()
            if left <= 0:
                raise silence(self._timeout)
        return self._changed.wait(left) or not self._flow.done()

    def _read_images(self) -> None:
        try:
            images = iter(self._images)
            while self._wait_for_room():
                try:
                    image = next(images)
                except StopIteration:
                    break
                request = self._flow.request(image)
                with self._changed:
                    self._flow.add(image, request)
                    self._changed.notify_all()
        except BaseException as error:  # This is an error of `images`.
            with self._changed:
                self._failure = error
        with self._changed:
            self._flow.exhausted = True
            self._changed.notify_all()

    def _wait_for_room(self) -> bool:
        """Waits until there is room for another picture. Returns False if the caller has left."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._flow.has_room())
            return not self._stopped

    def _start(self) -> Call:
        call = Call(self._only_healthy)
        call.call = self._channels.stream(call.only_healthy)(
            self._requests(call), metadata=self._connection.metadata())
        threading.Thread(target=self._receive, args=(call,), daemon=True).start()
        return call

    def _requests(self, call: Call) -> Iterator[Any]:
        """Yields the messages that gRPC sends."""
        yield self._flow.config()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or call.ended
                                       or not call.takes_requests or self._flow.has_request()
                                       or self._flow.exhausted)
                if (self._stopped or call.ended or not call.takes_requests
                        or not self._flow.has_request()):
                    return
                if not self._flow.asks():
                    self._heard = time.monotonic()
                request = self._flow.next_request()
                self._changed.notify_all()
            yield request

    def _receive(self, call: Call) -> None:
        error: Optional[VisionError] = None
        try:
            for response in call.call:
                with self._changed:
                    self._heard = time.monotonic()
                    self._flow.take(response, call)
                    if call.answered:
                        self._patience.answered()
                        self._connection.has_answered = True
                    self._changed.notify_all()
        except grpc.RpcError as rpc_error:
            error = self._connection.error(rpc_error)
        except VisionError as refused:
            error = refused
            call.call.cancel()
        with self._changed:
            call.error = error
            call.ended = True
            self._changed.notify_all()
