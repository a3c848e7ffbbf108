"""The client for threads. aio.py has the version for asyncio."""

import collections
import concurrent.futures
import threading
import time
from types import TracebackType
from typing import (Any, Callable, Deque, Iterable, Iterator, List, Optional, Sequence, Tuple, Type,
                    Union, overload)

import grpc

from . import _answers, _messages, _requests
from ._channel import SERVICE, Connection, Token, credentials
from ._errors import CallErrors, VisionError
from ._flow import Flow, Question
from ._images import Source, readable_again, several
from ._requests import Crops, Method, Options, Pictures, Slide, Tiles
from ._retry import Attempts, Patience
from ._stream import Stream
from .results import Answer, Answers, Classification, Detections, ModelInfo, Segmentation


class Client:
    """Calls a vision server, or several servers that share one name.

      with Client('127.0.0.1:8001') as client:
          print(client.classify('cat.jpg').labels[0])

    A picture is a JPEG, PNG or WebP file, given as a path, as bytes or as an open binary file. It
    may also be a NumPy array, a PIL image, a Picture or a Resized. An array has uint8 pixels: [H,
    W, 3] in RGB, [H, W, 4] with alpha, which is dropped, or [H, W]. An array may also be a
    preprocessed float32 or float16 [3, H, W]. The pixels of a PIL image are sent, rotated as its
    EXIF data say.

    A list of pictures becomes one request with one answer per picture, in order. The answer to a
    picture that the server cannot use is a VisionError. A list of more than
    `max_images_per_request` pictures or 64 MiB is divided into several requests, which are sent one
    after another. For many pictures use map().

    Every call ends after `timeout` seconds with a VisionError of code DEADLINE_EXCEEDED. A request
    that ends with UNAVAILABLE is tried up to three times within this time. Other errors are not
    retried, unless `retry_exhausted` is set. A connection is dropped if the server is silent for
    four seconds during a call. Methods raise VisionError if a request as a whole is not answered.
    They raise OSError if a file cannot be read, and TypeError or ValueError if an argument cannot
    be sent.

    Thread-safe. One client is enough for a process, but a forked process needs another client.
    """

    def __init__(self, server: str, *, timeout: float = 10.0, tls: bool = False,
                 root_certificates: Optional[bytes] = None, private_key: Optional[bytes] = None,
                 certificate_chain: Optional[bytes] = None, server_name: Optional[str] = None,
                 token: Optional[Token] = None, plaintext_token: bool = False,
                 max_images_per_request: int = 64, retry_exhausted: bool = False) -> None:
        """Connects when first used.

        Args:
          server: 'host:port', or a target with one of gRPC's schemes. ValueError for anything
            else, such as a URL.
          timeout: seconds for each call without its own timeout.
          tls: whether to use TLS. Certificates imply it.
          root_certificates: PEM certificates that may sign the server's certificate. None: gRPC's
            own.
          private_key, certificate_chain: PEM of the client, if the server requires them.
          server_name: the name in the server's certificate. None: the host in `server`.
          token: sent as "authorization: Bearer {token}" with every call. It may be a function
            that returns the token. Any thread may call this function for every call, so it must be
            fast. ValueError if the token would be sent without TLS to another machine, unless
            plaintext_token is set.
          plaintext_token: whether to send the token without TLS to other machines. Anybody on the
            way can then read it.
          max_images_per_request: the server's setting.
          retry_exhausted: whether to retry a request within its time if the server has no room
            for it. The server says how long to wait before each attempt.
        """
        self._connection = Connection(
            grpc, server, credentials(tls, root_certificates, private_key, certificate_chain),
            token, timeout, server_name, plaintext_token, retry_exhausted)
        self._channels = self._connection.channels()
        self._max_images = max_images_per_request

    def close(self) -> None:
        """Ends the calls in flight, which raise VisionError (CANCELLED)."""
        self._connection.closed = True
        self._channels.healthy.close()
        self._channels.any.close()

    def __enter__(self) -> 'Client':
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    @overload
    def classify(self, images: Source, *, model: str = ..., top_k: int = ...,
                 min_score: float = ..., score_type: str = ..., embedding: bool = ...,
                 class_filter: Sequence[int] = ..., heat_map: Union[int, str, None] = ...,
                 options: Options = ...,
                 timeout: Optional[float] = ...) -> Classification: ...

    @overload
    def classify(self, images: Pictures, *, model: str = ..., top_k: int = ...,
                 min_score: float = ..., score_type: str = ..., embedding: bool = ...,
                 class_filter: Sequence[int] = ..., heat_map: Union[int, str, None] = ...,
                 options: Options = ...,
                 timeout: Optional[float] = ...) -> Answers[Classification]: ...

    def classify(self, images: Any, *, model: str = '', top_k: int = 0, min_score: float = 0.0,
                 score_type: str = 'SOFTMAX', embedding: bool = False,
                 class_filter: Sequence[int] = (), heat_map: Union[int, str, None] = None,
                 options: Options = Options(), timeout: Optional[float] = None) -> Any:
        """Returns scores of the model's classes for a picture, or for each picture of a list.

        Args:
          images: one picture or a list of them.
          model: '{id}' or 'models/{id}/versions/{n}'. '': the only or default classifier.
          top_k: number of classes. 0 means 5, or all classes if there are fewer than 5.
          min_score: classes with a lower score are omitted. 0: none is omitted.
          score_type: 'SOFTMAX', 'LOGIT' or 'SIGMOID'.
          embedding: whether answers also contain the pooled features.
          class_filter: ids of the classes to rank. Scores are still computed over all classes.
          heat_map: True or 'best' for the best class, or a class's id. Answers then show where in
            the picture this class was seen.
          options: settings that all methods accept.
          timeout: seconds. None: the client's.
        """
        params = _requests.classify_params(top_k, min_score, score_type, embedding, class_filter,
                                           heat_map)
        return self._predict(_requests.CLASSIFY, images, model, params, options, timeout)

    @overload
    def detect(self, images: Source, *, model: str = ..., score_threshold: Optional[float] = ...,
               nms_iou_threshold: Optional[float] = ..., max_detections: int = ...,
               masks: bool = ..., class_agnostic_nms: bool = ..., class_filter: Sequence[int] = ...,
               tiles: Optional[Tiles] = ..., crops: Optional[Crops] = ..., options: Options = ...,
               timeout: Optional[float] = ...) -> Detections: ...

    @overload
    def detect(self, images: Pictures, *, model: str = ..., score_threshold: Optional[float] = ...,
               nms_iou_threshold: Optional[float] = ..., max_detections: int = ...,
               masks: bool = ..., class_agnostic_nms: bool = ..., class_filter: Sequence[int] = ...,
               tiles: Optional[Tiles] = ..., crops: Optional[Crops] = ..., options: Options = ...,
               timeout: Optional[float] = ...) -> Answers[Detections]: ...

    def detect(self, images: Any, *, model: str = '', score_threshold: Optional[float] = 0.5,
               nms_iou_threshold: Optional[float] = None, max_detections: int = 0,
               masks: bool = True, class_agnostic_nms: bool = False,
               class_filter: Sequence[int] = (), tiles: Optional[Tiles] = None,
               crops: Optional[Crops] = None, options: Options = Options(),
               timeout: Optional[float] = None) -> Any:
        """Returns the objects in a picture, or in each picture of a list: boxes, and masks if the
        model has them.

        Args:
          images: one picture or a list of them.
          model: '{id}' or 'models/{id}/versions/{n}'. '': the only or default detector.
          score_threshold: only objects with a greater score are returned, 0..1. None: the model's
            own.
          nms_iou_threshold: if two boxes of a class have a greater intersection over union, only
            the better box is returned, 0..1. None: the model's own.
          max_detections: at most 1000. 0: the model's own.
          masks: whether to request masks.
          class_agnostic_nms: whether nms_iou_threshold also applies to boxes of different
            classes.
          class_filter: ids of the classes to look for. Empty: all.
          tiles: divides pictures into overlapping tiles. None: no tiles.
          crops: how a classifier looks at each object. None: no classifier does.
          options: settings that all methods accept.
          timeout: seconds. None: the client's.
        """
        params = _requests.detect_params(score_threshold, nms_iou_threshold, max_detections, masks,
                                         class_agnostic_nms, class_filter, tiles, crops)
        return self._predict(_requests.DETECT, images, model, params, options, timeout)

    @overload
    def segment(self, images: Source, *, model: str = ..., model_size: bool = ...,
                confidence: bool = ..., class_filter: Sequence[int] = ...,
                slide: Optional[Slide] = ..., options: Options = ...,
                timeout: Optional[float] = ...) -> Segmentation: ...

    @overload
    def segment(self, images: Pictures, *, model: str = ..., model_size: bool = ...,
                confidence: bool = ..., class_filter: Sequence[int] = ...,
                slide: Optional[Slide] = ..., options: Options = ...,
                timeout: Optional[float] = ...) -> Answers[Segmentation]: ...

    def segment(self, images: Any, *, model: str = '', model_size: bool = False,
                confidence: bool = False, class_filter: Sequence[int] = (),
                slide: Optional[Slide] = None, options: Options = Options(),
                timeout: Optional[float] = None) -> Any:
        """Returns the class of each pixel of a picture, or of each picture of a list.

        Args:
          images: one picture or a list of them.
          model: '{id}' or 'models/{id}/versions/{n}'. '': the only or default segmenter.
          model_size: whether maps have the size of the network's input. Otherwise they have the
            size of the oriented picture or its crop.
          confidence: whether answers contain the model's confidence for each pixel.
          class_filter: ids of the classes to map. Empty: all.
          slide: a window that slides over the picture. None: no window.
          options: settings that all methods accept.
          timeout: seconds. None: the client's.
        """
        params = _requests.segment_params(model_size, confidence, class_filter, slide)
        return self._predict(_requests.SEGMENT, images, model, params, options, timeout)

    def map(self, method: Callable[..., Answer], images: Iterable[Source], *, in_flight: int = 8,
            **parameters: Any) -> Iterator[Union[Answer, VisionError, OSError]]:
        """Yields the answers for many pictures, in their order. Each picture has its own request.

          for answer in client.map(client.detect, paths, in_flight=4, masks=False): ...

        The server computes pictures of several requests together. At most `in_flight` pictures are
        read and not yet yielded, so `images` may be endless. The answer to a picture that fails is
        its VisionError, or its OSError if its file cannot be read.

        If the server has answered at least one call of this client, pictures wait while the server
        drains, loads or cannot be reached. They fail if no picture is answered for two minutes. If
        the server has never answered, a picture fails as soon as its own call fails. Leaving the
        loop early waits for the requests in flight.

        Args:
          method: classify, detect or segment of this client.
          images: the pictures.
          in_flight: number of requests at a time, at least 1.
          **parameters: parameters of the method.
        """
        if in_flight < 1:
            raise ValueError(f'in_flight is at least 1, not {in_flight}')
        return _map(method, several(images), in_flight, parameters,
                    Patience(1, self._connection.has_answered))

    def stream(self, method: Callable[..., Answer], images: Iterable[Source], *,
               in_flight: int = 16, ordered: bool = True, timeout: Optional[float] = None,
               **parameters: Any) -> Iterator[Tuple[Source, Union[Answer, VisionError, OSError]]]:
        """Yields pictures with their answers, over one call.

          for frame, answer in client.stream(client.detect, frames(), ordered=False): ...

        A separate thread reads `images`, which may be endless or slow. At most `in_flight` pictures
        are read and not yet yielded. Answers are yielded when they arrive. The answer to a picture
        that fails is its VisionError, or its OSError if its file cannot be read.

        If the server drains, loads or cannot be reached, another call sends the unanswered pictures
        again. If the server has answered at least one call of this client, this is repeated until
        no picture is answered for two minutes. If the server has never answered, it is repeated
        until three calls have failed. Then, or after any other error of a call, VisionError is
        raised. Leaving the loop early cancels the call.

        Args:
          method: classify, detect or segment of this client.
          images: the pictures.
          in_flight: 1 to 512.
          ordered: whether answers come in the order of the pictures. Otherwise they come when
            they are ready.
          timeout: the seconds that a call may be silent while a picture that it has sent is
            unanswered. VisionError (DEADLINE_EXCEEDED) is then raised. None: the client's.
          **parameters: parameters of the method.
        """
        flow = Flow(question(method, parameters), in_flight, ordered)
        return Stream(self._connection, self._channels, flow, several(images),
                      self._connection.timeout(timeout)).answers()

    def models(self, *, timeout: Optional[float] = None) -> List[ModelInfo]:
        """Returns all models of the server, ordered by name, without the names of their classes."""
        deadline = self._connection.deadline(timeout)
        request, found = _messages.ListModelsRequest(), []
        while True:
            response = self._call(_requests.LIST_MODELS, request, deadline)
            found += [_answers.model_info(model) for model in response.models]
            if not response.next_page_token:
                return found
            request.page_token = response.next_page_token

    def model(self, name: str, *, timeout: Optional[float] = None) -> ModelInfo:
        """Returns one model with the names of its classes. Raises VisionError (NOT_FOUND) if the
        server does not have it."""
        request = _messages.GetModelRequest(name=name)
        deadline = self._connection.deadline(timeout)
        return _answers.model_info(self._call(_requests.GET_MODEL, request, deadline))

    def health(self, service: str = SERVICE, *, timeout: Optional[float] = None) -> bool:
        """Returns whether `service` is serving. It may also be 'models/{id}', 'liveness', or '' for
        the whole server. Raises VisionError (NOT_FOUND) if the server does not know the name, or
        UNAVAILABLE if the server cannot be reached. Makes only one attempt."""
        request = _messages.HealthCheckRequest(service=service)
        response = self._call(_requests.CHECK_HEALTH, request, self._connection.deadline(timeout))
        return bool(response.status == _messages.HealthCheckResponse.SERVING)

    def _predict(self, method: Method, images: Any, model: str, params: Any, options: Options,
                 timeout: Optional[float]) -> Any:
        deadline = self._connection.deadline(timeout)
        found: List[Any] = []
        for request in _requests.requests(method, images, model, params, options,
                                          self._max_images):
            response = self._call(method, request, deadline, options.traceparent)
            found += _answers.answers(response, method.parse, len(request.images))
        return _requests.as_asked(images, found)

    def _call(self, method: Method, request: Any, deadline: float,
              traceparent: str = '') -> Any:
        connection = self._connection
        attempts = Attempts(method.attempts, deadline, connection.budget,
                            retry_exhausted=connection.retry_exhausted,
                            has_answered=connection.has_answered and method.attempts > 1)
        errors = CallErrors()
        while True:
            call = self._channels.stub(method, errors.only_healthy)
            try:
                response = call(request, timeout=attempts.timeout(),
                                metadata=connection.metadata(traceparent))
            except grpc.RpcError as rpc_error:
                error = errors.add(connection.error(rpc_error))
                delay = attempts.delay_after(error)
                if delay is None:
                    raise errors.best from rpc_error
                time.sleep(delay)
            else:
                attempts.succeeded()
                connection.has_answered = True
                return response


