"""What the server says when it refuses or fails."""

from typing import Any, Dict, Optional, Tuple

import grpc
from google.protobuf.message import DecodeError

from . import _messages

_DETAILS = 'grpc-status-details-bin'
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class VisionError(Exception):
    """A request, or one picture of it, that was not answered.

    Attributes:
      code: the grpc.StatusCode.
      message: for people; names the field, what was got and what was expected.
      reason: stable, such as 'QUEUE_FULL' (docs/serving.md, "Errors"); '' for errors of the
        network or of gRPC itself, which carry no details.
      fields: paths of the fields at fault, such as 'images[2].encoded'; pictures are counted within
        their request.
      metadata: the ErrorInfo's, such as 'trace_id' or 'predicted_wait_ms'.
      retry_delay: seconds after which another try makes sense; None if the server does not say.
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
        """The first of `fields`; '' if there is none."""
        return self.fields[0] if self.fields else ''

    def __str__(self) -> str:
        reason = f' ({self.reason})' if self.reason else ''
        field = f'{self.field}: ' if not self.message.startswith(self.field) else ''
        delay = '' if self.retry_delay is None else f'; retry after {self.retry_delay:g} s'
        return f'{self.code.name}{reason}: {field}{self.message}{delay}'


def seconds(duration: Any) -> float:
    """Of a google.protobuf.Duration."""
    return float(duration.seconds + duration.nanos / 1e9)


def _unpack(status: Any, kind: Any) -> Any:
    """The first detail of that kind; None if there is none that can be read."""
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
    """The error of one picture: a google.rpc.Status that is not OK."""
    return _error(_CODES.get(status.code, grpc.StatusCode.UNKNOWN), status.message, status)


def from_rpc_error(error: Any) -> VisionError:
    """The error of a call, a grpc.RpcError of either API. Details that cannot be read are left
    out."""
    status = _messages.Status()
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            try:
                status = _messages.Status.FromString(value)
            except DecodeError:
                pass
    return _error(error.code(), error.details() or '', status)
