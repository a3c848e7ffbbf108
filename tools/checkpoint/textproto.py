"""Reads the part of protobuf's text format that config.textproto uses."""

import re

from checkpoint.tensor import CheckpointError

_TOKEN = re.compile(r'(?:\s|#[^\n]*)*'  # White space and comments.
                    r'("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[-+.\w]+|[][{}:,;]|$)')
_MAX_DEPTH = 16


class _Reader:
    def __init__(self, text):
        self._text = text
        self._position = 0

    def next(self):
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise CheckpointError(f'config.textproto: character {self._position} is not expected')
        self._position = match.end()
        return match[1]

    def peek(self):
        at = self._position
        token = self.next()
        self._position = at
        return token

    def message(self, end, depth=0):
        if depth > _MAX_DEPTH:
            raise CheckpointError('config.textproto: messages in too many messages')
        fields = {}
        while (name := self.next()) != end:
            if not re.fullmatch(r'\w+', name):
                raise CheckpointError(f'config.textproto: {name or "its end"} is not expected')
            if self.peek() == ':':
                self.next()
            fields.setdefault(name, []).extend(self._values(depth))
            if self.peek() in (',', ';'):
                self.next()
        return fields

    def _values(self, depth):
        token = self.next()
        if token == '{':
            return [self.message('}', depth + 1)]
        if token != '[':
            return [token.strip('"\'')]
        values = []
        while self.peek() != ']':
            token = self.next()
            values.append(self.message('}', depth + 1) if token == '{' else token.strip('"\''))
            if self.peek() == ',':
                self.next()
            elif not token:
                raise CheckpointError('config.textproto: a list without an end')
        self.next()
        return values


def parse(text):
    """Returns the fields of the message by name. Each is a list of texts and messages."""
    return _Reader(text).message('')
