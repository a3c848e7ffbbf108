"""Checks that each commit's subject says `area: what changed` in at most 72 characters."""

import re
import subprocess
import unittest

import sources

# The last commit before the rule, and its time in seconds since 1970. The rule applies only to
# later commits.
LAST_FREE = '64c7b730ba160a4f98c47da64229a916693d2ba9'
LAST_FREE_TIME = 1795559921
MOST_CHARACTERS = 72
# An area is a folder, a file or a topic, for example "docs", "base, client" or "server/http".
SUBJECT = re.compile(r'[A-Za-z0-9][\w./,+ -]*: \S')


def complaint(subject):
    """Returns what is wrong with a subject, or '' if nothing is wrong."""
    if len(subject) > MOST_CHARACTERS:
        return f'has {len(subject)} characters, expected at most {MOST_CHARACTERS}'
    if not SUBJECT.match(subject):
        return 'has no area, expected "area: what changed"'
    return ''


def git(*arguments):
    return subprocess.run(['git', *arguments], cwd=sources.ROOT, capture_output=True, text=True)


def new_commits():
    """Returns (hash, subject) of the commits to which the rule applies. A shallow clone has only
    some of them."""
    known = git('merge-base', '--is-ancestor', LAST_FREE, 'HEAD').returncode == 0
    since = [f'{LAST_FREE}..HEAD'] if known else ['HEAD']
    done = git('log', '--no-merges', '--format=%ct %h %s', *since)
    rows = [line.split(' ', 2) for line in done.stdout.splitlines()]
    return [(name, subject) for time, name, subject in rows if int(time) > LAST_FREE_TIME]


class CommitsCheck(unittest.TestCase):
    def test_new_subjects_have_an_area_and_are_short(self):
        commits = new_commits()
        if not commits:
            self.skipTest('there is no history, or no commit since the rule')
        said = [f'{name} "{subject}": {complaint(subject)}'
                for name, subject in commits if complaint(subject)]
        self.assertFalse(said, '\n'.join(said))

    def test_bad_subjects_are_found(self):
        for subject in ('No area', ': none', 'docs:no space', 'docs: ', 'docs: ' + 67 * 'x'):
            with self.subTest(subject):
                self.assertTrue(complaint(subject))
        for subject in ('docs: say it', 'base, client: wait', 'server/http: end',
                        'docs: ' + 66 * 'x'):
            with self.subTest(subject):
                self.assertFalse(complaint(subject))


if __name__ == '__main__':
    unittest.main()
