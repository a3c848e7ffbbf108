"""Writes C++ that holds the bytes of files: embed.py FILE... > console_files.cc.

Texts lose their indentation, empty lines and comments, style its blanks too: who reads them reads
the sources.
"""

import hashlib
import pathlib
import re
import sys

BYTES_PER_LINE = 18
TEXTS = {'.css', '.html', '.js', '.svg'}
# To the end of a line, and at its beginning or after two spaces.
COMMENT = re.compile(r'(?:^|  )(?://.*|/\*.*\*/)$')


def shorten(text):
    lines = (COMMENT.sub('', line.strip()) for line in text.splitlines())
    return '\n'.join(line for line in lines if line) + '\n'


def read(path):
    if path.suffix not in TEXTS:
        return path.read_bytes()
    text = shorten(path.read_text(encoding='utf-8'))
    if path.suffix == '.css':
        text = re.sub(r'\s*([{};,])\s*|(:)\s+', r'\1\2', text).replace(';}', '}')
    return text.encode()


def literal(content):
    """A C++ string literal; octal digits, as hexadecimal ones have no end of their own."""
    lines = [content[i:i + BYTES_PER_LINE] for i in range(0, len(content), BYTES_PER_LINE)]
    return '\n'.join('    "' + ''.join(f'\\{byte:03o}' for byte in line) + '"' for line in lines)


def main():
    print('#include "server/rest/console/console_files.h"\n')
    print('namespace sfmamba::rest {\nnamespace {\n')
    print('constexpr EmbeddedFile kFiles[] = {')
    for path in map(pathlib.Path, sys.argv[1:]):
        content = read(path)
        digest = hashlib.sha256(content).hexdigest()[:32]
        print(f'    {{"{path.name}", "\\"{digest}\\"", absl::string_view(\n{literal(content)},')
        print(f'    {len(content)})}},')
    print('};\n\n}  // namespace\n')
    print('absl::Span<const EmbeddedFile> ConsoleFiles() { return kFiles; }\n')
    print('}  // namespace sfmamba::rest')


if __name__ == '__main__':
    main()
