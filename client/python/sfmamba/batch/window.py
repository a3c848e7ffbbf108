"""How many requests one server may have in flight. It decides; it neither waits nor calls."""

FIRST = 16  # At least; and two batches of the server, so that one waits while one is computed.
MOST = 512
# Seconds. While answers take longer, more requests would only wait longer in the server's queue.
IN_TIME = 1.0


class Window:
    """The window of one server: it grows while answers come in time, is halved when the server has
    no room, and begins anew after the server was lost.

    Attributes:
      in_flight: requests sent and not yet answered.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.restart(1)

    def restart(self, max_batch_size: int) -> None:
        """A server with such batches can be used from now on, or again."""
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
        """Seconds until the server may be asked again; 0 if it may be now."""
        return max(0.0, self._closed_until - now)

    def answered(self, sent: float, now: float) -> None:
        """An answer has come to a request of the time `sent`, which still counts as in flight. A
        window that is not full does not grow: it is not what holds the job back."""
        if self.in_flight >= self.size and now - sent <= IN_TIME:
            self._size = min(MOST, self._size + (1 if self._doubles else 1 / self._size))

    def refused(self, sent: float, delay: float, now: float) -> None:
        """The server has no room and may be asked again after `delay` seconds. Refusals of requests
        that were sent before the last cut say nothing about the smaller window."""
        self._closed_until = max(self._closed_until, now + delay)
        if sent >= self._cut_at:
            self._size = max(1.0, self._size / 2)
            self._doubles = False
            self._cut_at = now
