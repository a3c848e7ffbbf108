"""When a call is tried again: the policy of the project's C++ client.

UNAVAILABLE alone is retried, which servers answer that drain or that cannot be reached. Overload
is RESOURCE_EXHAUSTED and never retried here: that would make more of it.
"""

import random
import threading
import time
from typing import Callable, Optional

import grpc

from ._errors import VisionError

INITIAL_BACKOFF = 0.05  # Seconds.
MAX_BACKOFF = 1.0
MULTIPLIER = 4
JITTER = 0.2  # Backoffs are longer or shorter by up to this part.


class Budget:
    """Stops retries for a while when too many calls fail: of ten tokens each UNAVAILABLE takes one
    and each success gives a tenth back; retries need more than five. Thread-safe.

    Source: "Throttling Retry Attempts", gRPC proposal A6.
    """

    MAX_TOKENS = 10
    TOKENS_FOR_SUCCESS = 0.1

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = float(self.MAX_TOKENS)

    def succeeded(self) -> None:
        with self._lock:
            self._tokens = min(self.MAX_TOKENS, self._tokens + self.TOKENS_FOR_SUCCESS)

    def failed(self) -> bool:
        """Whether it may be tried again."""
        with self._lock:
            self._tokens = max(0.0, self._tokens - 1)
            return self._tokens > self.MAX_TOKENS / 2


class Attempts:
    """The attempts of one call, `most` of them until `deadline`. It neither waits nor calls.

      attempts = Attempts(3, time.monotonic() + timeout, budget)
      while True:
          try to call for attempts.timeout() seconds
          on success: attempts.succeeded(), done
          on an error: delay = attempts.delay_after(error); raise if it is None, else wait
    """

    def __init__(self, most: int, deadline: float, budget: Budget,
                 clock: Callable[[], float] = time.monotonic,
                 uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._left = most
        self._deadline = deadline
        self._budget = budget
        self._clock = clock
        self._uniform = uniform
        self._backoff = INITIAL_BACKOFF

    def timeout(self) -> float:
        """Seconds for an attempt that begins now. VisionError (DEADLINE_EXCEEDED) if none are
        left."""
        left = self._deadline - self._clock()
        if left <= 0:
            raise VisionError(grpc.StatusCode.DEADLINE_EXCEEDED,
                              'the deadline has passed before the call')
        return left

    def succeeded(self) -> None:
        self._budget.succeeded()

    def delay_after(self, error: VisionError) -> Optional[float]:
        """Seconds to wait before the next attempt: those that the server asks for, or else the
        backoff. None if there is to be no other, or not before the deadline."""
        if error.code is not grpc.StatusCode.UNAVAILABLE:
            return None
        self._left -= 1
        if not self._budget.failed() or self._left == 0:
            return None
        delay = error.retry_delay
        if delay is None:
            delay = self._backoff * self._uniform(1 - JITTER, 1 + JITTER)
            self._backoff = min(self._backoff * MULTIPLIER, MAX_BACKOFF)
        return delay if self._clock() + delay < self._deadline else None
