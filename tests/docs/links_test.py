"""Checks that the targets of links in Markdown files and of citations in comments exist. Also
checks that no table is cut in two, and that the programs in commands can be run."""

import os
import pathlib
import re
import tempfile
import unittest

# Bazel runs the test in a folder of symbolic links. The link to this file leads into the
# repository.
REPOSITORY = pathlib.Path(os.path.realpath(__file__)).parents[2]
# Folders with these names are not searched, because their files are built or fetched. Hidden
# folders are not searched either.
LEFT_OUT = re.compile(r'bazel-.*|out|__pycache__|\..+')
SOURCES = {'.bzl', '.cc', '.cu', '.h', '.proto', '.py', '.sh'}

FENCED = re.compile(r'^ *(```|~~~).*?^ *\1', re.MULTILINE | re.DOTALL)
INLINE = re.compile(r'(`+).+?\1')
# Matches a link and finds its target. There are three forms: [text](target "title"), [name]: target
# and <img src="target">. The text of the first form may be a picture.
LINK = re.compile(r'\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)|<img[^>]*\ssrc="([^"]+)"',
                  re.MULTILINE)
ELSEWHERE = re.compile(r'[a-z][a-z0-9+.-]*:|//', re.IGNORECASE)
HEADING = re.compile(r'^#{1,6}\s+(.+?)\s*#*\s*$', re.MULTILINE)
# Matches a citation in a comment, for example: docs/heads.md, "Box coder". It finds the page and,
# if one is named, the section. A citation may continue in the next line. COMMENT_BREAK matches the
# break between such lines, with the // or # of the second line.
CITATION = re.compile(r'\bdocs/(\w+\.md)(?:,\s+"([^"]+)")?')
COMMENT_BREAK = re.compile(r'\s*\n\s*(?://|#)\s*')
# Matches a line of code that begins with the path of a program, and finds the path. The path is
# relative to the repository or to the page's folder.
PROGRAM = re.compile(r'^(?: {4}|\$ )?((?:[\w.-]+/)+[\w-]+\.(?:py|sh))(?= |$)', re.MULTILINE)
# The first row of a table is its head, and a line of dashes must follow it. Matches a first row
# without this line, and finds the row.
HEADLESS = re.compile(r'(?:\A|\n[^|\n]*\n)(\|.*)\n(?!\|[ :-]*-[ :|-]*\n)')


