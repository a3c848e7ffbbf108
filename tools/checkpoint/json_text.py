"""Parses a JSON object as strictly as the server does, see server/repository/json_text.h."""

import json
import re

from checkpoint.tensor import CheckpointError

_MAX_BYTES = 1 << 20
_MAX_DEPTH = 20  # The deepest nesting.
_LFS_POINTER = b'version https://git-lfs.github.com/spec/'
_WORD = re.compile(r'[A-Za-z0-9+.-]{1,20}')
# Group 1 is a constant that Python accepts but JSON does not have. The expression also matches
# whole strings, so that a constant inside a string is not found.
_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')


class _Constant(Exception):
    pass


def _refuse_constant(name):
    raise _Constant(name)


def _found(text, at):
    """Describes the text at position `at`, for an error."""
    rest, before = text[at:], text[:at].rstrip()
    if not rest:
        return 'the end of the file'
    if rest.startswith(('//', '/*', '#')):
        return 'a comment'
    if rest[0] in '}]' and before.endswith(','):
        return f"'{rest[0]}' behind a comma"
    if rest[0] == '"' and '"' not in rest[1:].split('\n')[0]:
        return 'a string without its closing quote'
    if ord(rest[0]) < 32 or ord(rest[0]) == 127:
        return 'a control character'
    word = _WORD.match(rest)
    return word[0] if word else f"'{rest[0]}'"


def _is_deep(value, levels=_MAX_DEPTH):
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(each, levels - 1) for each in inner)


def _broken(name, text, at):
    line, column = text.count('\n', 0, at) + 1, at - text.rfind('\n', 0, at)
    return CheckpointError(f'{name}: line {line}, column {column}: got {_found(text, at)}, expected '
                           'JSON, which has no comments, trailing commas, NaN or Infinity')


def refuse_pointer(name, data):
    """Raises CheckpointError if the bytes are a Git LFS pointer, a text in place of a file."""
    if data.startswith(_LFS_POINTER):
        raise CheckpointError(f'{name}: is a Git LFS pointer, expected the file that it stands for; '
                              'git lfs pull fetches it')


def parse_object(name, data):
    """Returns the dictionary that the bytes contain. If there is an error, raises CheckpointError
    with its position.
    """
    refuse_pointer(name, data)
    if len(data) > _MAX_BYTES:
        raise CheckpointError(f'{name}: got more than {_MAX_BYTES} bytes, expected at most that')
    try:
        text = data.decode('utf-8-sig')
    except ValueError as error:
        raise CheckpointError(f'{name}: got bytes that are not UTF-8, expected a JSON object'
                              ) from error
    start = len(text) - len(text.lstrip(' \t\r\n'))
    if start == len(text):
        raise CheckpointError(f'{name}: got an empty file, expected a JSON object')
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except _Constant as error:
        raise _broken(name, text, next(
            match.start() for match in _CONSTANT.finditer(text) if match[1])) from error
    except json.JSONDecodeError as error:
        raise _broken(name, text, error.pos) from error
    except (ValueError, RecursionError):  # Too many digits, or nested too deeply.
        is_deep = True
    else:
        is_deep = _is_deep(value)
    if is_deep:
        raise CheckpointError(f'{name}: got more than {_MAX_DEPTH} levels, expected a JSON object '
                              f'of at most {_MAX_DEPTH}')
    if not isinstance(value, dict):
        raise CheckpointError(f'{name}: got {_found(text, start)}, expected a JSON object')
    return value
