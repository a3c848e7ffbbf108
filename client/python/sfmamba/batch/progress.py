"""Shows the progress of a job: a bar on a terminal, otherwise a line every ten seconds."""

import asyncio
import sys
import time
from typing import Any, Optional

from .job import Progress

_BETWEEN_LINES = 10.0  # In seconds.
_BETWEEN_BARS = 0.2


class Display:
    """Shows the progress while its block runs.

      async with Display(job.progress) as display:
          await job.run()
      print(display.line())
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._began = time.monotonic()
        self._task: Optional['asyncio.Task[None]'] = None

    async def __aenter__(self) -> 'Display':
        show = self._bar if sys.stderr.isatty() else self._lines
        self._task = asyncio.create_task(show())
        return self

    async def __aexit__(self, *_: Any) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def line(self) -> str:
        now, left = self._progress, self._progress.total - self._progress.done
        seconds = time.monotonic() - self._began
        rate = (now.done - now.before) / max(seconds, 1e-9)
        ends = f'{duration(left / rate)} left' if left and rate else f'in {duration(seconds)}'
        return f'{now.done} of {now.total} done, {now.failed} failed, {rate:.1f}/s, {ends}'

    async def _lines(self) -> None:
        while True:
            await asyncio.sleep(_BETWEEN_LINES)
            print(self.line(), file=sys.stderr, flush=True)

    async def _bar(self) -> None:
        from tqdm import tqdm
        with tqdm(total=self._progress.total, initial=self._progress.before, unit='',
                  smoothing=0.05) as bar:
            try:
                while True:
                    await asyncio.sleep(_BETWEEN_BARS)
                    self._update(bar)
            finally:
                self._update(bar)

    def _update(self, bar: Any) -> None:
        bar.set_postfix(failed=self._progress.failed, refresh=False)
        bar.update(self._progress.done - bar.n)


def duration(seconds: float) -> str:
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f'{hours} h {minutes:02} min' if hours else f'{minutes} min {whole:02} s'
