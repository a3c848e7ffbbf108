"""What the client and its asyncio twin have in common: channels, credentials, deadlines."""

import ipaddress
import json
import math
import re
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import grpc

from . import _messages
from ._requests import MAX_MESSAGE_BYTES, STREAM_PATH, Method
from ._retry import Budget

SERVICE = 'sfmamba.v1.VisionService'

# A token, or what returns the one to send with the next call.
Token = Union[str, Callable[[], str]]

_ADDRESS = re.compile(r'(?:[^:/\[\]]+|\[[^\[\]]+\]):([0-9]{1,5})')
_GRPC_TARGET = re.compile(r'(?:unix|unix-abstract|ipv4|ipv6|dns):(?![0-9]+$)')
_TOKEN = re.compile(r'[\x21-\x7e]+')  # What a header takes: no blanks, no other letters.


def channel_options(check_health: bool,
                    server_name: Optional[str] = None) -> List[Tuple[str, Any]]:
    """Calls go round-robin to the addresses of the server's name; with `check_health` to those that
    say they are healthy. The server's certificate is for `server_name`, or else for its host."""
    config: Dict[str, Any] = {'loadBalancingConfig': [{'round_robin': {}}]}
    if check_health:
        config['healthCheckConfig'] = {'serviceName': SERVICE}
    options: List[Tuple[str, Any]] = [
        ('grpc.max_receive_message_length', MAX_MESSAGE_BYTES),
        ('grpc.max_send_message_length', MAX_MESSAGE_BYTES),
        ('grpc.service_config', json.dumps(config))]
    if server_name is not None:
        options.append(('grpc.ssl_target_name_override', server_name))
    return options


def target(server: str) -> str:
    """'host:port' is looked up by DNS; names with a scheme of gRPC's stay. ValueError for a server
    that no call could reach, for which gRPC would try port 443 or a host of that name."""
    scheme, colon, _ = server.partition('://')
    if colon and scheme.lower() in ('http', 'https', 'grpc', 'grpcs', 'tcp'):
        raise ValueError(f"server: got {server!r}, expected 'host:port' without {scheme}://"
                         + (', and tls=True' if scheme.lower() == 'https' else ''))
    if not colon and not _GRPC_TARGET.match(server):
        address = _ADDRESS.fullmatch(server)
        if not address or not 0 < int(address[1]) < 65536:
            raise ValueError(f"server: got {server!r}, expected 'host:port', such as "
                             "'127.0.0.1:8001'")
    return server if colon or _GRPC_TARGET.match(server) else f'dns:///{server}'


def credentials(tls: bool, root_certificates: Optional[bytes], private_key: Optional[bytes],
                certificate_chain: Optional[bytes]) -> Optional[grpc.ChannelCredentials]:
    """None without TLS. ValueError if a file was empty, or if a client's key comes without its
    certificate."""
    if b'' in (root_certificates, private_key, certificate_chain):
        raise ValueError('a certificate or key is empty')  # Some versions of gRPC would abort.
    if (private_key is None) != (certificate_chain is None):
        raise ValueError('private_key and certificate_chain belong together')
    if not (tls or root_certificates or private_key):
        return None
    return grpc.ssl_channel_credentials(root_certificates, private_key, certificate_chain)


def is_loopback(server: str) -> bool:
    """Whether all that is sent to `server` stays on this machine, as far as its text says: no name
    but localhost is looked up."""
    text = server
    scheme = re.match(r'(?:(unix|unix-abstract)|ipv4|ipv6|dns):(?:///)?', server)
    if scheme:
        if scheme[1]:
            return True
        text = server[scheme.end():]
    return all(map(_is_loopback_host, text.split(',')))


def _is_loopback_host(address: str) -> bool:
    host = address
    if address.startswith('['):
        host = address[1:].partition(']')[0]
    elif address.count(':') == 1:
        host = address.partition(':')[0]
    if host.lower() == 'localhost':
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_token_is_safe(server: str) -> None:
    if not is_loopback(server):
        raise ValueError(f'a token to {server} without TLS can be read on the way: pass tls=True or '
                         'root_certificates, or plaintext_token=True if the way is safe')


class Connection:
    """Two channels to one server: predictions take the first and go to healthy addresses only;
    questions about the server take the second and go to any.

    `api` is the module grpc or grpc.aio. Nothing connects before the first call. Thread-safe where
    `api` is.
    """

    def __init__(self, api: Any, server: str, secrets: Optional[grpc.ChannelCredentials],
                 token: Optional[Token], timeout: float, server_name: Optional[str] = None,
                 plaintext_token: bool = False) -> None:
        if server_name is not None and secrets is None:
            raise ValueError('server_name is of TLS: pass tls=True or root_certificates')
        if token is not None and secrets is None and not plaintext_token:
            _check_token_is_safe(server)
        name = target(server)
        self.budget = Budget()
        self._token = token
        if isinstance(token, str):
            self.metadata()  # Refuses a bad one here.
        self._timeout = _positive(timeout)
        self._channels = []
        for check_health in (True, False):
            options = channel_options(check_health, server_name)
            self._channels.append(
                api.insecure_channel(name, options) if secrets is None
                else api.secure_channel(name, secrets, options))
        self._stubs: Dict[str, Any] = {}

    def metadata(self, traceparent: str = '') -> Tuple[Tuple[str, str], ...]:
        """Of the call that begins now. ValueError if the token cannot be sent; it does not show
        it."""
        trace = (('traceparent', traceparent),) if traceparent else ()
        if self._token is None:
            return trace
        token = self._token() if callable(self._token) else self._token
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise ValueError('a token is visible ASCII without blanks; is there a line break at its '
                             'end?')
        return (('authorization', f'Bearer {token}'), *trace)

    def stub(self, method: Method) -> Any:
        """Calls the method."""
        if method.path not in self._stubs:
            predict, control = self._channels
            channel = control if method.parse is None else predict
            self._stubs[method.path] = channel.unary_unary(
                method.path, request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString)
        return self._stubs[method.path]

    def stream(self) -> Any:
        """Begins a StreamPredict call."""
        return self._channels[0].stream_stream(
            STREAM_PATH, request_serializer=_messages.StreamPredictRequest.SerializeToString,
            response_deserializer=_messages.StreamPredictResponse.FromString)

    def timeout(self, timeout: Optional[float]) -> float:
        """Seconds: the client's own unless there is another."""
        return self._timeout if timeout is None else _positive(timeout)

    def deadline(self, timeout: Optional[float]) -> float:
        """Of a call that begins now, as time.monotonic() counts."""
        return time.monotonic() + self.timeout(timeout)

    @property
    def channels(self) -> List[Any]:
        """Both, to be closed."""
        return self._channels


def _positive(timeout: float) -> float:
    if isinstance(timeout, str) or not 0 < timeout < math.inf:
        raise ValueError(f'a timeout is a positive number of seconds, not {timeout!r}')
    return timeout
