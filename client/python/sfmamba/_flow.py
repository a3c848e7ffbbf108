"""The pictures of a stream, from their requests to their answers. Client and AsyncClient share this
code. It neither blocks nor makes RPCs. _stream.py and _aio_stream.py do both."""

import collections
import dataclasses
import heapq
import itertools
from typing import Any, Deque, Dict, Iterator, List, Optional, Tuple

import grpc

from . import _answers, _messages, _requests
from ._errors import VisionError, from_status
from ._requests import Options
from ._retry import is_passing

MOST_IN_FLIGHT = 512  # This is the server's limit.
# The maximum number of StreamPredict calls of a stream while the server has not answered any.
ATTEMPTS = 3
# Time limit in seconds for the server to end a call after its last answer.
END = 1.0


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about each picture: a method and its parameters, which are messages of the
    server."""

    method: _requests.Method
    model: str
    params: Any
    options: Options

    def about(self, image: Any) -> Any:
        """Returns the request for one picture. Raises the errors of to_image()."""
        [request] = _requests.requests(self.method, image, self.model, self.params, self.options, 1)
        return request


class Call:
    """One StreamPredict call."""

    def __init__(self, only_healthy: bool) -> None:
        self.only_healthy = only_healthy  # Whether the call goes only to healthy servers.
        self.call: Any = None
        self.takes_requests = True
        self.answered = False  # At least one picture was answered.
        # The error with which the server temporarily refused a picture, or None. The next call
        # sends this picture again.
        self.refusal: Optional[VisionError] = None
        self.error: Optional[VisionError] = None
        self.ended = False

    def next_only_healthy(self) -> bool:
        """Returns whether the next call goes only to healthy servers. If this call has reached no
        healthy server, the next call also goes to unhealthy servers. This is useful, because a
        draining server still answers for some time. Any other unhealthy server returns an error
        that says why it is unhealthy."""
        failed = self.error is not None and not self.error.reason
        return not (failed and self.only_healthy)

    def failure(self) -> VisionError:
        """Returns why the call has left pictures unanswered."""
        return self.refusal or self.error or VisionError(grpc.StatusCode.UNAVAILABLE,
                                                         'the server has ended the stream')


# Maps the path of a method to the name of its field in StreamPredictRequest and
# StreamPredictResponse.
_FIELDS = {_requests.CLASSIFY.path: 'classify', _requests.DETECT.path: 'detect',
           _requests.SEGMENT.path: 'segment'}


class Flow:
    """The pictures of one stream. Each picture has a number, which is its correlation ID.

    At most `in_flight` pictures are between add() and take_answers().
    """

    def __init__(self, question: Question, in_flight: int, ordered: bool) -> None:
        if not 1 <= in_flight <= MOST_IN_FLIGHT:
            raise ValueError(f'in_flight is 1 to {MOST_IN_FLIGHT}, not {in_flight}')
        self.exhausted = False  # There will be no more pictures.
        self._question = question
        self._in_flight = in_flight
        self._ordered = ordered
        self._numbers = itertools.count()
        self._yielded = 0
        self._held = 0
        self._waiting: Deque[Tuple[int, Any]] = collections.deque()  # Still to be sent.
        self._sent: Dict[int, Any] = {}
        self._images: Dict[int, Any] = {}
        self._arrivals = itertools.count()
        # A heap, ordered by picture number if the answers must be ordered, otherwise by arrival.
        self._answers: List[Tuple[int, Any, Any]] = []

    def config(self) -> Any:
        """Returns the first message of each call."""
        message = _messages.StreamPredictRequest()
        message.config.max_in_flight = self._in_flight
        message.config.preserve_order = self._ordered
        return message

    def request(self, image: Any) -> Any:
        """Returns the request for a picture, or the OSError if its file cannot be read. The result
        is an argument of add(). May run in parallel with all other methods."""
        try:
            return self._question.about(image)
        except OSError as error:
            return error

    def has_room(self) -> bool:
        return self._held < self._in_flight

    def add(self, image: Any, request: Any) -> None:
        """Adds the next picture and its request."""
        number = next(self._numbers)
        self._images[number] = image
        self._held += 1
        if isinstance(request, OSError):
            self._keep(number, request)
            return
        message = _messages.StreamPredictRequest(correlation_id=str(number))
        getattr(message, _FIELDS[self._question.method.path]).CopyFrom(request)
        self._waiting.append((number, message))

    def has_request(self) -> bool:
        return bool(self._waiting)

    def next_request(self) -> Any:
        """Returns the request that the current call must send next."""
        number, message = self._waiting.popleft()
        self._sent[number] = message
        return message

    def sends_all_again(self) -> None:
        """Prepares for a new call, which must send all unanswered requests again."""
        self._waiting.extendleft(sorted(self._sent.items(), reverse=True))
        self._sent.clear()

    def asks(self) -> bool:
        """Returns whether an answer is expected from the current call."""
        return bool(self._sent)

    def done(self) -> bool:
        """Returns whether all pictures are answered and all answers are taken."""
        return self.exhausted and self._held == 0

    def take(self, response: Any, call: Call) -> None:
        """Processes a response of the call. An answer is stored. The call takes no more requests
        after the server's notice that it drains, or after an error with which the server
        temporarily refuses a picture. Raises VisionError (DATA_LOSS) if the response does not
        belong to a picture that was sent, or is a response of another method."""
        kind = response.WhichOneof('response')
        if kind == 'notice':
            call.takes_requests = False
            return
        text = response.correlation_id
        number = int(text) if text.isdecimal() else -1
        if number not in self._sent:
            raise VisionError(grpc.StatusCode.DATA_LOSS,
                              f'the stream has answered "{text}", which was not asked')
        if kind == 'error':
            answer: Any = from_status(response.error)
            if is_passing(answer):
                call.takes_requests = False
                call.refusal = answer
                return
        else:
            method = self._question.method
            wanted = _FIELDS[method.path]
            if kind != wanted:
                raise VisionError(grpc.StatusCode.DATA_LOSS,
                                  f'the stream has answered {kind}, not {wanted}')
            [answer] = _answers.answers(getattr(response, kind), method.parse, 1)
        del self._sent[number]
        call.answered = True
        self._keep(number, answer)

    def _keep(self, number: int, answer: Any) -> None:
        key = number if self._ordered else next(self._arrivals)
        heapq.heappush(self._answers, (key, self._images.pop(number), answer))

    def take_answers(self) -> Iterator[Tuple[Any, Any]]:
        """Yields pictures with their answers. If the answers must be ordered, stops at the first
        picture that is not yet answered."""
        while self._answers and self._answers[0][0] == self._yielded:
            self._yielded += 1
            self._held -= 1
            _, image, answer = heapq.heappop(self._answers)
            yield image, answer


def is_harmless(call: Call, asks: bool, is_owed: bool) -> bool:
    """Returns whether the end of `call` is no failure, so that the next call may begin without a
    delay.

    If the call ended with an error, its end is harmless only if the error is UNAVAILABLE and no
    picture is left to send. If the call ended without an error, its end is harmless in three cases:
    - No picture is left to send.
    - The call has sent at least one picture, and all that it has sent are answered.
    - The call has sent no picture, because the server announced that it drains.

    Args:
      asks: whether the call has left a sent picture unanswered.
      is_owed: whether a picture is left to send. Pictures that the call has left unanswered must be
        sent again and are included.
    """
    if call.error is not None:
        return call.error.code is grpc.StatusCode.UNAVAILABLE and not is_owed
    return not is_owed or (not asks and (call.answered or not call.takes_requests))


def silence(seconds: float) -> VisionError:
    """Returns the error of a stream that does not answer."""
    return VisionError(grpc.StatusCode.DEADLINE_EXCEEDED,
                       f'the stream has not answered for {seconds:g} s')
