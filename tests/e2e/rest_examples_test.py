"""The examples of docs/clients.md, "REST", asked of a real server with the default models."""
import doctest
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PAGE = pathlib.Path('docs/clients.md')
PATIENCE = 60  # Seconds.


def section(text, title):
    """The part of a page from its heading on to the next of the same rank."""
    return re.search(rf'^## {title}\n(.*?)(?=^## |\Z)', text, re.M | re.S)[1]


def examples(text):
    """The commands after "$ ", and what each prints."""
    for block in re.findall(r'^```\n(.*?)^```$', text, re.M | re.S):
        for part in re.split(r'^\$ ', block, flags=re.M)[1:]:
            command, printed = re.match(r'((?:.*[\\|]\n)*.*\n)((?:.*\n)*)', part).groups()
            yield command, printed


class RestExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        # Bazel's are links, which the server does not follow out of its repository.
        models = shutil.copytree('models', pathlib.Path(folder.name, 'models'))
        server = cls.enterClassContext(subprocess.Popen(
            ['server/sfmamba_server', f'--model_repository={models}', '--host=127.0.0.1', '--port=0',
             '--http_port=0', '--metrics_port=0'], stderr=subprocess.PIPE, text=True))
        cls.addClassCleanup(server.kill)
        for line in server.stderr:
            if '"msg":"listening"' in line:
                cls.address = f'127.0.0.1:{json.loads(line)["http_port"]}'
            if '"msg":"serving"' in line:
                return
        raise RuntimeError('the server has ended')

    @unittest.skipUnless(shutil.which('curl'), 'curl is not installed')
    def test_each_prints_what_the_page_says(self):
        tried = 0
        same = doctest.OutputChecker().check_output
        for command, printed in examples(section(PAGE.read_text(), 'REST')):
            with self.subTest(command):
                done = subprocess.run(
                    ['bash', '-c', command.replace('127.0.0.1:8000', self.address)],
                    capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(same(printed.strip(), done.stdout.strip(), doctest.ELLIPSIS),
                                f'{done.stdout}\ninstead of\n{printed}')
            tried += 1
        self.assertGreater(tried, 3)


if __name__ == '__main__':
    unittest.main()
