"""The address of a server: where calls to it go, and whether they leave this machine."""

import ipaddress
import os
import re
import urllib.parse

_ADDRESS = re.compile(r'(?:[^:/\[\]]+|\[[^\[\]]+\]):([0-9]{1,5})')
_GRPC_TARGET = re.compile(r'(?:unix|unix-abstract|ipv4|ipv6|dns):(?![0-9]+$)')
# The environment variables that gRPC reads, in gRPC's order.
_PROXIES = ('grpc_proxy', 'https_proxy', 'http_proxy')
_EXCEPTIONS = ('no_grpc_proxy', 'no_proxy')


def target(server: str) -> str:
    """Returns gRPC's target for `server`. 'host:port' is looked up by DNS. Targets with a scheme of
    gRPC, such as 'unix:', stay unchanged.

    Raises ValueError for 'http://host:port' and similar URLs, and if the port is missing or
    invalid. Without this check, gRPC would look up the whole URL as a host's name, or would use
    port 443 if the port is missing.
    """
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


def is_loopback(server: str) -> bool:
    """Returns whether everything sent to `server` stays on this machine. If `server` is a list of
    addresses, every address must be local. The only name that counts as local is localhost."""
    text = server
    scheme = re.match(r'(unix|unix-abstract|ipv4|ipv6|dns):', server)
    if scheme:
        if scheme[1].startswith('unix'):
            return True
        text = server[scheme.end():]
        if text.startswith('//') and not text.startswith('///'):
            return False  # Another machine resolves the name.
        text = urllib.parse.unquote(text.lstrip('/'))
    return all(map(_is_loopback_host, text.split(',')))


def host_of(address: str) -> str:
    """Returns the host of 'host:port', '[host]:port' or a host alone."""
    if address.startswith('['):
        return address[1:].partition(']')[0]
    return address.partition(':')[0] if address.count(':') == 1 else address


def _is_loopback_host(address: str) -> bool:
    host = host_of(address)
    if host.lower() == 'localhost':
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(ip, 'ipv4_mapped', None) or ip).is_loopback


def proxy_of(server: str) -> str:
    """Returns the HTTP proxy through which gRPC reaches `server`, without its password, or '' if
    there is none."""
    if is_loopback(server):
        return ''
    url = next((os.environ[name] for name in _PROXIES if name in os.environ), '')
    excepted = next((os.environ[name] for name in _EXCEPTIONS if name in os.environ), '')
    host = host_of(target(server).rpartition('/')[2]).lower()
    if not url or any(_is_excepted(host, entry.strip().lower()) for entry in excepted.split(',')):
        return ''
    return url.rpartition('@')[2].rpartition('//')[2]


def _is_excepted(host: str, entry: str) -> bool:
    if not entry:
        return False
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry)
    except ValueError:
        return host.endswith(entry)
