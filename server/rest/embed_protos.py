"""Writes C++ that holds a file of bytes: embed_protos.py FILE > proto_set.cc."""

import pathlib
import sys

BYTES_PER_LINE = 18


def main():
    content = pathlib.Path(sys.argv[1]).read_bytes()
    print('#include "server/rest/proto_set.h"\n')
    print('namespace sfmamba::rest {\n')
    print('absl::string_view ProtoSet() {\n  return absl::string_view(')
    for i in range(0, len(content), BYTES_PER_LINE):
        line = ''.join(f'\\{byte:03o}' for byte in content[i:i + BYTES_PER_LINE])
        print(f'      "{line}"')
    print(f'      , {len(content)});\n}}\n\n}}  // namespace sfmamba::rest')


if __name__ == '__main__':
    main()
