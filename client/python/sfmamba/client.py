"""The client for threads; aio.py has its twin for asyncio."""

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
    """Calls a vision server, or several behind one name.

      with Client('127.0.0.1:8001') as client:
          print(client.classify('cat.jpg').labels[0])

    A picture is a path, bytes or an open binary file with a JPEG, PNG or WebP; a NumPy array: uint8
    [H, W, 3] in RGB, [H, W, 4] with alpha, which is dropped, or [H, W], or a preprocessed float32
    or float16 [3, H, W]; a PIL image, whose pixels are sent, turned as its EXIF data say; or a
    Picture.

    A list of pictures is one request with one answer for each, in order: what the server cannot use
    has a VisionError in its place. A list of more than `max_images_per_request` pictures or 64 MiB
    is cut into several requests, sent one after another. For many pictures use map().

    Every call ends after `timeout` seconds with a VisionError of code DEADLINE_EXCEEDED. A request
    that ends with UNAVAILABLE is tried three times within this time. No other is tried again,
    unless `retry_exhausted` is set. A server that is silent for four seconds is given up.
    Methods raise VisionError if a request as a whole is not answered, OSError if a file cannot be
    read, TypeError or ValueError if an argument cannot be sent.

    Thread-safe; one client serves a whole process, but not the ones that it forks.
    """

    def __init__(self, server: str, *, timeout: float = 10.0, tls: bool = False,
                 root_certificates: Optional[bytes] = None, private_key: Optional[bytes] = None,
                 certificate_chain: Optional[bytes] = None, server_name: Optional[str] = None,
                 token: Optional[Token] = None, plaintext_token: bool = False,
                 max_images_per_request: int = 64, retry_exhausted: bool = False) -> None:
        """Connects when first used.

        Args:
          server: 'host:port', or a target with a scheme of gRPC's; ValueError for anything else,
            such as a URL.
          timeout: seconds of every call that has none of its own.
          tls: whether to use TLS; certificates imply it.
          root_certificates: PEM of those that the server's must descend from; None: gRPC's own.
          private_key, certificate_chain: PEM of the client, where the server asks for one.
          server_name: whom the server's certificate is for; None: the host in `server`.
          token: sent as "authorization: Bearer {token}" with every call; or a function that returns
            it, which is called for every call, by any thread, and must be quick. ValueError if it
            would go without TLS to a server that is not on this machine,
          plaintext_token: unless this is set. Anybody on the way can read it then.
          max_images_per_request: the server's setting.
          retry_exhausted: whether a request that the server has no room for is tried again within
            its time, as often and as late as the server asks for.
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
        """Scores of the model's classes for a picture, or for each of a list.

        Args:
          images: one picture or a list of them.
          model: '{id}' or 'models/{id}/versions/{n}'; '': the only or default classifier.
          top_k: how many classes; 0: 5, or all if there are fewer.
          min_score: classes below it are left out; 0: none are.
          score_type: 'SOFTMAX', 'LOGIT' or 'SIGMOID'.
          embedding: whether to answer the pooled features too.
          class_filter: ids of the only classes to rank; scores stay those over all.
          heat_map: True or 'best' for the best class, or a class's id, to answer where it was seen.
          options: what all methods take.
          timeout: seconds; None: the client's.
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
        """Boxes, and masks where the model has them, of the objects in a picture, or in each of a
        list.

        Args:
          images: one picture or a list of them.
          model: '{id}' or 'models/{id}/versions/{n}'; '': the only or default detector.
          score_threshold: objects with a greater score are kept, 0..1; None: the model's own.
          nms_iou_threshold: of two objects of a class whose boxes' intersection over union is
            greater, 0..1, the better is kept; None: the model's own.
          max_detections: at most 1000; 0: the model's own.
          masks: whether to ask for masks.
          class_agnostic_nms: whether boxes of all classes compete.
          class_filter: ids of the only classes to look for; empty: all.
          tiles: cuts pictures into overlapping tiles; None: they are looked at whole.
          crops: how a classifier is to look at each object; None: none does.
          options: what all methods take.
          timeout: seconds; None: the client's.
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
        """The class of each pixel of a picture, or of each of a list.

        Args:
          images: one picture or a list of them.
          model: '{id}' or 'models/{id}/versions/{n}'; '': the only or default segmenter.
          model_size: whether maps have the size of the network's input, not that of the oriented
            picture or its crop.
          confidence: whether to answer how sure the model is of each pixel.
          class_filter: ids of the only classes to map; empty: all.
          slide: the window that slides over the picture; None: the picture is looked at whole.
          options: what all methods take.
          timeout: seconds; None: the client's.
        """
        params = _requests.segment_params(model_size, confidence, class_filter, slide)
        return self._predict(_requests.SEGMENT, images, model, params, options, timeout)

    def map(self, method: Callable[..., Answer], images: Iterable[Source], *, in_flight: int = 8,
            **parameters: Any) -> Iterator[Union[Answer, VisionError, OSError]]:
        """Answers for many pictures, in their order, each by a request of its own.

          for answer in client.map(client.detect, paths, in_flight=4, masks=False): ...

        The server computes pictures of several requests together. At most `in_flight` pictures are
        read and not yet yielded, so that `images` may be endless. One that fails has its
        VisionError in its place, or the OSError if its file cannot be read. Once a picture is
        answered, pictures wait for a server that cannot be reached, drains or loads, until none is
        answered for two minutes. Leaving the loop early waits for those in flight.

        Args:
          method: of this client.
          images: one picture each.
          in_flight: requests at a time, at least 1.
          **parameters: of the method.
        """
        if in_flight < 1:
            raise ValueError(f'in_flight is at least 1, not {in_flight}')
        return _map(method, several(images), in_flight, parameters,
                    Patience(1, self._connection.has_answered))

    def stream(self, method: Callable[..., Answer], images: Iterable[Source], *,
               in_flight: int = 16, ordered: bool = True, timeout: Optional[float] = None,
               **parameters: Any) -> Iterator[Tuple[Source, Union[Answer, VisionError, OSError]]]:
        """Pictures with their answers, over one call.

          for frame, answer in client.stream(client.detect, frames(), ordered=False): ...

        At most `in_flight` pictures are read and not yet yielded; `images` may be endless or slow,
        and is read by a thread of its own. Answers are yielded as they come. One that fails has its
        VisionError in its place, or the OSError if its file cannot be read. If the server drains,
        loads or cannot be reached, another call sends again what is not answered. A server that has
        answered is waited for until no picture is answered for two minutes; then, as after any
        other error of the call, VisionError is raised. Leaving the loop early cancels what is in
        flight.

        Args:
          method: classify, detect or segment of this client.
          images: one picture each.
          in_flight: 1 to 512.
          ordered: whether answers come in the order of the pictures, else as they are done.
          timeout: seconds that the server may be silent while it owes an answer: then VisionError
            (DEADLINE_EXCEEDED) is raised; None: the client's.
          **parameters: of the method.
        """
        flow = Flow(question(method, parameters), in_flight, ordered)
        return Stream(self._connection, self._channels, flow, several(images),
                      self._connection.timeout(timeout)).answers()

    def models(self, *, timeout: Optional[float] = None) -> List[ModelInfo]:
        """All models of the server, ordered by name, without their classes' names."""
        deadline = self._connection.deadline(timeout)
        request, found = _messages.ListModelsRequest(), []
        while True:
            response = self._call(_requests.LIST_MODELS, request, deadline)
            found += [_answers.model_info(model) for model in response.models]
            if not response.next_page_token:
                return found
            request.page_token = response.next_page_token

    def model(self, name: str, *, timeout: Optional[float] = None) -> ModelInfo:
        """One model with its classes' names. VisionError (NOT_FOUND) if there is none."""
        request = _messages.GetModelRequest(name=name)
        deadline = self._connection.deadline(timeout)
        return _answers.model_info(self._call(_requests.GET_MODEL, request, deadline))

    def health(self, service: str = SERVICE, *, timeout: Optional[float] = None) -> bool:
        """Whether the server serves; of `service` also 'models/{id}', 'liveness' or '' for the
        server as a whole. VisionError (NOT_FOUND) of a name that it does not know, UNAVAILABLE if
        it cannot be reached. Asks once."""
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
    """Makes of a method's parameters what it would ask."""

    def __init__(self) -> None:
        pass  # It never calls.

    def _predict(self, method: Method, images: Any, model: str, params: Any, options: Options,
                 timeout: Optional[float]) -> Any:
        return Question(method, model, params, options)


def question(method: Callable[..., Any], parameters: Any) -> Question:
    """What a method of either client asks with these parameters. ValueError if it does not
    predict, TypeError if it has no such parameter."""
    name = getattr(method, '__name__', '')
    if name not in ('classify', 'detect', 'segment'):
        raise ValueError('method is classify, detect or segment of the client')
    result: Question = getattr(_Questions(), name)([], **parameters)
    return result


def _map(method: Callable[..., Any], images: Iterable[Any], in_flight: int,
         parameters: Any, patience: Patience) -> Iterator[Any]:
    left = threading.Event()  # The caller has.

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
