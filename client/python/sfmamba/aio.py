"""The asyncio version of client.py."""

import asyncio
import collections
import threading
from types import TracebackType
from typing import (Any, AsyncIterable, AsyncIterator, Awaitable, Callable, Deque, Dict, Iterable, List,
                    Optional, Sequence, Tuple, Type, Union, overload)

import grpc
import grpc.aio

from . import _answers, _messages, _requests
from ._aio_stream import AsyncStream
from ._channel import SERVICE, Channels, Connection, Token, credentials
from ._errors import CallErrors, VisionError
from ._flow import Flow
from ._images import Source, readable_again, several
from ._requests import Crops, Method, Options, Pictures, Slide, Tiles
from ._retry import Attempts, Patience
from .client import question
from .results import Answer, Answers, Classification, Detections, ModelInfo, Segmentation


class AsyncClient:
    """Client with methods to await.

      async with AsyncClient('127.0.0.1:8001') as client:
          print((await client.classify('cat.jpg')).labels[0])

    It may be created outside an event loop and used by several event loops. Each loop has its own
    connections. Files are read in asyncio's thread pool. Answers are decoded there too, except in
    stream(), which decodes on the event loop. Cancelling a task cancels its call.
    """

    def __init__(self, server: str, *, timeout: float = 10.0, tls: bool = False,
                 root_certificates: Optional[bytes] = None, private_key: Optional[bytes] = None,
                 certificate_chain: Optional[bytes] = None, server_name: Optional[str] = None,
                 token: Optional[Token] = None, plaintext_token: bool = False,
                 max_images_per_request: int = 64, retry_exhausted: bool = False) -> None:
        """Has the same parameters as Client."""
        self._connection = Connection(
            grpc.aio, server, credentials(tls, root_certificates, private_key, certificate_chain),
            token, timeout, server_name, plaintext_token, retry_exhausted)
        self._max_images = max_images_per_request
        self._lock = threading.Lock()
        self._by_loop: Dict[asyncio.AbstractEventLoop, Channels] = {}  # Guarded by _lock.

    async def close(self) -> None:
        """Cancels the calls in flight of the running loop."""
        channels = self._channels()
        await channels.healthy.close()
        await channels.any.close()

    def _channels(self) -> Channels:
        """Returns the running loop's Channels. Drops the Channels of loops that have ended, which
        closes them."""
        running = asyncio.get_running_loop()
        with self._lock:
            for loop in [loop for loop in self._by_loop if loop.is_closed()]:
                del self._by_loop[loop]
            if running not in self._by_loop:
                self._by_loop[running] = self._connection.channels()
            return self._by_loop[running]

    async def __aenter__(self) -> 'AsyncClient':
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        traceback: Optional[TracebackType]) -> None:
        await self.close()

    @overload
    async def classify(self, images: Source, *, model: str = ..., top_k: int = ...,
                       min_score: float = ..., score_type: str = ..., embedding: bool = ...,
                       class_filter: Sequence[int] = ..., heat_map: Union[int, str, None] = ...,
                       options: Options = ...,
                       timeout: Optional[float] = ...) -> Classification: ...

    @overload
    async def classify(self, images: Pictures, *, model: str = ..., top_k: int = ...,
                       min_score: float = ..., score_type: str = ..., embedding: bool = ...,
                       class_filter: Sequence[int] = ..., heat_map: Union[int, str, None] = ...,
                       options: Options = ...,
                       timeout: Optional[float] = ...) -> Answers[Classification]: ...

    async def classify(self, images: Any, *, model: str = '', top_k: int = 0,
                       min_score: float = 0.0, score_type: str = 'SOFTMAX', embedding: bool = False,
                       class_filter: Sequence[int] = (), heat_map: Union[int, str, None] = None,
                       options: Options = Options(), timeout: Optional[float] = None) -> Any:
        """Like Client.classify()."""
        params = _requests.classify_params(top_k, min_score, score_type, embedding, class_filter,
                                           heat_map)
        return await self._predict(_requests.CLASSIFY, images, model, params, options, timeout)

    @overload
    async def detect(self, images: Source, *, model: str = ...,
                     score_threshold: Optional[float] = ...,
                     nms_iou_threshold: Optional[float] = ..., max_detections: int = ...,
                     masks: bool = ..., class_agnostic_nms: bool = ...,
                     class_filter: Sequence[int] = ..., tiles: Optional[Tiles] = ...,
                     crops: Optional[Crops] = ..., options: Options = ...,
                     timeout: Optional[float] = ...) -> Detections: ...

    @overload
    async def detect(self, images: Pictures, *, model: str = ...,
                     score_threshold: Optional[float] = ...,
                     nms_iou_threshold: Optional[float] = ..., max_detections: int = ...,
                     masks: bool = ..., class_agnostic_nms: bool = ...,
                     class_filter: Sequence[int] = ..., tiles: Optional[Tiles] = ...,
                     crops: Optional[Crops] = ..., options: Options = ...,
                     timeout: Optional[float] = ...) -> Answers[Detections]: ...

    async def detect(self, images: Any, *, model: str = '', score_threshold: Optional[float] = 0.5,
                     nms_iou_threshold: Optional[float] = None, max_detections: int = 0,
                     masks: bool = True, class_agnostic_nms: bool = False,
                     class_filter: Sequence[int] = (), tiles: Optional[Tiles] = None,
                     crops: Optional[Crops] = None, options: Options = Options(),
                     timeout: Optional[float] = None) -> Any:
        """Like Client.detect()."""
        params = _requests.detect_params(score_threshold, nms_iou_threshold, max_detections, masks,
                                         class_agnostic_nms, class_filter, tiles, crops)
        return await self._predict(_requests.DETECT, images, model, params, options, timeout)

    @overload
    async def segment(self, images: Source, *, model: str = ..., model_size: bool = ...,
                      confidence: bool = ..., class_filter: Sequence[int] = ...,
                      slide: Optional[Slide] = ..., options: Options = ...,
                      timeout: Optional[float] = ...) -> Segmentation: ...

    @overload
    async def segment(self, images: Pictures, *, model: str = ..., model_size: bool = ...,
                      confidence: bool = ..., class_filter: Sequence[int] = ...,
                      slide: Optional[Slide] = ..., options: Options = ...,
                      timeout: Optional[float] = ...) -> Answers[Segmentation]: ...

    async def segment(self, images: Any, *, model: str = '', model_size: bool = False,
                      confidence: bool = False, class_filter: Sequence[int] = (),
                      slide: Optional[Slide] = None, options: Options = Options(),
                      timeout: Optional[float] = None) -> Any:
        """Like Client.segment()."""
        params = _requests.segment_params(model_size, confidence, class_filter, slide)
        return await self._predict(_requests.SEGMENT, images, model, params, options, timeout)

    def map(self, method: Callable[..., Awaitable[Answer]], images: Iterable[Source], *,
            in_flight: int = 8,
            **parameters: Any) -> AsyncIterator[Union[Answer, VisionError, OSError]]:
        """Like Client.map().

          async for answer in client.map(client.detect, paths, in_flight=4): ...

        If the loop is left early, the calls in flight are cancelled when the iterator is closed.
        asyncio closes it when it is garbage-collected. Call its aclose() to close it at once.
        """
        if in_flight < 1:
            raise ValueError(f'in_flight is at least 1, not {in_flight}')
        return _map(method, several(images), in_flight, parameters,
                    Patience(1, self._connection.has_answered))

    def stream(self, method: Callable[..., Awaitable[Answer]],
               images: Union[Iterable[Source], AsyncIterable[Source]], *, in_flight: int = 16,
               ordered: bool = True, timeout: Optional[float] = None,
               **parameters: Any
               ) -> AsyncIterator[Tuple[Source, Union[Answer, VisionError, OSError]]]:
        """Like Client.stream(), but `images` may also be an asynchronous iterator.

          async for frame, answer in client.stream(client.detect, frames(), ordered=False): ...

        An iterator that is not asynchronous runs on the event loop and must not block.
        """
        flow = Flow(question(method, parameters), in_flight, ordered)
        return AsyncStream(self._connection, self._channels, flow, several(images),
                           self._connection.timeout(timeout)).answers()

    async def models(self, *, timeout: Optional[float] = None) -> List[ModelInfo]:
        """Like Client.models()."""
        deadline = self._connection.deadline(timeout)
        request, found = _messages.ListModelsRequest(), []
        while True:
            response = await self._call(_requests.LIST_MODELS, request, deadline)
            found += [_answers.model_info(model) for model in response.models]
            if not response.next_page_token:
                return found
            request.page_token = response.next_page_token

    async def model(self, name: str, *, timeout: Optional[float] = None) -> ModelInfo:
        """Like Client.model()."""
        request = _messages.GetModelRequest(name=name)
        deadline = self._connection.deadline(timeout)
        return _answers.model_info(await self._call(_requests.GET_MODEL, request, deadline))

    async def health(self, service: str = SERVICE, *, timeout: Optional[float] = None) -> bool:
        """Like Client.health()."""
        request = _messages.HealthCheckRequest(service=service)
        response = await self._call(_requests.CHECK_HEALTH, request,
                                    self._connection.deadline(timeout))
        return bool(response.status == _messages.HealthCheckResponse.SERVING)

    async def _predict(self, method: Method, images: Any, model: str, params: Any,
                       options: Options, timeout: Optional[float]) -> Any:
        deadline = self._connection.deadline(timeout)
        found: List[Any] = []
        for request in await asyncio.to_thread(_requests.requests, method, images, model, params,
                                               options, self._max_images):
            response = await self._call(method, request, deadline, options.traceparent)
            found += await asyncio.to_thread(_answers.answers, response, method.parse,
                                             len(request.images))
        return _requests.as_asked(images, found)

    async def _call(self, method: Method, request: Any, deadline: float,
                    traceparent: str = '') -> Any:
        connection = self._connection
        attempts = Attempts(method.attempts, deadline, connection.budget,
                            retry_exhausted=connection.retry_exhausted,
                            has_answered=connection.has_answered and method.attempts > 1)
        errors = CallErrors()
        while True:
            call = self._channels().stub(method, errors.only_healthy)
            try:
                response = await call(request, timeout=attempts.timeout(),
                                      metadata=connection.metadata(traceparent))
            except grpc.RpcError as rpc_error:
                error = errors.add(connection.error(rpc_error))
                delay = attempts.delay_after(error)
                if delay is None:
                    raise errors.best from rpc_error
                await asyncio.sleep(delay)
            else:
                attempts.succeeded()
                connection.has_answered = True
                return response


async def _map(method: Callable[..., Awaitable[Any]], images: Iterable[Any], in_flight: int,
               parameters: Any, patience: Patience) -> AsyncIterator[Any]:

    async def answer(image: Any) -> Any:
        try:
            image = readable_again(image)
            while True:
                try:
                    found = await method(image, **parameters)
                    patience.answered()
                    return found
                except VisionError as error:
                    delay = patience.delay_after(error)
                    if delay is None:
                        return error
                    await asyncio.sleep(delay)
        except OSError as error:
            return error

    waiting: Deque['asyncio.Task[Any]'] = collections.deque()
    try:
        for image in images:
            waiting.append(asyncio.create_task(answer(image)))
            if len(waiting) == in_flight:
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
