"""Runs the commands of docs/security.md in order, with the real server and default models."""

import doctest
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # Helpers of the e2e tests.

from model_server import Server
from page_examples_test import PATIENCE, examples

PAGE = pathlib.Path('docs/security.md')


class SecurityPageTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which('curl'), 'curl is not installed')
    def test_each_command_prints_what_the_page_says(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        page = PAGE.read_text()
        [start] = re.findall(r'^bazel-bin/server/sfmamba_server(?:.*\\\n)*.*\n', page, re.M)
        flags = [flag for flag in re.findall(r'(--\w+=\S+)', start)
                 if not flag.startswith(('--model_repository', '--health_port'))]
        self.assertEqual(len(flags), 3, start)
        server, tried = None, 0
        same = doctest.OutputChecker().check_output
        for command, printed in examples(page):
            command = command.replace('secrets', folder.name + '/secrets')
            if server is None and 'localhost' in command.replace('CN=localhost', '').replace(
                    'DNS:localhost', ''):
                server = Server(*(flag.replace('secrets', folder.name + '/secrets')
                                  for flag in flags), '--health_port=0')
                self.addCleanup(server.close)
            if server is not None:
                for place, here in (('localhost:8000', server.http_address),
                                    ('localhost:8001', server.address)):
                    command = command.replace(place, here)
                command = command.replace('bazel-bin/client/sfmamba', 'client/sfmamba')
            with self.subTest(command):
                done = subprocess.run(['bash', '-c', command], capture_output=True, text=True,
                                      timeout=PATIENCE)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(same(printed.strip(), done.stdout.strip(), doctest.ELLIPSIS),
                                f'{done.stdout}\ninstead of\n{printed}')
            tried += 1
        self.assertGreaterEqual(tried, 15)


if __name__ == '__main__':
    unittest.main()
