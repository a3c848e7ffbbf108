"""Decides when a call is retried. The policy is equal to that of the project's C++ client.

UNAVAILABLE is retried. Servers that drain or cannot be reached return it. RESOURCE_EXHAUSTED means
overload and is not retried by default, because retries would increase the overload. If the caller
asks for these retries, the server says how long to wait.
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
# Seconds for which many pictures wait for a server that has answered before.
PATIENCE = 120.0


def is_passing(error: VisionError) -> bool:
    """Returns whether a later attempt of the request may succeed. This is so while the server
    drains, loads the model or cannot be reached. A model that has failed to load never succeeds
    later."""
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
    """The attempts of one call until `deadline`. There are at most `most` attempts, unless the
    server `has_answered` before and now cannot answer. This class neither waits nor calls.

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
        """Returns the seconds to wait before the next attempt. The server sets them, otherwise the
        backoff. Returns None if there must be no other attempt, or if it would begin after the
        deadline."""
        if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            if not self._retry_exhausted or not error.retry_delay:
                return None
            # The delay varies, so that calls that were refused together do not return together.
            # Only the deadline limits these attempts.
            delay = error.retry_delay * self._uniform(1, 1 + JITTER)
            return delay if self._clock() + delay < self._deadline else None
        if error.code is not grpc.StatusCode.UNAVAILABLE:
            return None
        self._left -= 1
        if not self._budget.failed():
            return None
        if self._left <= 0 and not (self._has_answered and is_passing(error)):
            return None
        # A delay of 0 means that another server may answer at once. But there may be no other
        # server.
        delay = error.retry_delay or self._backoff.next()
        left = self._deadline - self._clock()
        if delay < left:
            return delay
        # A restarting server may be back just before the deadline.
        if self._has_answered and not error.retry_delay and left > INITIAL_BACKOFF:
            return left / 2
        return None


class Patience:
    """Decides how long many pictures wait for a server that cannot answer. If the server
    `has_answered` before, they wait for up to PATIENCE seconds without another answer. If it has
    not, there are `most` attempts. Thread-safe. This class neither waits nor calls."""

    def __init__(self, most: int, has_answered: bool,
                 clock: Callable[[], float] = time.monotonic,
                 uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._lock = threading.Lock()
        self._left = most
        self._clock = clock
        self._backoff = _Backoff(uniform)
        self._has_answered = has_answered
        self._away_since: Optional[float] = None  # The first failure since the last answer.

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
