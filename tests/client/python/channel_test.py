"""What is sent in clear, and to whom."""

import unittest

from sfmamba._channel import is_loopback


class IsLoopbackTest(unittest.TestCase):
    def test_this_machine(self):
        for server in ('localhost:8001', 'LOCALHOST', '127.0.0.1:8001', '127.9.9.9', '[::1]:8001',
                       '::1', 'dns:///localhost:1', 'dns:localhost:1', 'ipv4:127.0.0.1:8001',
                       'ipv4:127.0.0.1:1,127.0.0.2:2', 'ipv6:[::1]:8001', 'unix:/run/vision.sock',
                       'unix-abstract:vision'):
            self.assertTrue(is_loopback(server), server)

    def test_other_machines(self):
        for server in ('vision:8001', '10.0.0.1:8001', '0.0.0.0:8001', '[::]:8001', '2001:db8::1',
                       'localhost.example.org:1', '127.0.0.1.example.org:1', '',
                       'dns:///vision.example.org:443', 'dns://10.0.0.1/localhost:1',
                       'ipv4:127.0.0.1:1,10.0.0.1:1', 'xds:///localhost', 'https://localhost:1'):
            self.assertFalse(is_loopback(server), server)


if __name__ == '__main__':
    unittest.main()
