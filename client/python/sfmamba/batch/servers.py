"""Several servers of one model. Each server has a window, which limits its requests in flight. If
a server is lost, the others do its work."""

import asyncio
import collections
import enum
import random
import time
from typing import Any, Deque, List, Optional, Sequence

import grpc
import grpc.aio

from .. import _answers, _messages, _requests
from .._channel import SERVICE, Connection, Token, credentials
from .._errors import VisionError
from .._retry import JITTER, PATIENCE
from ..results import ModelInfo
from .window import MOST, Window

_PROBE = 5.0  # Seconds in which a server must say that it serves.
_BETWEEN_PROBES = 0.5
_FIRST_PROBES = 10.0  # Seconds of attempts to reach the first server.
_BUSY = 0.1  # Seconds to wait for a server that has no room and names no delay.
_OUT_OF_MEMORY = 3  # Attempts for a picture for which the device lacks memory.
# The server's max_concurrent_streams. gRPC does not send more calls at a time over one connection.
_CALLS_OF_A_CONNECTION = 256


class JobError(Exception):
    """The job cannot continue. The text says why."""


class Verdict(enum.Enum):
    """The consequence of an error."""

    PICTURE = 1  # Only this picture fails.
    BUSY = 2  # The server has no room now.
    LOST = 3  # This server cannot be used now, but another may.
    JOB = 4  # Every picture would fail.


def verdict(error: VisionError) -> Verdict:
    code = error.code.name
    if code == 'RESOURCE_EXHAUSTED':
        is_busy = error.retry_delay or error.reason == 'PREDICTED_DEADLINE_MISS'
        return Verdict.BUSY if is_busy else Verdict.PICTURE
    if code == 'DEADLINE_EXCEEDED':
        return Verdict.BUSY  # The request has waited as long as the server allows.
    if code in ('UNAVAILABLE', 'NOT_FOUND', 'UNAUTHENTICATED', 'PERMISSION_DENIED', 'CANCELLED'):
        return Verdict.LOST
    if code in ('INTERNAL', 'UNKNOWN') and not error.reason:
        return Verdict.LOST  # An error of the network or of a proxy.
    if code in ('FAILED_PRECONDITION', 'UNIMPLEMENTED', 'DATA_LOSS'):
        return Verdict.JOB
    is_of_picture = not error.fields or error.field.startswith('images')
    return Verdict.PICTURE if is_of_picture else Verdict.JOB


class Access:
    """How the servers are reached. The parameters have the meaning that they have for Client."""

    def __init__(self, tls: bool = False, root_certificates: Optional[bytes] = None,
                 token: Optional[Token] = None, plaintext_token: bool = False) -> None:
        self._tls = tls
        self._root_certificates = root_certificates
        self._token = token
        self._plaintext_token = plaintext_token

    def connection(self, address: str) -> Connection:
        secrets = credentials(self._tls, self._root_certificates, None, None)
        return Connection(grpc.aio, address, secrets, self._token, _PROBE,
                          plaintext_token=self._plaintext_token)


