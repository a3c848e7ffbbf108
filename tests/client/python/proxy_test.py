"""Tests which calls go to the HTTP proxy that an environment variable names."""

import asyncio
import os
import socket
import threading
import unittest
from unittest import mock

from fake_server import FakeServer

from sfmamba import AsyncClient, Client, VisionError, _messages
from sfmamba._address import proxy_of

ANSWER = _messages.ClassifyResponse(results=[{'categories': [{'label': 'a', 'score': 1}]}])


class FakeProxy:
    """A proxy on another address of this machine that records the clients' requests.

    It closes each connection, or keeps it open if `silent` is set.

    Attributes:
      address: 'host:port'.
      seen: the first bytes of each connection.
    """

    def __init__(self):
        self.seen = []
        self.silent = False
        self._open = []
        self._socket = socket.create_server(('127.0.0.2', 0))
        self.address = '127.0.0.2:%d' % self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.seen.append(connection.recv(4096))
            if self.silent:
                self._open.append(connection)
            else:
                connection.close()

    def stop(self):
        for connection in self._open:
            connection.close()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def environments(proxy):
    """Yields all environment variables in which gRPC finds a proxy, and some that it ignores."""
    for name in ('http_proxy', 'https_proxy', 'grpc_proxy', 'HTTP_PROXY'):
        yield {name: f'http://user:password@{proxy}'}
    yield {'GRPC_ADDRESS_HTTP_PROXY': proxy,
           'GRPC_ADDRESS_HTTP_PROXY_ENABLED_ADDRESSES': '127.0.0.0/8,::1'}


def blocking(server, timeout=20, **arguments):
    with Client(server, timeout=timeout, **arguments) as client:
        return client.classify(b'x').labels


def in_a_loop(server, timeout=20, **arguments):
    async def asked():
        async with AsyncClient(server, timeout=timeout, **arguments) as client:
            return (await client.classify(b'x')).labels
    return asyncio.run(asked())


class ProxyTest(unittest.TestCase):
    def setUp(self):
        self.proxy = FakeProxy()
        self.addCleanup(self.proxy.stop)
        server = FakeServer(ANSWER, host='[::]')
        self.addCleanup(server.stop)
        self.port = server.address.rpartition(':')[2]

    def environment(self, **variables):
        clean = {name: value for name, value in os.environ.items()
                 if not name.lower().endswith('proxy')}
        return mock.patch.dict(os.environ, {**clean, **variables}, clear=True)

    def test_what_stays_on_this_machine_takes_none(self):
        hosts = ('127.0.0.1', 'LocalHost', '[::1]', '[::ffff:127.0.0.1]', 'ipv4:127.0.0.1',
                 'ipv6:[::1]', 'dns:///localhost', 'dns:localhost')
        for variables in environments(self.proxy.address):
            with self.environment(**variables):
                for host in hosts:
                    for ask in (blocking, in_a_loop):
                        with self.subTest(host=host, variables=variables):
                            self.assertEqual(ask(f'{host}:{self.port}', token='secret'), ('a',))
        self.assertEqual(self.proxy.seen, [])

    def test_a_token_goes_to_none_in_clear(self):
        with self.environment(http_proxy=f'http://{self.proxy.address}'):
            for server in ('10.0.0.1:8001', 'ipv4:127.0.0.1:8001,10.0.0.1:8001',
                           'dns://127.0.0.2/localhost:8001', 'localhost.example.org:8001'):
                for ask in (blocking, in_a_loop):
                    with self.assertRaisesRegex(ValueError, 'without TLS'):
                        ask(server, token='secret')
        self.assertEqual(self.proxy.seen, [])

    def test_errors_name_it(self):
        with self.environment(http_proxy=f'http://user:password@{self.proxy.address}'):
            for ask in (blocking, in_a_loop):
                with self.assertRaisesRegex(VisionError, f'proxy {self.proxy.address}') as raised:
                    ask('10.0.0.1:8001')
                self.assertNotIn('password', str(raised.exception))
        self.assertIn(b'CONNECT 10.0.0.1:8001', self.proxy.seen[0])

    def test_errors_name_one_that_does_not_answer(self):
        self.proxy.silent = True
        with self.environment(http_proxy=f'http://{self.proxy.address}'):
            for ask in (blocking, in_a_loop):
                with self.assertRaisesRegex(VisionError, f'proxy {self.proxy.address}'):
                    ask('10.0.0.1:8001', timeout=0.5)

    def test_which_one_grpc_takes(self):
        for variables, proxy in (
                ({}, ''),
                ({'http_proxy': 'http://a:1'}, 'a:1'),
                ({'http_proxy': 'http://a:1', 'grpc_proxy': 'http://b:1'}, 'b:1'),
                ({'http_proxy': 'http://a:1', 'no_proxy': 'x, example.org'}, ''),
                ({'http_proxy': 'http://a:1', 'no_proxy': 'x', 'no_grpc_proxy': 'org'}, '')):
            with self.environment(**variables):
                self.assertEqual(proxy_of('vision.example.org:8001'), proxy, variables)
        with self.environment(http_proxy='http://a:1', no_proxy='10.0.0.0/8'):
            self.assertEqual((proxy_of('10.1.2.3:1'), proxy_of('11.1.2.3:1')), ('', 'a:1'))


if __name__ == '__main__':
    unittest.main()
