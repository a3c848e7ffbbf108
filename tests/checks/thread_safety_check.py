"""Checks with clang's -Wthread-safety that no guarded field is accessed without its mutex.

gcc ignores the annotations, so the normal build would not notice such an access.
"""

import pathlib
import re
import subprocess
import tempfile
import unittest

import sources

CLANG = 'clang++-14'
ANNOTATIONS = re.compile(
    r'#include "absl/(synchronization/mutex|base/thread_annotations)\.h"')

# This class uses its field without the mutex.
MISTAKE = '''
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

class Counter {
 public:
  void Add() { ++count_; }

 private:
  absl::Mutex mu_;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
};
'''
CORRECT = MISTAKE.replace('{ ++count_; }', '{ absl::MutexLock lock(&mu_); ++count_; }')


def with_annotations(texts):
    """Returns the paths of the source files that use a mutex. If a header uses one, returns the
    path of the .cc file with the same name instead, if there is one.

    Other files can hardly access the guarded fields, because these fields are private.

    Args:
      texts: the contents of all source files, by path.
    """
    def compiled(path):
        implementation = path.removesuffix('.h') + '.cc'
        return implementation if implementation in texts else path

    return sorted({compiled(path) for path, text in texts.items() if ANNOTATIONS.search(text)})


def flags():
    """Returns the compiler flags, which name the folders of headers. Bazel keeps the headers of
    libtorch and CUDA in its own folder of external repositories."""
    base = subprocess.run(['bazel', 'info', 'output_base'], cwd=sources.ROOT, check=True,
                          capture_output=True, text=True).stdout.strip()
    folders = ['bazel-bin/proto', f'{base}/external/libtorch/include',
               f'{base}/external/libtorch/include/torch/csrc/api/include',
               f'{base}/external/cuda/include']
    return ['-std=c++17', '-DAT_PER_OPERATOR_HEADERS', '-iquote', '.', '-iquote', 'bazel-bin',
            *(word for folder in folders for word in ('-isystem', folder))]


def unguarded(paths):
    """Returns clang's output for each file that it does not accept."""
    command = [CLANG, '-x', 'c++', '-fsyntax-only', '-Wthread-safety', '-Werror', *flags()]
    return sources.complaints([command + [path] for path in paths])


class ThreadSafetyCheck(unittest.TestCase):
    def test_every_access_holds_the_mutex(self):
        texts = {path: (sources.ROOT / path).read_text(encoding='utf-8')
                 for path in sources.files('*.h', '*.cc')}
        paths = with_annotations(texts)
        self.assertIn('server/batching/batcher.cc', paths)
        said = unguarded(paths)
        self.assertFalse(said, '\n'.join(said))

    def test_an_access_without_the_mutex_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            mistake, correct = pathlib.Path(folder, 'a.cc'), pathlib.Path(folder, 'b.cc')
            mistake.write_text(MISTAKE)
            correct.write_text(CORRECT)
            said = unguarded([mistake, correct])
        self.assertEqual(len(said), 1, said)
        self.assertIn("writing variable 'count_' requires holding mutex 'mu_'", said[0])

    def test_what_uses_a_mutex_is_read(self):
        mutex = '#include "absl/synchronization/mutex.h"\n'
        texts = {'a.h': mutex, 'a.cc': '', 'b.cc': mutex, 'c.h': mutex, 'd.h': '', 'd.cc': ''}
        self.assertEqual(with_annotations(texts), ['a.cc', 'b.cc', 'c.h'])


if __name__ == '__main__':
    unittest.main()