class Server:
    """One server. Belongs to the running event loop.

    Attributes:
      error: why the server cannot be used. None if it can.
    """

    def __init__(self, address: str, access: Access) -> None:
        self.address = address
        self.window = Window()
        self.error: Optional[VisionError] = VisionError(grpc.StatusCode.UNAVAILABLE, 'not asked yet')
        self._connection = access.connection(address)
        self._channels = [self._connection.channels(apart=True)
                          for _ in range(-(-MOST // _CALLS_OF_A_CONNECTION))]
        self._next = 0

    async def close(self) -> None:
        for channels in self._channels:
            await channels.healthy.close(None)
            await channels.any.close(None)

    async def call(self, method: Any, request: Any, timeout: Optional[float] = None) -> Any:
        """Returns the response or raises VisionError. Makes one attempt."""
        self._next = (self._next + 1) % len(self._channels)
        try:
            return await self._channels[self._next].stub(method)(
                request, timeout=timeout, metadata=self._connection.metadata())
        except grpc.RpcError as rpc_error:
            raise self._connection.error(rpc_error) from None

    async def probe(self, name: str, task: str) -> ModelInfo:
        """Returns the model that the server serves under this name. '' means its only or default
        model for the task. Raises VisionError if the server or the model is not ready."""
        health = await self.call(_requests.CHECK_HEALTH,
                                 _messages.HealthCheckRequest(service=SERVICE), _PROBE)
        if health.status != _messages.HealthCheckResponse.SERVING:
            raise VisionError(grpc.StatusCode.UNAVAILABLE, f'{self.address} does not serve now')
        model = _answers.model_info(await self.call(
            _requests.GET_MODEL,
            _messages.GetModelRequest(name=name or await self._default_model(task)), _PROBE))
        if model.state != 'READY':
            raise VisionError(grpc.StatusCode.UNAVAILABLE,
                              f'{model.name} is {model.state} at {self.address}')
        return model

    async def _default_model(self, task: str) -> str:
        request, models = _messages.ListModelsRequest(), []
        while True:
            response = await self.call(_requests.LIST_MODELS, request, _PROBE)
            models += [one for one in response.models
                       if _messages.Model.Task.Name(one.task) == task]
            request.page_token = response.next_page_token
            if not request.page_token:
                break
        wanted = [one for one in models if one.default_for_task] or models
        names = {one.name.partition('/versions/')[0] for one in wanted}
        if len(names) != 1:
            raise JobError(f'{self.address} has {len(names)} models for {task}, expected one or a '
                           'default: name it by --model')
        return names.pop()


class Servers:
    """The servers of one model, for one event loop.

      async with Servers(addresses, 'photographs', 'CLASSIFICATION', access) as servers:
          response = await servers.ask(method, request)

    Attributes:
      model: the model of the server that was reached first. A server with another version or
        other weights is not used.
    """

    def __init__(self, addresses: Sequence[str], model: str, task: str,
                 access: Access) -> None:
        self._addresses = list(dict.fromkeys(addresses))
        self._name = model
        self._task = task
        self._access = access
        self._servers: List[Server] = []
        self._waiting: Deque['asyncio.Future[Server]'] = collections.deque()
        self._timer: Optional[asyncio.TimerHandle] = None
        self._probes: List['asyncio.Task[None]'] = []
        # The time since which no server could be used. None if a server can be used.
        self._away_since: Optional[float] = None
        self.model: ModelInfo

    async def __aenter__(self) -> 'Servers':
        self._servers = [Server(one, self._access) for one in self._addresses]
        await self._find_model()
        for server in self._servers:
            if server.error:
                self._probe_later(server)
        return self

    async def __aexit__(self, *_: Any) -> None:
        for probe in self._probes:
            probe.cancel()
        await asyncio.gather(*self._probes, return_exceptions=True)
        if self._timer:
            self._timer.cancel()
        for server in self._servers:
            await server.close()

    def capacity(self) -> int:
        """Returns how many requests the servers accept now, at least 1."""
        return max(1, sum(one.window.size for one in self._servers if not one.error))

    async def ask(self, method: Any, request: Any) -> Any:
        """Returns the response of any server with room. Raises VisionError if only this picture
        fails, and JobError if the job cannot continue."""
        is_again, out_of_memory = False, 0
        while True:
            server = await self._take(is_again)
            sent = time.monotonic()
            try:
                response = await server.call(method, request)
            except VisionError as error:
                is_again = True
                out_of_memory += error.reason == 'DEVICE_OOM'
                if out_of_memory == _OUT_OF_MEMORY:
                    raise
                self._failed(server, error, sent)
            else:
                server.window.answered(sent, time.monotonic())
                return response
            finally:
                server.window.in_flight -= 1
                self._hand_out()

    def _failed(self, server: Server, error: VisionError, sent: float) -> None:
        """Returns normally if the picture must be sent again. Otherwise raises an error."""
        kind = verdict(error)
        if kind is Verdict.PICTURE:
            raise error
        if kind is Verdict.JOB:
            raise JobError(f'{server.address}: {error}')
        if kind is Verdict.BUSY:
            delay = (error.retry_delay or _BUSY) * random.uniform(1, 1 + JITTER)
            server.window.refused(sent, delay, time.monotonic())
        elif not server.error:
            server.error = error
            self._probe_later(server)

    # ---- Room ----

    async def _take(self, is_again: bool) -> Server:
        """Waits for a server with room. Returns it and counts one more request in flight there.
        `is_again` means that the request was sent before and is sent again. Such a request goes
        before all waiting requests."""
        waiter: 'asyncio.Future[Server]' = asyncio.get_running_loop().create_future()
        if is_again:
            self._waiting.appendleft(waiter)
        else:
            self._waiting.append(waiter)
        self._hand_out()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and not waiter.exception():
                waiter.result().window.in_flight -= 1
            raise

    def _hand_out(self) -> None:
        """Gives servers with room to waiting requests."""
        now = time.monotonic()
        usable = [one for one in self._servers if not one.error]
        while self._waiting:
            if self._waiting[0].done():
                # The request was cancelled.
                self._waiting.popleft()
                continue
            free = [one for one in usable if one.window.has_room(now)]
            if not free:
                break
            server = min(free, key=lambda one: one.window.in_flight / one.window.size)
            server.window.in_flight += 1
            self._waiting.popleft().set_result(server)
        closed = [one.window.closed_for(now) for one in usable]
        delay = min((one for one in closed if one), default=0.0)
        if delay and self._waiting and not self._timer:
            self._timer = asyncio.get_running_loop().call_later(delay, self._opened)

    def _opened(self) -> None:
        self._timer = None
        self._hand_out()

    # ---- Probes ----

    async def _find_model(self) -> None:
        """Finds the model of the first server that can be reached."""
        end = time.monotonic() + _FIRST_PROBES
        while True:
            errors = await asyncio.gather(*map(self._admit, self._servers))
            if any(error is None for error in errors):
                return
            if time.monotonic() > end or all(
                    error and error.code.name in ('NOT_FOUND', 'UNAUTHENTICATED', 'PERMISSION_DENIED')
                    for error in errors):
                raise JobError(self._why())
            await asyncio.sleep(_BETWEEN_PROBES)

    async def _admit(self, server: Server) -> Optional[VisionError]:
        """Asks a server whether it can be used. Returns the reason if it cannot."""
        try:
            model = await server.probe(self._name, self._task)
            self._check_same(model)
        except VisionError as error:
            server.error = error
            return error
        server.window.restart(model.max_batch_size)
        server.error = None
        self._away_since = None
        self._hand_out()
        return None

    def _check_same(self, model: ModelInfo) -> None:
        if not hasattr(self, 'model'):
            if model.task != self._task:
                raise JobError(f'{model.name} is for {model.task}, expected one for {self._task}')
            self.model = model
            self._name = model.name  # Includes the version, because defaults may differ.
        found = (model.name, model.content_sha256)
        expected = (self.model.name, self.model.content_sha256)
        if found != expected:
            raise VisionError(grpc.StatusCode.NOT_FOUND,
                              f'got weights {found[1][:12]} of {found[0]}, expected '
                              f'{expected[1][:12]} of {expected[0]}')

    def _probe_later(self, server: Server) -> None:
        self._probes = [one for one in self._probes if not one.done()]
        self._probes.append(asyncio.get_running_loop().create_task(self._probe(server)))

    async def _probe(self, server: Server) -> None:
        """Asks the server again until it can be used."""
        try:
            while await self._admit(server) is not None:
                if all(one.error for one in self._servers):
                    self._away_since = self._away_since or time.monotonic()
                    if time.monotonic() - self._away_since > PATIENCE:
                        raise JobError(self._why())
                await asyncio.sleep(_BETWEEN_PROBES * random.uniform(1, 1 + JITTER))
        except Exception as error:  # Also errors of the file with the token.
            for waiter in self._waiting:
                if not waiter.done():
                    waiter.set_exception(error)
            self._waiting.clear()

    def _why(self) -> str:
        return 'no server can be used: ' + '; '.join(
            f'{one.address}: {one.error}' for one in self._servers)

