"""Checks that pages and comments can be understood at the first reading.

Measures the sentences of the pages, and of the comments in the folders `COMMENTED`. The limits
`CEILINGS` are close to the values that TensorFlow Serving and gemma.cpp have. The first line of a
comment must not contain an expression of `DIALECT`. These expressions are hard to understand
without the sentences before them.
"""

import re
import unittest

import sources

# If a sentence begins with such a word, the reader must wait for its subject.
OPENING = re.compile(r'(Of|What|Where|With|Those)\b')
# For such words, the reader must look for a noun in an earlier sentence.
BACK_REFERENCE = re.compile(r'\b(that of|those of|likewise)\b', re.IGNORECASE)
# Such a mark joins two sentences.
JOINED = re.compile(r'[;:] ')
# The limits. 'mean words' is the mean number of words in a sentence. The other limits are
# percentages of sentences.
CEILINGS = {'openings': 2, 'back references': 2, 'mean words': 15, 'joined': 15}

# The comments of each of these folders must keep the limits.
COMMENTED = ['base', 'client', 'kernels', 'model', 'proto', 'server', 'tests']

DIALECT = re.compile(
    r'\b[Ss]o (many|much|often|long|few)\b(?! (as|that))|^(Of|The same|As) |\bbut for\b'
    r'|\b(whoever|nobody)\b|\bfor ever\b|\b(is|are) told\b|\bthat which\b|\bof late\b|\blately\b')


def sentences(text):
    """Yields the sentences of a Markdown page. Code, tables, headings and pictures are skipped."""
    text = re.sub(r'```.*?```', '', text, flags=re.DOTALL)
    for paragraph in re.split(r'\n\s*\n|\n\s*(?:[-*]|\d+\.) ', text):
        if not paragraph.lstrip().startswith(('#', '|', '<', '![')):
            for sentence in re.split(r'(?<=[.!?])\s+(?=[A-Z`*\[(0-9"])',
                                     ' '.join(paragraph.split())):
                if len(sentence.split()) > 3:
                    yield sentence


def offenders(found):
    """Returns, for each name in `CEILINGS`, the sentences that make its value high."""
    return {'openings': [s for s in found if OPENING.match(s)],
            'back references': [s for s in found if BACK_REFERENCE.search(s)],
            'mean words': sorted(found, key=lambda s: -len(s.split())),
            'joined': [s for s in found if JOINED.search(s)]}


def figures(found):
    """Returns, for each name in `CEILINGS`, the value of these sentences."""
    worst = offenders(found)
    percent = {name: 100 * len(worst[name]) / len(found) for name in worst if name != 'mean words'}
    return {**percent, 'mean words': sum(len(s.split()) for s in found) / len(found)}


def comments(text):
    """Yields the text of each comment in C++ or proto code. Skips indented lines, which are
    examples and tables."""
    lines = []
    for line in [*text.splitlines(), '']:
        whole = re.match(r'\s*//+ ?(.*)', line)
        if whole:
            lines += [] if whole[1].startswith('  ') else [whole[1]]
            continue
        if lines:
            yield '\n'.join(lines)
        beside = re.search(r'\s// (.*)', line)
        lines = [beside[1]] if beside else []


def first_lines(text):
    """Yields the number and the text of each comment's first line."""
    goes_on = False
    for number, line in enumerate(text.splitlines(), 1):
        whole = re.match(r'\s*//+ ?(.*)', line)
        words = whole or re.search(r'\s// (.*)', line)
        if words and not (whole and goes_on):
            yield number, words[1]
        goes_on = whole is not None


class PlainEnglishCheck(unittest.TestCase):
    def test_pages_read_well(self):
        # docs/settings.md is generated from comments in proto files.
        pages = sources.files('README.md', 'CONTRIBUTING.md', 'docs/*.md', ':!docs/settings.md')
        self.assert_reads_well([
            sentence for page in pages
            for sentence in sentences((sources.ROOT / page).read_text(encoding='utf-8'))])

    def test_comments_read_well(self):
        for folder in COMMENTED:
            paths = [path for path in sources.files(folder)
                     if path.endswith(('.h', '.cc', '.proto'))]
            self.assertTrue(paths)
            with self.subTest(folder):
                self.assert_reads_well([
                    sentence for path in paths
                    for comment in comments((sources.ROOT / path).read_text(encoding='utf-8'))
                    for sentence in sentences(comment)])

    def assert_reads_well(self, found):
        for name, figure in figures(found).items():
            with self.subTest(name):
                self.assertLessEqual(
                    figure, CEILINGS[name],
                    '\n'.join(['reword one of these:', *offenders(found)[name][:40]]))

    def test_comments_have_no_dialect(self):
        found = [f'{path}:{number}: {words}'
                 for path in sources.files('*.h', '*.cc', '*.cu', '*.cuh', '*.proto')
                 for number, words in first_lines(
                     (sources.ROOT / path).read_text(encoding='utf-8')) if DIALECT.search(words)]
        self.assertEqual(found, [], 'reword these, each must be understood alone')

    def test_only_prose_is_measured(self):
        text = ('# Of a heading: no\n\n| Of | a table |\n\n```\nOf code: no\n```\n\n'
                'The first is short. Of the second it\nis said: two lines.\n'
                '- Likewise a third: here.')
        found = list(sentences(text))
        self.assertEqual(found, ['The first is short.', 'Of the second it is said: two lines.',
                                 'Likewise a third: here.'])
        self.assertEqual(figures(found),
                         {'openings': 100 / 3, 'back references': 100 / 3, 'joined': 200 / 3,
                          'mean words': 16 / 3})

    def test_comments_are_whole_and_without_examples(self):
        text = ('// The first is\n// here.\n//\n//   const int example = 1;\n//\n// Its end.\n'
                'int a;  // Beside the code,\n        // in two lines.\nint b;  // Alone.\n')
        self.assertEqual(list(comments(text)),
                         ['The first is\nhere.\n\n\nIts end.',
                          'Beside the code,\nin two lines.', 'Alone.'])

    def test_only_first_lines_of_comments_count(self):
        text = '// Of the read.\n// As here.\nint a;  // The same.\n  // Bytes of it.\n'
        self.assertEqual([number for number, words in first_lines(text) if DIALECT.search(words)],
                         [1])
        self.assertEqual([number for number, _ in first_lines(text)], [1, 3, 4])
        self.assertTrue(DIALECT.search('Runs are told so often.'))
        self.assertFalse(DIALECT.search('Runs so long as it lives, one of many.'))


if __name__ == '__main__':
    unittest.main()
