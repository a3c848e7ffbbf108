"""Writes a C++ file that contains the bytes of files: embed.py FILE... > console_files.cc."""

import hashlib
import pathlib
import sys

BYTES_PER_LINE = 18


def literal(content):
    """Returns a C++ string literal. Uses octal escapes, as hexadecimal ones have no fixed end."""
    lines = [content[i:i + BYTES_PER_LINE] for i in range(0, len(content), BYTES_PER_LINE)]
    return '\n'.join('    "' + ''.join(f'\\{byte:03o}' for byte in line) + '"' for line in lines)


def main():
    print('#include "server/rest/console/console_files.h"\n')
    print('namespace sfmamba::rest {\nnamespace {\n')
    print('constexpr EmbeddedFile kFiles[] = {')
    for path in map(pathlib.Path, sys.argv[1:]):
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:32]
        print(f'    {{"{path.name}", "\\"{digest}\\"", absl::string_view(\n{literal(content)},')
        print(f'    {len(content)})}},')
    print('};\n\n}  // namespace\n')
    print('absl::Span<const EmbeddedFile> ConsoleFiles() { return kFiles; }\n')
    print('}  // namespace sfmamba::rest')


if __name__ == '__main__':
    main()
