"""The errors that a server returns."""

import dataclasses
from typing import Any, Dict, Optional, Tuple

import grpc
from google.protobuf.message import DecodeError

from . import _messages
from ._address import proxy_of

_DETAILS = 'grpc-status-details-bin'
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class VisionError(Exception):
    """A request, or one picture of a request, that was not answered.

    Attributes:
      code: the grpc.StatusCode.
      message: a human-readable text. It names the field, what the field contained and what was
        expected.
      reason: a stable name, such as 'QUEUE_FULL' (docs/serving.md, "Errors"). '' for errors of the
        network or of gRPC itself, which have no details.
      fields: paths of the invalid fields, such as 'images[2].encoded'. The index counts the
        pictures of one request.
      metadata: the metadata of the ErrorInfo, such as 'trace_id' or 'predicted_wait_ms'.
      retry_delay: seconds after which another attempt makes sense. None if the server does not
        say.
    """

    def __init__(self, code: grpc.StatusCode, message: str, *, reason: str = '',
                 fields: Tuple[str, ...] = (), metadata: Optional[Dict[str, str]] = None,
                 retry_delay: Optional[float] = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.reason = reason
        self.fields = fields
        self.metadata = metadata or {}
        self.retry_delay = retry_delay

    @property
    def field(self) -> str:
        """The first of `fields`, or '' if there is none."""
        return self.fields[0] if self.fields else ''

    def __str__(self) -> str:
        reason = f' ({self.reason})' if self.reason else ''
        field = f'{self.field}: ' if not self.message.startswith(self.field) else ''
        delay = f'; retry after {self.retry_delay:g} s' if self.retry_delay else ''
        return f'{self.code.name}{reason}: {field}{self.message}{delay}'


def seconds(duration: Any) -> float:
    """Returns the seconds of a google.protobuf.Duration."""
    return float(duration.seconds + duration.nanos / 1e9)


def _unpack(status: Any, kind: Any) -> Any:
    """Returns the first detail of this class. Returns None if there is none or it cannot be
    parsed."""
    name = kind.DESCRIPTOR.full_name
    for detail in status.details:
        if detail.type_url.rpartition('/')[2] == name:
            try:
                return kind.FromString(detail.value)
            except DecodeError:
                return None
    return None


def _error(code: grpc.StatusCode, message: str, status: Any) -> VisionError:
    info = _unpack(status, _messages.ErrorInfo)
    bad = _unpack(status, _messages.BadRequest)
    retry = _unpack(status, _messages.RetryInfo)
    return VisionError(
        code, message,
        reason=info.reason if info else '',
        fields=tuple(violation.field for violation in bad.field_violations) if bad else (),
        metadata=dict(info.metadata) if info else {},
        retry_delay=seconds(retry.retry_delay) if retry else None)


def from_status(status: Any) -> VisionError:
    """Converts the error of one picture, a google.rpc.Status that is not OK."""
    return _error(_CODES.get(status.code, grpc.StatusCode.UNKNOWN), status.message, status)


def from_rpc_error(error: Any) -> VisionError:
    """Converts the error of a call, a grpc.RpcError of either API. Details that cannot be parsed
    are dropped."""
    status = _messages.Status()
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            try:
                status = _messages.Status.FromString(value)
            except DecodeError:
                pass
    return _error(error.code(), error.details() or '', status)


@dataclasses.dataclass(frozen=True)
class Reach:
    """How a client reaches its server. Error messages are built from it."""

    server: str
    tls: bool
    token: bool

    def explained(self, error: VisionError) -> VisionError:
        """Replaces gRPC's own messages by a sentence that names the server. Also replaces the
        messages of a server that drains, loads or rejects the token."""
        if error.reason == 'DRAINING':
            error.message = f'the server at {self.server} is draining'
        elif error.reason == 'MODEL_NOT_READY' and error.metadata.get('state') == 'LOADING':
            error.message = f'the server at {self.server} is loading: {error.message}'
        elif error.reason == 'TOKEN_INVALID':
            error.message = (f'the server at {self.server} does not accept the token: it is unknown '
                             'or has expired' if self.token else
                             f'the server at {self.server} expects a token: pass token')
        elif not error.reason and error.code is grpc.StatusCode.UNAVAILABLE:
            error.message = self._unreachable(error.message) + self._through_proxy()
        elif not error.reason and error.message == 'Deadline Exceeded':
            error.message = (f'the server at {self.server} has not answered in time'
                             + self._through_proxy())
        error.args = (error.code, error.message)
        return error

    def _through_proxy(self) -> str:
        proxy = proxy_of(self.server)
        return f' (asked through the HTTP proxy {proxy})' if proxy else ''

    def _unreachable(self, text: str) -> str:
        """Returns a sentence that explains `text`, which is gRPC's message for a call that has not
        reached the server. Knows the messages of gRPC 1.48 to 1.85."""
        server = f'the server at {self.server}'
        lower = text.lower()
        connecting = 'last error' in lower
        for part, sentence in (
                ('connection refused', f'nothing listens at {self.server}'),
                ('name not found', f'the host of {self.server} is unknown'),
                ('name resolution', f'the host of {self.server} is unknown'),
                ('dns resolution', f'the host of {self.server} is unknown'),
                ('backend unhealthy', f'{server} does not serve: it loads, drains or has failed'),
                ('http1.x', f'{server} speaks HTTP/1: is this its REST port?'),
                ('wrong_version_number', f'{server} does not speak TLS: connect without it'),
                ('certificate_verify_failed', f'nothing that the client trusts has signed the '
                                              f'certificate of {server}: pass root_certificates'),
                ('hostname verification', f'the certificate of {server} is for another name: pass '
                                          'server_name'),
                ('no match found for server name', f'the certificate of {server} is for another '
                                                   'name: pass server_name')):
            if part in lower:
                return sentence
        if 'socket closed' in lower or 'connection reset' in lower:
            if not connecting:
                return f'{server} has ended the connection'
            return (f'{server} closes connections: does it expect a certificate of the client?'
                    if self.tls else
                    f'{server} closes connections: does it expect TLS? Pass tls=True')
        return f'{server} cannot be reached: {text}' if connecting else text


class CallErrors:
    """The errors of one call's attempts. If an attempt reaches no healthy server, the next attempt
    also goes to unhealthy servers. This is useful, because a draining server still answers for some
    time. Any other unhealthy server returns an error that says why it is unhealthy."""

    def __init__(self) -> None:
        self.only_healthy = True  # Whether the next attempt goes only to healthy servers.
        self._best: Optional[VisionError] = None

    def add(self, error: VisionError) -> VisionError:
        self.only_healthy = bool(error.reason) or not self.only_healthy
        if error.reason or self._best is None or not self._best.reason:
            self._best = error
        return error

    @property
    def best(self) -> VisionError:
        """The last error with a server's reason. If there is none, the last error."""
        assert self._best is not None
        return self._best
