"""Decides how many requests one server may have in flight. It neither waits nor calls."""

# The first window is at least this, and at least two batches, so that one batch waits while the
# other is computed.
FIRST = 16
MOST = 512
# Seconds. If answers take longer, more requests would only wait longer in the server's queue.
IN_TIME = 1.0


class Window:
    """The window of one server, which limits its requests in flight. It grows while answers arrive
    in time. It is halved when the server has no room, and is reset after the server was lost.

    Attributes:
      in_flight: number of requests sent and not yet answered.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.restart(1)

    def restart(self, max_batch_size: int) -> None:
        """Resets the window of a server that can now be used. `max_batch_size` is the server's."""
        self._size = float(min(max(FIRST, 2 * max_batch_size), MOST))
        self._doubles = True  # Until the first refusal.
        self._closed_until = 0.0
        self._cut_at = 0.0

    @property
    def size(self) -> int:
        return int(self._size)

    def has_room(self, now: float) -> bool:
        return self.in_flight < self.size and now >= self._closed_until

    def closed_for(self, now: float) -> float:
        """Returns the seconds until the server may be asked again, 0 if that is now."""
        return max(0.0, self._closed_until - now)

    def answered(self, sent: float, now: float) -> None:
        """Reports an answer to a request that was sent at `sent` and still counts as in flight. The
        window grows only if it is full. If it is not full, something else limits the job."""
        if self.in_flight >= self.size and now - sent <= IN_TIME:
            self._size = min(MOST, self._size + (1 if self._doubles else 1 / self._size))

    def refused(self, sent: float, delay: float, now: float) -> None:
        """Reports that the server has no room and may be asked again after `delay` seconds.
        Requests that were sent before the last reduction do not reduce the window again."""
        self._closed_until = max(self._closed_until, now + delay)
        if sent >= self._cut_at:
            self._size = max(1.0, self._size / 2)
            self._doubles = False
            self._cut_at = now
