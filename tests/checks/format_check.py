"""Checks that every C++, CUDA and proto file has the format of .clang-format."""

import pathlib
import shutil
import tempfile
import unittest

import sources

# Debian 12 has this version of clang-format. Other versions format a few lines differently.
CLANG_FORMAT = 'clang-format-14'
FILES_AT_ONCE = 50


def unformatted(paths, folder=sources.ROOT):
    """Returns clang-format's complaints about the files `paths`. Files are checked in groups of
    FILES_AT_ONCE. A group with a wrong file gives one complaint."""
    groups = [paths[i:i + FILES_AT_ONCE] for i in range(0, len(paths), FILES_AT_ONCE)]
    return sources.complaints(
        [[CLANG_FORMAT, '--dry-run', '-Werror', '--ferror-limit=1', *group] for group in groups],
        folder)


class FormatCheck(unittest.TestCase):
    def test_every_file_is_formatted(self):
        paths = sources.files('*.h', '*.cc', '*.cu', '*.cuh', '*.proto')
        self.assertTrue(paths)
        said = unformatted(paths)
        self.assertFalse(said, '\n'.join(['run clang-format-14 -i on these:', *said]))

    def test_a_badly_formatted_file_is_found(self):
        for name, text in (('a.cc', 'int  a;\n'), ('a.h', 'int* f( );\n'), ('a.cu', 'int *p;\n'),
                           ('a.proto', 'message A { int32 a=1; }\n')):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                shutil.copy(sources.ROOT / '.clang-format', folder)
                pathlib.Path(folder, name).write_text(text)
                said = unformatted([name], folder)
                self.assertEqual(len(said), 1)
                self.assertIn(f'{name}:1:', said[0])


if __name__ == '__main__':
    unittest.main()
