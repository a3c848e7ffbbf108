"""sfmamba-batch: runs one model over many pictures, into Parquet files. See docs/batch.md."""

import argparse
import asyncio
import os
import pathlib
import re
import signal
import sys
from typing import Any, Dict, List, Optional, Sequence

from .._errors import VisionError
from . import inputs as inputs_of
from . import status
from .asking import Asker
from .job import Job, describe
from .parts import FORMATS
from .progress import Display
from .rows import TASKS
from .servers import Access, JobError

ALL_DONE, NOT_FINISHED, SOME_FAILED = 0, 1, 3


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    flags = _parser().parse_args(arguments)
    try:
        if flags.command != 'status':
            return _start(flags)
        for line in status.lines(flags.output, flags.failed):
            print(line)
        return ALL_DONE
    except (JobError, OSError, ValueError, VisionError) as error:
        print(f'sfmamba-batch: {error}', file=sys.stderr)
    except KeyboardInterrupt:
        print('sfmamba-batch: interrupted', file=sys.stderr)
    return NOT_FINISHED


# ---- Flags ----


def _add(parser: argparse.ArgumentParser, name: str, **details: Any) -> None:
    """Adds a flag, which may also be written with hyphens."""
    names = dict.fromkeys([f'--{name}', f'--{name.replace("_", "-")}'])
    parser.add_argument(*names, dest=name, **details)


def _shard(text: str) -> List[int]:
    match = re.fullmatch('([0-9]+)/([0-9]+)', text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f'got {text}, expected such as 1/4 to 4/4')
    return [int(match[1]), int(match[2])]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'got {text}, expected a number from 1 on')
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='sfmamba-batch', description='Runs a model over many pictures. The same command resumes '
        'a job. Exit codes: 0 all done, 3 some pictures failed, 1 not finished.')
    commands = parser.add_subparsers(dest='command', required=True)
    for name in TASKS:
        _add_job_flags(commands.add_parser(name, help=f'{name} pictures'), name)
    about = commands.add_parser('status', help='how far a job is')
    about.add_argument('output', type=pathlib.Path)
    _add(about, 'failed', action='store_true', help='list the pictures that failed, and why')
    return parser


def _add_job_flags(parser: argparse.ArgumentParser, task: str) -> None:
    _add(parser, 'input', required=True,
         help='a folder; or a text list, Parquet, JSONL, tar, or a pattern of these')
    _add(parser, 'output', required=True, type=pathlib.Path, help='a folder for results')
    _add(parser, 'server', action='append', metavar='HOST:PORT',
         help='may be repeated (default 127.0.0.1:8001)')
    _add(parser, 'model', default='', help="default: the servers' only or default one")
    _add(parser, 'id_column', default='id', help='of Parquet and JSONL (default %(default)s)')
    _add(parser, 'image_column', default='image',
         help='of Parquet and JSONL: paths or bytes (default %(default)s)')
    _add(parser, 'shard', type=_shard, default=[1, 1], metavar='I/N',
         help='the Ith of N ranges of the input')
    _add(parser, 'part_size', type=_positive, default=10000,
         help='pictures of one output file (default %(default)s)')
    _add(parser, 'format', choices=FORMATS, default='parquet', help='(default %(default)s)')
    _add(parser, 'retry_failed', action='store_true', help='ask again for pictures that failed')
    _add(parser, 'priority', choices=('LOW', 'NORMAL', 'HIGH'), default='LOW',
         help='(default %(default)s: online callers go first)')
    _add(parser, 'tls', action='store_true', help='speak TLS')
    _add(parser, 'tls_ca', type=pathlib.Path, metavar='FILE',
         help="who signs the servers' certificates; implies --tls")
    _add(parser, 'token_file', type=pathlib.Path, metavar='FILE',
         help='the token that each call shows; read again when it changes')
    if task == 'classify':
        _add(parser, 'top_k', type=int, default=5, help='classes of a row (default %(default)s)')
        _add(parser, 'embedding', action='store_true', help='the pooled features too')
        _add(parser, 'resize', action='store_true',
             help="send the model's input in place of files; needs Pillow")
    elif task == 'detect':
        _add(parser, 'score_threshold', type=float, default=0.5, help='(default %(default)s)')
        _add(parser, 'max_detections', type=int, default=0,
             help="of a picture (default: the model's own)")
        _add(parser, 'masks', choices=('none', 'rle'), default='none', help='(default %(default)s)')
    else:
        _add(parser, 'model_size', action='store_true',
             help="class maps of the network's input size, not the picture's")


def _parameters(flags: argparse.Namespace) -> Dict[str, Any]:
    """Returns the parameters that affect the answers, by the names that Client has for them."""
    if flags.command == 'classify':
        return {'top_k': flags.top_k, 'embedding': flags.embedding}
    if flags.command == 'detect':
        return {'score_threshold': flags.score_threshold, 'max_detections': flags.max_detections,
                'masks': flags.masks == 'rle'}
    return {'model_size': flags.model_size}


def _access(flags: argparse.Namespace) -> Access:
    file: Optional[pathlib.Path] = flags.token_file
    return Access(flags.tls, flags.tls_ca.read_bytes() if flags.tls_ca else None,
                  (lambda: file.read_text().strip()) if file else None)


# ---- A run ----


def _start(flags: argparse.Namespace) -> int:
    found = inputs_of.find(flags.input, flags.id_column, flags.image_column)
    listing = inputs_of.listing(found)
    flags.output.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_run(flags, found, listing))


async def _run(flags: argparse.Namespace, found: inputs_of.Inputs,
               listing: inputs_of.Listing) -> int:
    parameters, resize = _parameters(flags), getattr(flags, 'resize', False)
    asker = Asker(flags.command, flags.server or ['127.0.0.1:8001'], flags.model, _access(flags),
                  resize, priority=flags.priority, **parameters)
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, this.cancel)
    try:
        async with asker:
            shard, shards = flags.shard
            about = describe(asker, {**parameters, 'resize': resize}, listing, flags.part_size,
                             shards, flags.format)
            job = Job(asker, found, listing, about, flags.output, shard, flags.retry_failed)
            async with Display(job.progress) as display:
                await job.run()
    except asyncio.CancelledError:
        print('sfmamba-batch: interrupted; the same command goes on', file=sys.stderr, flush=True)
        # A thread may wait for a disk or a network for a longer time than the user wants to wait.
        os._exit(NOT_FINISHED)
    print(display.line(), file=sys.stderr)
    return SOME_FAILED if job.progress.failed else ALL_DONE