class _Questions(Client):
    """A client whose methods do not send requests but return their Question."""

    def __init__(self) -> None:
        pass  # No connection, because it never calls.

    def _predict(self, method: Method, images: Any, model: str, params: Any, options: Options,
                 timeout: Optional[float]) -> Any:
        return Question(method, model, params, options)


def question(method: Callable[..., Any], parameters: Any) -> Question:
    """Returns the Question for a call of `method` with these parameters. `method` is a method of
    Client or of AsyncClient. Raises ValueError if it does not predict. Raises TypeError if it does
    not accept one of the parameters."""
    name = getattr(method, '__name__', '')
    if name not in ('classify', 'detect', 'segment'):
        raise ValueError('method is classify, detect or segment of the client')
    result: Question = getattr(_Questions(), name)([], **parameters)
    return result


def _map(method: Callable[..., Any], images: Iterable[Any], in_flight: int,
         parameters: Any, patience: Patience) -> Iterator[Any]:
    left = threading.Event()  # Set when the caller has left the loop.

    def answer(image: Any) -> Any:
        try:
            image = readable_again(image)
            while True:
                try:
                    found = method(image, **parameters)
                    patience.answered()
                    return found
                except VisionError as error:
                    delay = patience.delay_after(error)
                    if delay is None or left.wait(delay):
                        return error
        except OSError as error:
            return error

    waiting: Deque['concurrent.futures.Future[Any]'] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(in_flight) as pool:
        try:
            for image in images:
                waiting.append(pool.submit(answer, image))
                if len(waiting) == in_flight:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            left.set()
