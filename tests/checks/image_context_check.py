"""Checks that the build of the container image gets every file from which its programs are
built."""

import pathlib
import subprocess
import unittest

import sources

PROGRAMS = '//server:sfmamba_server + //client:sfmamba'


def built_from(expression):
    """Returns the paths of all sources and BUILD files on which the targets depend."""
    done = subprocess.run(
        ['bazel', 'query', '--noshow_progress', '--keep_going',
         f'kind("source file", deps({expression})) + buildfiles(deps({expression}))'],
        cwd=sources.ROOT, capture_output=True, text=True)
    return {label.removeprefix('//').replace(':', '/').lstrip('/')
            for label in done.stdout.split() if label.startswith('//')}


class ImageContextCheck(unittest.TestCase):

    def test_what_the_programs_are_built_from_is_in_the_context(self):
        lines = pathlib.Path(sources.ROOT, '.dockerignore').read_text(encoding='utf-8').splitlines()
        given = tuple(line[1:] for line in lines if line.startswith('!'))
        needed = built_from(PROGRAMS)
        self.assertGreater(len(needed), 500)
        left_out = {path for path in needed
                    if path not in given and not path.startswith(tuple(f'{name}/' for name in given))}
        self.assertEqual(left_out, set())


if __name__ == '__main__':
    unittest.main()
