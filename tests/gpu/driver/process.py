"""Runs one process with a time limit. When it ends, its whole process group is killed."""

import dataclasses
import os
import signal
import subprocess
import time

GRACE = 3  # The seconds between SIGTERM and SIGKILL.
TICK = 15  # The seconds between two calls of `tick`.


@dataclasses.dataclass(frozen=True)
class Ended:
    status: str  # 'passed', or how it failed.
    seconds: float
    timed_out: bool = False


def describe(code):
    if code == 0:
        return 'passed'
    if code < 0:
        return f'killed by {signal.Signals(-code).name}'
    return f'exit status {code}'


def wait(child, seconds, tick):
    """Returns the child's exit status. Calls `tick` regularly until the child ends. Raises
    TimeoutExpired after `seconds`.
    """
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
    """Runs `command` for at most `seconds`. Appends its output to the file `log`.

    Calls `tick` regularly while the command runs. Also kills the processes that the command leaves
    in its process group, even if the caller is interrupted.
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
    """Sends the signal `what` to all of the child's process group that still runs."""
    try:
        os.killpg(child.pid, what)
    except ProcessLookupError:
        pass
