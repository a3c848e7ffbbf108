"""Comments are understood line by line: what makes the house's old dialect becomes no more.

A comment starts with its own noun or verb. The expression finds the genitive tail ("Of the read
that goes on"), the back reference ("The same at once") and the number as pronoun ("so often").
"""

import re
import unittest

import sources

DIALECT = re.compile(
    r'\b[Ss]o (many|much|often|long|few)\b(?! (as|that))|^(Of|The same|As) |\bbut for\b'
    r'|\b(whoever|nobody)\b|\bfor ever\b|\b(is|are) told\b|\bthat which\b|\bof late\b|\blately\b')
# Comments that it finds; these numbers only fall.
CEILINGS = {'library': 0, 'tests': 0}


def first_lines(text):
    """The number and the words of each comment's first line."""
    goes_on = False
    for number, line in enumerate(text.splitlines(), 1):
        whole = re.match(r'\s*//+ ?(.*)', line)
        words = whole or re.search(r'\s// (.*)', line)
        if words and not (whole and goes_on):
            yield number, words[1]
        goes_on = whole is not None


def found(paths):
    """Path, line and words of each comment in the dialect."""
    return [f'{path}:{number}: {words}' for path in paths
            for number, words in first_lines((sources.ROOT / path).read_text(encoding='utf-8'))
            if DIALECT.search(words)]


class PlainEnglishCheck(unittest.TestCase):
    def test_the_dialect_only_becomes_less(self):
        paths = sources.files('*.h', '*.cc', '*.cu', '*.cuh', '*.proto')
        for part, ceiling in CEILINGS.items():
            with self.subTest(part):
                hits = found([p for p in paths if p.startswith('tests/') == (part == 'tests')])
                self.assertLessEqual(
                    len(hits), ceiling,
                    '\n'.join(['reword one of these, each must be understood alone:', *hits]))
                self.assertEqual(len(hits), ceiling, f'lower the ceiling of {part}')

    def test_only_first_lines_count(self):
        text = '// Of the read.\n// As here.\nint a;  // The same.\n  // Bytes of it.\n'
        self.assertEqual([number for number, words in first_lines(text) if DIALECT.search(words)],
                         [1])
        self.assertEqual([number for number, _ in first_lines(text)], [1, 3, 4])
        self.assertTrue(DIALECT.search('Runs are told so often.'))
        self.assertFalse(DIALECT.search('Runs so long as it lives, one of many.'))


if __name__ == '__main__':
    unittest.main()
