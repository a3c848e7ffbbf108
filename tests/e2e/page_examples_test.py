"""Runs the commands of docs/clients.md with the real server and default models.

Compares the commands' output with the output that the page shows.
"""

import doctest
import pathlib
import re
import shutil
import subprocess
import unittest

from model_server import Server

PAGE = pathlib.Path('docs/clients.md')
PATIENCE = 60  # The time limit of each command, in seconds.


def section(text, title):
    """Returns the section of a page under the heading `title`."""
    return re.search(rf'^## {title}\n(.*?)(?=^## |\Z)', text, re.M | re.S)[1]


def examples(text):
    """Yields each command after "$ " with the output that the page shows."""
    for block in re.findall(r'^```\n(.*?)^```$', text, re.M | re.S):
        for part in re.split(r'^\$ ', block, flags=re.M)[1:]:
            command, printed = re.match(r'((?:.*[\\|]\n)*.*\n)((?:.*\n)*)', part).groups()
            yield command, printed


class ExamplesTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which('curl'), 'curl is not installed')
    def test_each_prints_what_the_page_says(self):
        server = Server()
        self.addCleanup(server.close)
        places = {'127.0.0.1:8000': server.http_address, '127.0.0.1:8001': server.address,
                  'bazel-bin/client/sfmamba': 'client/sfmamba'}
        same = doctest.OutputChecker().check_output
        page = PAGE.read_text()
        for title, least in (('One question, five ways', 3), ('REST', 5)):
            tried = 0
            for command, printed in examples(section(page, title)):
                for place, here in places.items():
                    command = command.replace(place, here)
                with self.subTest(command):
                    done = subprocess.run(['bash', '-c', command], capture_output=True, text=True,
                                          timeout=PATIENCE)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(same(printed.strip(), done.stdout.strip(), doctest.ELLIPSIS),
                                    f'{done.stdout}\ninstead of\n{printed}')
                tried += 1
            self.assertGreaterEqual(tried, least, title)
