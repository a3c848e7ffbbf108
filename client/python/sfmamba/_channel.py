"""The code for channels, credentials and deadlines that Client and AsyncClient share."""

import json
import math
import re
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import grpc

from . import _messages
from ._address import is_loopback, target
from ._errors import Reach, VisionError, from_rpc_error
from ._requests import MAX_MESSAGE_BYTES, STREAM_PATH, Method
from ._retry import Budget

SERVICE = 'sfmamba.v1.VisionService'

# A token, or a function that returns the token for the next call.
Token = Union[str, Callable[[], str]]

_TOKEN = re.compile(r'[\x21-\x7e]+')  # Characters that a header may contain: visible ASCII.
# Milliseconds. gRPC's default is two minutes, during which a client would not notice that a server
# is back.
_MAX_RECONNECT_BACKOFF = 1000
# Milliseconds. During a call, a connection is dropped if the server does not answer a ping within
# four seconds. Without pings, the client would not notice a hung server, because the kernel of the
# server's machine keeps the connection open.
_KEEPALIVE_TIME = 2000
_KEEPALIVE_TIMEOUT = 2000
# Milliseconds. gRPC's default is 30 seconds, during which a client would not notice new servers.
_MIN_DNS_INTERVAL = 5000


def channel_options(check_health: bool, server_name: Optional[str] = None,
                    allow_proxy: bool = True, apart: bool = False) -> List[Tuple[str, Any]]:
    """Returns the options of a channel, whose calls go round-robin to the addresses of the server's
    name. If `check_health`, they go only to addresses that report themselves healthy. The server's
    certificate must be for `server_name`. If this is None, it must be for the server's host. Unless
    `allow_proxy`, proxies named in environment variables are ignored. If `apart`, the channel
    shares its connections with no other channel."""
    config: Dict[str, Any] = {'loadBalancingConfig': [{'round_robin': {}}]}
    if check_health:
        config['healthCheckConfig'] = {'serviceName': SERVICE}
    options: List[Tuple[str, Any]] = [
        ('grpc.max_reconnect_backoff_ms', _MAX_RECONNECT_BACKOFF),
        ('grpc.keepalive_time_ms', _KEEPALIVE_TIME),
        ('grpc.keepalive_timeout_ms', _KEEPALIVE_TIMEOUT),
        ('grpc.http2.max_pings_without_data', 0),  # This means no limit.
        ('grpc.dns_min_time_between_resolutions_ms', _MIN_DNS_INTERVAL),
        ('grpc.max_receive_message_length', MAX_MESSAGE_BYTES),
        ('grpc.max_send_message_length', MAX_MESSAGE_BYTES),
        ('grpc.service_config', json.dumps(config))]
    if apart:
        options.append(('grpc.use_local_subchannel_pool', 1))
    if not allow_proxy:
        options += [('grpc.enable_http_proxy', 0), ('grpc.address_http_proxy_enabled_addresses', '')]
    if server_name is not None:
        options.append(('grpc.ssl_target_name_override', server_name))
    return options


def credentials(tls: bool, root_certificates: Optional[bytes], private_key: Optional[bytes],
                certificate_chain: Optional[bytes]) -> Optional[grpc.ChannelCredentials]:
    """Returns the TLS credentials, or None without TLS. Raises ValueError if a file is empty, or if
    only one of the client's key and certificate is given."""
    if b'' in (root_certificates, private_key, certificate_chain):
        raise ValueError('a certificate or key is empty')  # Some versions of gRPC would abort.
    if (private_key is None) != (certificate_chain is None):
        raise ValueError('private_key and certificate_chain belong together')
    if not (tls or root_certificates or private_key):
        return None
    return grpc.ssl_channel_credentials(root_certificates, private_key, certificate_chain)


def _check_token_is_safe(server: str) -> None:
    if not is_loopback(server):
        raise ValueError(f'a token to {server} without TLS can be read on the way: pass tls=True or '
                         'root_certificates, or plaintext_token=True if the way is safe')