def files(root):
    """Yields the files of the repository at `root`, except in the folders of LEFT_OUT."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not LEFT_OUT.fullmatch(name)]
        for name in names:
            yield pathlib.Path(folder, name)


def headings(text):
    """Returns the headings of a page, and the anchors that GitHub gives them."""
    titles, anchors = [], set()
    for title in HEADING.findall(FENCED.sub('', text)):
        title = re.sub(r'\[([^\]]*)\]\([^)]*\)|[`*]', r'\1', title)
        slug = re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-')
        anchor, count = slug, 0
        while anchor in anchors:
            count += 1
            anchor = f'{slug}-{count}'
        titles.append(title)
        anchors.add(anchor)
    return titles, anchors


def broken_links(page):
    """Yields a text for each link of a Markdown file whose target does not exist."""
    text = INLINE.sub('', FENCED.sub('', page.read_text(encoding='utf-8')))
    for groups in LINK.findall(text):
        target = next(filter(None, groups))
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = target.partition('#')
        file = page.parent / path if path else page
        if not file.exists():
            yield f'{target}: there is no such file'
        elif anchor and anchor not in headings(file.read_text(encoding='utf-8'))[1]:
            yield f'{target}: there is no such heading'


def idle_programs(page, repository):
    """Yields a text for each program in a command of a Markdown file that cannot be run."""
    for program in PROGRAM.findall(page.read_text(encoding='utf-8')):
        if not any(os.access(folder / program, os.X_OK) for folder in (repository, page.parent)):
            yield f'{program}: it cannot be run'


def headless_rows(page):
    """Returns the table rows of a Markdown file that are separated from the head of their table.
    For example, an empty line within a table separates the rows after it."""
    return HEADLESS.findall(FENCED.sub('', page.read_text(encoding='utf-8')))


def broken_citations(source, docs):
    """Yields a text for each citation in a source file whose page or section does not exist. `docs`
    is the folder of the pages."""
    text = COMMENT_BREAK.sub(' ', source.read_text(encoding='utf-8'))
    for name, section in CITATION.findall(text):
        page = docs / name
        if not page.exists():
            yield f'docs/{name}: there is no such page'
        elif section and section not in headings(page.read_text(encoding='utf-8'))[0]:
            yield f'docs/{name}: there is no section "{section}"'


class LinksTest(unittest.TestCase):
    def test_links_lead_somewhere(self):
        pages = [file for file in files(REPOSITORY) if file.suffix == '.md']
        self.assertIn(REPOSITORY / 'README.md', pages)
        broken = [f'{page.relative_to(REPOSITORY)}: {error}'
                  for page in pages for error in broken_links(page)]
        self.assertEqual(broken, [])

    def test_programs_can_be_run(self):
        idle = [f'{file.relative_to(REPOSITORY)}: {error}' for file in files(REPOSITORY)
                if file.suffix == '.md' for error in idle_programs(file, REPOSITORY)]
        self.assertEqual(idle, [])

    def test_tables_are_whole(self):
        headless = [f'{file.relative_to(REPOSITORY)}: {row}' for file in files(REPOSITORY)
                    if file.suffix == '.md' for row in headless_rows(file)]
        self.assertEqual(headless, [])

    def test_cited_sections_exist(self):
        broken = [f'{file.relative_to(REPOSITORY)}: {error}'
                  for file in files(REPOSITORY)
                  if file.suffix in SOURCES and file != pathlib.Path(os.path.realpath(__file__))
                  for error in broken_citations(file, REPOSITORY / 'docs')]
        self.assertEqual(broken, [])


class FindsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.docs = pathlib.Path(folder.name)
        self.page = self.docs / 'page.md'

    def links(self, text):
        self.page.write_text(text, encoding='utf-8')
        return list(broken_links(self.page))

    def test_a_file_that_is_missing(self):
        self.assertEqual(self.links('[a](page.md) [b](no.md)'), ['no.md: there is no such file'])

    def test_a_picture_that_is_missing(self):
        self.assertEqual(self.links('[![a](no.png "A")](page.md)'),
                         ['no.png: there is no such file'])

    def test_a_heading_that_is_missing(self):
        text = '# One `two`, three\n\n[a](#one-two-three) [b](page.md#four)'
        self.assertEqual(self.links(text), ['page.md#four: there is no such heading'])

    def test_the_second_heading_of_a_name(self):
        self.assertEqual(self.links('# A\n# A\n[a](#a) [b](#a-1)'), [])

    def test_neither_code_nor_other_places(self):
        self.assertEqual(self.links('`[a](no)` <https://x.y>\n```\n[a](no)\n```\n[a](https://x.y)'),
                         [])

    def test_a_program_without_its_permission(self):
        for name, mode in (('a.py', 0o644), ('b.sh', 0o755)):
            pathlib.Path(self.docs, name).touch(mode)
        self.page.write_text('    ./a.py --help\n$ ./b.sh\n./c.py', encoding='utf-8')
        self.assertEqual(list(idle_programs(self.page, self.docs / 'elsewhere')),
                         ['./a.py: it cannot be run', './c.py: it cannot be run'])

    def test_a_row_without_a_head(self):
        self.page.write_text('| a |\n|---|\n| b |\n\n| c |\n', encoding='utf-8')
        self.assertEqual(headless_rows(self.page), ['| c |'])

    def test_a_section_cited_in_vain(self):
        self.page.write_text('# Box coder', encoding='utf-8')
        source = self.docs / 'a.h'
        source.write_text('// See docs/page.md, "Box\n// coder"; docs/page.md, "Box"; docs/no.md.')
        self.assertEqual(list(broken_citations(source, self.docs)),
                         ['docs/page.md: there is no section "Box"',
                          'docs/no.md: there is no such page'])


if __name__ == '__main__':
    unittest.main()
