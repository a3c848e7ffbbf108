"""Runs one process with a limit, as a group that is killed whole."""

import dataclasses
import os
import signal
import subprocess
import time

GRACE = 3  # Seconds between asking a group to end and ending it.
TICK = 15  # Seconds between two calls of `tick`.


@dataclasses.dataclass(frozen=True)
class Ended:
    status: str  # 'passed', or how it failed, in words.
    seconds: float
    timed_out: bool = False


def describe(code):
    if code == 0:
        return 'passed'
    if code < 0:
        return f'killed by {signal.Signals(-code).name}'
    return f'exit status {code}'


def wait(child, seconds, tick):
    """The child's exit status; calls `tick` now and then until it ends or `seconds` are over."""
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        try:
            return child.wait(timeout=min(max(left, 0), TICK))
        except subprocess.TimeoutExpired:
            if left <= TICK:
                raise
        tick()


def run(command, log, seconds, environment=None, tick=lambda: None):
    """Runs `command` for at most `seconds`, its output appended to the file `log`.

    `tick` is called now and then meanwhile. What the command leaves behind in its process group
    is killed too, also if the caller is interrupted.
    """
    start = time.monotonic()
    with open(log, 'ab') as output:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                     stderr=subprocess.STDOUT, env=environment, process_group=0)
        except OSError as error:
            output.write(f'{error}\n'.encode())
            return Ended(str(error), 0)
        try:
            status, timed_out = describe(wait(child, seconds, tick)), False
        except subprocess.TimeoutExpired:
            send(child, signal.SIGTERM)
            status, timed_out = f'timed out after {seconds:.0f} s', True
            try:
                child.wait(timeout=GRACE)
            except subprocess.TimeoutExpired:
                pass
        finally:
            send(child, signal.SIGKILL)
            child.wait()
    return Ended(status, time.monotonic() - start, timed_out)


def send(child, what):
    """To all of the child's group, as far as it lives."""
    try:
        os.killpg(child.pid, what)
    except ProcessLookupError:
        pass
