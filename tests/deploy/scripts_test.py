"""Tests that deploy/run.sh and deploy/setup.sh refuse unknown arguments, and that they print their
help."""

import os
import subprocess
import unittest


class ScriptsTest(unittest.TestCase):
    def expect_refusal(self, *command, says):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                              env={**os.environ, 'TMPDIR': os.environ.get('TEST_TMPDIR', '/tmp')})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, '')

    def test_run_refuses_unknown_arguments(self):
        for arguments in (['--device=tpu'], ['--device'], ['--port=0'], ['--port', '65535'],
                          ['--twice']):
            with self.subTest(arguments):
                self.expect_refusal('deploy/run.sh', *arguments,
                                    says='[--device cpu|cuda|auto]')

    def test_setup_refuses_unknown_arguments(self):
        self.expect_refusal('deploy/setup.sh', '--cuda', '--rocm', says='unknown argument --rocm')

    def test_help_is_what_the_script_begins_with(self):
        for script, says in (('deploy/run.sh', '  deploy/run.sh [--once]'),
                             ('deploy/setup.sh', 'setup.sh [--cuda]')):
            for flag in ('-h', '--help'):
                with self.subTest(f'{script} {flag}'):
                    done = subprocess.run([script, flag], capture_output=True, text=True,
                                          timeout=60)
                    self.assertEqual((done.returncode, done.stderr), (0, ''))
                    self.assertIn(says, done.stdout)
                    self.assertNotIn('#', done.stdout)


if __name__ == '__main__':
    unittest.main()