class Channels:
    """Two channels to one server. `healthy` sends only to addresses that report themselves healthy.
    Predictions use it first. `any` sends to any address. All other calls use it, and predictions
    use it if no healthy address can be reached. Both channels connect at their first call."""

    def __init__(self, make: Callable[[bool], Any]) -> None:
        self.healthy = make(True)
        self.any = make(False)
        self._stubs: Dict[Tuple[str, bool], Any] = {}

    def stub(self, method: Method, only_healthy: bool = True) -> Any:
        """Returns a function that calls the method."""
        only_healthy = only_healthy and method.parse is not None
        key = (method.path, only_healthy)
        if key not in self._stubs:
            self._stubs[key] = self._channel(only_healthy).unary_unary(
                method.path, request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString)
        return self._stubs[key]

    def stream(self, only_healthy: bool = True) -> Any:
        """Returns a function that begins a StreamPredict call."""
        return self._channel(only_healthy).stream_stream(
            STREAM_PATH, request_serializer=_messages.StreamPredictRequest.SerializeToString,
            response_deserializer=_messages.StreamPredictResponse.FromString)

    def _channel(self, only_healthy: bool) -> Any:
        return self.healthy if only_healthy else self.any


class Connection:
    """How calls reach one server.

    `api` is the module grpc or grpc.aio. Thread-safe if `api` is.

    Attributes:
      budget: limits the retries of all calls.
      retry_exhausted: whether calls retry RESOURCE_EXHAUSTED.
      has_answered: whether the server has answered any call.
      closed: whether Client.close() has cancelled all calls. AsyncClient does not set it.
    """

    def __init__(self, api: Any, server: str, secrets: Optional[grpc.ChannelCredentials],
                 token: Optional[Token], timeout: float, server_name: Optional[str] = None,
                 plaintext_token: bool = False, retry_exhausted: bool = False) -> None:
        if server_name is not None and secrets is None:
            raise ValueError('server_name is of TLS: pass tls=True or root_certificates')
        if token is not None and secrets is None and not plaintext_token:
            _check_token_is_safe(server)
        self._api = api
        self._target = target(server)
        self._secrets = secrets
        self._server_name = server_name
        self._reach = Reach(server, secrets is not None, token is not None)
        self.budget = Budget()
        self.retry_exhausted = retry_exhausted
        self.has_answered = False
        self.closed = False
        self._token = token
        if isinstance(token, str):
            self.metadata()  # Raises ValueError for an invalid token.
        self._timeout = _positive(timeout)
        self._allow_proxy = not is_loopback(server)

    def channels(self, apart: bool = False) -> Channels:
        """Makes new Channels. If `apart`, they do not share connections with others."""
        return Channels(lambda check_health: self._channel(check_health, apart))

    def _channel(self, check_health: bool, apart: bool) -> Any:
        options = channel_options(check_health, self._server_name, self._allow_proxy, apart)
        if self._secrets is None:
            return self._api.insecure_channel(self._target, options)
        return self._api.secure_channel(self._target, self._secrets, options)

    def error(self, rpc_error: Any) -> VisionError:
        """Converts the error of a call to a VisionError. If the message is gRPC's own, it is
        replaced by a sentence that describes the problem (see Reach.explained())."""
        error = from_rpc_error(rpc_error)
        if error.code is grpc.StatusCode.CANCELLED and not error.reason and not self.closed:
            # When a server stops, it cancels the requests that it cannot finish in time. They may
            # be retried, like requests whose connection was closed.
            error = VisionError(grpc.StatusCode.UNAVAILABLE, 'Socket closed')
        return self._reach.explained(error)

    def metadata(self, traceparent: str = '') -> Tuple[Tuple[str, str], ...]:
        """Returns the metadata of a call that begins now. Raises ValueError if the token cannot be
        sent. The error does not contain the token."""
        trace = (('traceparent', traceparent),) if traceparent else ()
        if self._token is None:
            return trace
        token = self._token() if callable(self._token) else self._token
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise ValueError('a token is visible ASCII without blanks; is there a line break at its '
                             'end?')
        return (('authorization', f'Bearer {token}'), *trace)

    def timeout(self, timeout: Optional[float]) -> float:
        """Returns `timeout` in seconds, or the client's default if it is None."""
        return self._timeout if timeout is None else _positive(timeout)

    def deadline(self, timeout: Optional[float]) -> float:
        """Returns the deadline of a call that begins now, as a value of time.monotonic()."""
        return time.monotonic() + self.timeout(timeout)


def _positive(timeout: float) -> float:
    if isinstance(timeout, str) or not 0 < timeout < math.inf:
        raise ValueError(f'a timeout is a positive number of seconds, not {timeout!r}')
    return timeout
