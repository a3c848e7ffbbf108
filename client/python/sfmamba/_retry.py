"""Decides when a call is retried.

UNAVAILABLE is retried. Calls end with this error if the server drains, loads a model or cannot be
reached. The project's C++ client uses the same backoffs, the same number of attempts and the same
budget.

RESOURCE_EXHAUSTED means that the server is overloaded. It is not retried by default, because
retries would increase the overload. If the caller sets `retry_exhausted`, it is retried after the
delay that the server's error contains. It is not retried if the error contains no delay.
"""

import random
import threading
import time
from typing import Callable, Optional

import grpc

from ._errors import VisionError

INITIAL_BACKOFF = 0.05  # In seconds.
MAX_BACKOFF = 1.0
MULTIPLIER = 4
JITTER = 0.2  # Backoffs vary by up to this fraction.
# In seconds. map(), stream() and batch jobs stop retrying if a server that has answered before does
# not answer for this time.
PATIENCE = 120.0


def is_passing(error: VisionError) -> bool:
    """Returns whether a later attempt of the request may succeed. It may while the server drains,
    loads the model or cannot be reached. It cannot if the model has failed to load."""
    return (error.code is grpc.StatusCode.UNAVAILABLE
            and (error.reason != 'MODEL_NOT_READY' or error.metadata.get('state') == 'LOADING'))


class Budget:
    """Stops retries if calls fail more often than they succeed. Each UNAVAILABLE takes one of 1000
    tokens, and each success gives one back. Retries need more than 500 tokens. Thread-safe.

    There are so many tokens because a killed server fails all calls in flight at once.

    Source: "Throttling Retry Attempts", gRPC proposal A6.
    """

    MAX_TOKENS = 1000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = self.MAX_TOKENS

    def succeeded(self) -> None:
        with self._lock:
            self._tokens = min(self.MAX_TOKENS, self._tokens + 1)

    def failed(self) -> bool:
        """Counts a failure. Returns whether the call may be retried."""
        with self._lock:
            self._tokens = max(0, self._tokens - 1)
            return self._tokens > self.MAX_TOKENS // 2


class _Backoff:
    """Computes delays in seconds, which grow from call to call."""

    def __init__(self, uniform: Callable[[float, float], float]) -> None:
        self._uniform = uniform
        self._next = INITIAL_BACKOFF

    def reset(self) -> None:
        self._next = INITIAL_BACKOFF

    def next(self) -> float:
        delay = self._next * self._uniform(1 - JITTER, 1 + JITTER)
        self._next = min(self._next * MULTIPLIER, MAX_BACKOFF)
        return delay


class Attempts:
    """Decides about the attempts of one call until `deadline`. There are at most `most` attempts.
    This limit does not apply if the server `has_answered` before and is_passing() is true for the
    error. The class neither blocks nor makes RPCs. Its caller does:

      attempts = Attempts(3, time.monotonic() + timeout, budget)
      while True:
          try to call for attempts.timeout() seconds
          on success: attempts.succeeded(), done
          on an error: delay = attempts.delay_after(error); raise if it is None, else wait
    """

    def __init__(self, most: int, deadline: float, budget: Budget,
                 clock: Callable[[], float] = time.monotonic,
                 uniform: Callable[[float, float], float] = random.uniform,
                 retry_exhausted: bool = False, has_answered: bool = False) -> None:
        self._retry_exhausted = retry_exhausted
        self._has_answered = has_answered
        self._uniform = uniform
        self._left = most
        self._deadline = deadline
        self._budget = budget
        self._clock = clock
        self._backoff = _Backoff(uniform)

    def timeout(self) -> float:
        """Returns the seconds left for an attempt that begins now. Raises VisionError
        (DEADLINE_EXCEEDED) if there are none."""
        left = self._deadline - self._clock()
        if left <= 0:
            raise VisionError(grpc.StatusCode.DEADLINE_EXCEEDED,
                              'the deadline has passed before the call')
        return left

    def succeeded(self) -> None:
        self._budget.succeeded()

    def delay_after(self, error: VisionError) -> Optional[float]:
        """Returns the seconds to wait before the next attempt. They are the server's retry delay if
        `error` contains one, and the backoff otherwise. Returns None if there must be no other
        attempt, or if it would begin after the deadline."""
        if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            if not self._retry_exhausted or not error.retry_delay:
                return None
            # The delay varies, so that calls that were refused together are not retried at the same
            # time. The deadline limits the number of these attempts, `most` does not.
            delay = error.retry_delay * self._uniform(1, 1 + JITTER)
            return delay if self._clock() + delay < self._deadline else None
        if error.code is not grpc.StatusCode.UNAVAILABLE:
            return None
        self._left -= 1
        if not self._budget.failed():
            return None
        if self._left <= 0 and not (self._has_answered and is_passing(error)):
            return None
        # The server's delay is 0 if another server may answer at once. The backoff then applies,
        # because there may be no other server.
        delay = error.retry_delay or self._backoff.next()
        left = self._deadline - self._clock()
        if delay < left:
            return delay
        # The backoff would end after the deadline. A server that has answered before may be
        # restarting and be back in time, so half of the time left becomes the delay.
        if self._has_answered and not error.retry_delay and left > INITIAL_BACKOFF:
            return left / 2
        return None


class Patience:
    """Decides how long map() and stream() retry while a server drains, loads or cannot be reached.
    If the server `has_answered` before, retries end when PATIENCE seconds have passed since the
    first failure after the last answer. If it has never answered, retries end after `most`
    attempts. Thread-safe. The class neither blocks nor makes RPCs. Its caller does."""

    def __init__(self, most: int, has_answered: bool,
                 clock: Callable[[], float] = time.monotonic,
                 uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._lock = threading.Lock()
        self._left = most
        self._clock = clock
        self._backoff = _Backoff(uniform)
        self._has_answered = has_answered
        self._away_since: Optional[float] = None  # Time of the first failure since an answer.

    def answered(self) -> None:
        with self._lock:
            self._has_answered = True
            self._away_since = None
            self._backoff.reset()

    def delay_after(self, error: VisionError) -> Optional[float]:
        """Returns the seconds to wait before the next attempt, or None if there must be no
        other."""
        if not is_passing(error):
            return None
        with self._lock:
            now = self._clock()
            if self._away_since is None:
                self._away_since = now
            self._left -= 1
            if self._left <= 0 and not self._has_answered:
                return None
            if now - self._away_since > PATIENCE:
                return None
            return max(error.retry_delay or 0.0, self._backoff.next())
