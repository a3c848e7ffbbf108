"""What a user can mend ends a training script in one line and exit status 2, no traceback.

    raise UserError(f'{folder}: 3 pictures, expected at least 5')
    ...
    if __name__ == '__main__':
        user_errors.run('train_classifier', main)

run() does so for UserError, for checkpoints and files that cannot be read or written, and for
memory that is used up. All other exceptions are bugs, and keep their tracebacks.
"""

import argparse
import sys

import classifier_files  # noqa: F401  Finds tools/checkpoint and tools/coco.
from checkpoint.tensor import CheckpointError
from coco.annotations import CocoError


class UserError(ValueError):
    """One line that says what was got and what was expected."""


def number(kind, least=None):
    """A type for argparse's arguments: a number of `kind`, `least` or more, else above 0."""
    def read(text):
        value = kind(text)
        if not (value > 0 if least is None else value >= least):
            expected = 'a number above 0' if least is None else f'{least} or more'
            raise argparse.ArgumentTypeError(f'expected {expected}, got {text}')
        return value
    read.__name__ = kind.__name__  # For argparse's own message, of text that is no number.
    return read


def read_text(path):
    """The text of a UTF-8 file."""
    try:
        return path.read_text(encoding='utf-8')
    except UnicodeDecodeError as error:
        raise UserError(f'{path}: byte {error.start} is not UTF-8') from error


def message(error):
    """The line for an exception, or None if it is a bug."""
    if isinstance(error, OSError):
        place = f'{error.filename}: ' if error.filename is not None else ''
        return place + (error.strerror or str(error))
    if isinstance(error, (UserError, CheckpointError, CocoError)):
        return ' '.join(str(error).split())
    # By name, as what reads files needs no PyTorch.
    if isinstance(error, MemoryError) or type(error).__name__ == 'OutOfMemoryError':
        return 'out of memory: smaller batches or pictures need less'
    return None


def check_writable(folder):
    """Makes the folder; OSError if it cannot be written to. For what is written hours later."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / '.writable'
    probe.write_bytes(b'')
    probe.unlink(missing_ok=True)  # Another process of the run may have been sooner.


def run(program, main):
    """Calls main() and ends the process as said above; when interrupted it says how to go on."""
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
