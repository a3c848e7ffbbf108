"""Tests which tokens are sent without TLS, and to which servers."""

import unittest

import sfmamba
from sfmamba._address import is_loopback, target


class IsLoopbackTest(unittest.TestCase):
    def test_this_machine(self):
        for server in ('localhost:8001', 'LOCALHOST', '127.0.0.1:8001', '127.9.9.9', '[::1]:8001',
                       '::1', 'dns:///localhost:1', 'dns:localhost:1', 'ipv4:127.0.0.1:8001',
                       'ipv4:127.0.0.1:1,127.0.0.2:2', 'ipv6:[::1]:8001', 'unix:/run/vision.sock',
                       '[::ffff:127.0.0.1]:8001', 'ipv6:%5B::1%5D:8001', 'dns:///LocalHost:1',
                       'unix-abstract:vision'):
            self.assertTrue(is_loopback(server), server)

    def test_other_machines(self):
        for server in ('vision:8001', '10.0.0.1:8001', '0.0.0.0:8001', '[::]:8001', '2001:db8::1',
                       'localhost.example.org:1', '127.0.0.1.example.org:1', '',
                       '[::ffff:10.0.0.1]:1', 'ipv6:[::1]:1,[2001:db8::1]:1',
                       'dns:///vision.example.org:443', 'dns://10.0.0.1/localhost:1',
                       'ipv4:127.0.0.1:1,10.0.0.1:1', 'xds:///localhost', 'https://localhost:1'):
            self.assertFalse(is_loopback(server), server)


class TargetTest(unittest.TestCase):
    def test_a_host_and_a_port(self):
        for server in ('host:1', 'vision.example.org:65535', '127.0.0.1:8001', '[::1]:8001',
                       'dns:1'):
            self.assertEqual(target(server), f'dns:///{server}')

    def test_targets_of_grpc_stay(self):
        for server in ('dns:///host:1', 'dns:host:1', 'xds:///vision', 'unix:/run/vision.sock',
                       'unix:///run/v.sock', 'unix-abstract:vision',
                       'ipv4:127.0.0.1:1,127.0.0.2:2', 'ipv6:[::1]:1'):
            self.assertEqual(target(server), server)

    def test_others_are_refused_at_once(self):
        for server in ('', 'host', ':1', 'host:', 'host:0', 'host:65536', 'host:http', '::1',
                       '1.2.3.4', 'host:1/v1', '[::1]', 'http://host:1', 'https://host',
                       'grpc://host:1'):
            for client in (sfmamba.Client, sfmamba.AsyncClient):
                with self.assertRaisesRegex(ValueError, 'server: got'):
                    client(server)
        with self.assertRaisesRegex(ValueError, "got 'http://host:1', expected 'host:port' without "
                                    'http://$'):
            sfmamba.Client('http://host:1')
        with self.assertRaisesRegex(ValueError, 'without https://, and tls=True$'):
            sfmamba.Client('https://host:1')


if __name__ == '__main__':
    unittest.main()
