"""What the client and its asyncio twin have in common: channels, credentials, deadlines."""

import json
import math
import time
from typing import Any, Dict, List, Optional, Tuple

import grpc

from . import _messages
from ._requests import MAX_MESSAGE_BYTES, STREAM_PATH, Method
from ._retry import Budget

SERVICE = 'sfmamba.v1.VisionService'


def channel_options(check_health: bool) -> List[Tuple[str, Any]]:
    """Calls go round-robin to the addresses of the server's name; with `check_health` to those that
    say they are healthy."""
    config: Dict[str, Any] = {'loadBalancingConfig': [{'round_robin': {}}]}
    if check_health:
        config['healthCheckConfig'] = {'serviceName': SERVICE}
    return [('grpc.max_receive_message_length', MAX_MESSAGE_BYTES),
            ('grpc.max_send_message_length', MAX_MESSAGE_BYTES),
            ('grpc.service_config', json.dumps(config))]


def target(server: str) -> str:
    """'host:port' is looked up by DNS; names with a scheme of gRPC's stay."""
    return server if '://' in server or server.startswith('unix:') else f'dns:///{server}'


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


class Connection:
    """Two channels to one server: predictions take the first and go to healthy addresses only;
    questions about the server take the second and go to any.

    `api` is the module grpc or grpc.aio. Nothing connects before the first call. Thread-safe where
    `api` is.
    """

    def __init__(self, api: Any, server: str, secrets: Optional[grpc.ChannelCredentials],
                 token: Optional[str], timeout: float) -> None:
        self.budget = Budget()
        self.metadata = () if token is None else (('authorization', f'Bearer {token}'),)
        self._timeout = _positive(timeout)
        self._channels = []
        for check_health in (True, False):
            options = channel_options(check_health)
            self._channels.append(
                api.insecure_channel(target(server), options) if secrets is None
                else api.secure_channel(target(server), secrets, options))
        self._stubs: Dict[str, Any] = {}

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
    if not 0 < timeout < math.inf:
        raise ValueError(f'a timeout is a positive number of seconds, not {timeout}')
    return timeout
