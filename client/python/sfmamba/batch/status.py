"""The output of `sfmamba-batch status`."""

import pathlib
import time
from typing import Iterator

from .parts import Lock, job_in, parts_of
from .progress import duration
from .rows import TASKS


def lines(folder: pathlib.Path, failed_rows: bool) -> Iterator[str]:
    """Yields the counts of the whole job and the rate of running shards. If `failed_rows`, yields
    the failed rows instead, with tabs between id, reason and message."""
    job = job_in(folder)
    schema = TASKS[job['task']].schema
    total_done = total_failed = 0
    running, rate = 0, 0.0
    for shard in range(1, job['shards'] + 1):
        done = 0
        for part in parts_of(folder, job, shard, schema):
            rows, failed = part.counts()
            done += rows
            total_failed += failed
            if failed_rows:
                yield from (f'{row["id"]}\t{row["reason"]}\t{row["message"]}'
                            for row in part.failed())
        total_done += done
        holder = Lock(folder, shard).holder()
        if holder:
            running += 1
            rate += (done - holder['done']) / max(time.time() - holder['since'], 1e-9)
    if failed_rows:
        return
    left = job['inputs'] - total_done
    yield (f'{total_done} of {job["inputs"]} done, {total_failed} failed, {left} left: '
           f'{job["task"]} with {job["model"]}')
    if not running:
        yield 'not running' if left else 'complete'
    elif rate > 0:
        yield (f'{running} of {job["shards"]} shards running, {rate:.1f}/s, '
               f'{duration(left / rate)} left')
    else:
        yield f'{running} of {job["shards"]} shards running'
