"""Ends a training script with one line and exit status 2 if a user can correct the error.

    raise UserError(f'{folder}: 3 pictures, expected at least 5')
    ...
    if __name__ == '__main__':
        user_errors.run('train_classifier', main)

run() does this for UserError, for checkpoints and files that cannot be read or written, and if
memory runs out. All other exceptions are bugs and keep their tracebacks.
"""

import argparse
import sys

import classifier_files  # noqa: F401  Finds tools/checkpoint and tools/coco.
from checkpoint.tensor import CheckpointError
from coco.annotations import CocoError


class UserError(ValueError):
    """Raised with one line that says what was found and what was expected."""


def number(kind, least=None):
    """Returns a type for argparse's arguments: a number of `kind`, at least `least`. Without
    `least`, above 0.
    """
    def read(text):
        value = kind(text)
        if not (value > 0 if least is None else value >= least):
            expected = 'a number above 0' if least is None else f'{least} or more'
            raise argparse.ArgumentTypeError(f'expected {expected}, got {text}')
        return value
    read.__name__ = kind.__name__  # argparse names it in its message for text that is no number.
    return read


def read_text(path):
    """Returns the text of a UTF-8 file."""
    try:
        return path.read_text(encoding='utf-8')
    except UnicodeDecodeError as error:
        raise UserError(f'{path}: byte {error.start} is not UTF-8') from error


def message(error):
    """Returns the line for an exception, or None if it is a bug."""
    if isinstance(error, OSError):
        place = f'{error.filename}: ' if error.filename is not None else ''
        return place + (error.strerror or str(error))
    if isinstance(error, (UserError, CheckpointError, CocoError)):
        return ' '.join(str(error).split())
    # PyTorch's OutOfMemoryError is compared by its name. So this file need not import PyTorch, and
    # scripts that only read files do not need it.
    if isinstance(error, MemoryError) or type(error).__name__ == 'OutOfMemoryError':
        return 'out of memory: smaller batches or pictures need less'
    return None


def check_writable(folder):
    """Makes the folder. Raises OSError if no file can be written to it. This is checked before a
    run, because the run writes its files only hours later.
    """
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / '.writable'
    probe.write_bytes(b'')
    probe.unlink(missing_ok=True)  # Another process may have removed it.


def run(program, main):
    """Calls main() and ends the process as described above. If interrupted, prints how to
    resume."""
    try:
        main()
    except KeyboardInterrupt:
        print(f'\n{program}: stopped; --resume goes on from the last checkpoint', file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        line = message(error)
        if line is None:
            raise
        print(f'{program}: {line}', file=sys.stderr)
        sys.exit(2)
