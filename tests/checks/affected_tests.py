"""Prints the tests that recent changes may break: affected_tests.py [REVISION]

Compares the working tree with REVISION (by default HEAD). New files are included. Prints the labels
of the tests that depend on a changed file. A slow test is left out unless the test itself has
changed. The number of omitted tests is printed to standard error.
"""

import pathlib
import subprocess
import sys

import sources

# These tests start servers or emulate a GPU for a long time. The last one needs --config=cuda.
SLOW = ('tests/deploy', 'tests/e2e', 'tests/gpu', 'tests/kernels/cuda:compile_test')
# A change of such a file may affect every target.
EVERYTHING = ('.bzl', '.BUILD', '.bazelrc', 'WORKSPACE')


def changed(revision):
    """Returns the paths of files that differ from the revision, or that are new and not ignored."""
    def lines(*command):
        return subprocess.run(['git', *command], cwd=sources.ROOT, check=True,
                              capture_output=True, text=True).stdout.splitlines()

    return sorted({*lines('diff', '--name-only', '--no-renames', revision),
                   *lines('ls-files', '--others', '--exclude-standard')})


def targets(paths):
    """Returns Bazel's names for the paths. For a BUILD file, this is every target of its
    package."""
    if any(path.endswith(EVERYTHING) for path in paths):
        return ['//...']
    paths = [pathlib.Path(path) for path in paths]
    names = [f'//{path.parent}:all'.replace('//.:', '//:') if path.name == 'BUILD' else str(path)
             for path in paths if (sources.ROOT / path).is_file()]
    return sorted(names)


def slow(paths):
    """Returns the elements of SLOW in which no file has changed."""
    return [folder for folder in SLOW
            if not any(path.startswith(folder + '/') for path in paths)]


def query(expression):
    """Returns the labels that `bazel query` finds. A path outside of all packages, such as a page
    in docs/, is ignored."""
    done = subprocess.run(['bazel', 'query', '--keep_going', '--noshow_progress', expression],
                          cwd=sources.ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 3):  # 3 means that some names are unknown.
        raise RuntimeError(done.stderr)
    return set(done.stdout.split())


def main():
    paths = changed(sys.argv[1] if len(sys.argv) > 1 else 'HEAD')
    if not paths:
        return
    tests = query(f'tests(rdeps(//..., set({" ".join(targets(paths))})))')
    left = {test for test in tests
            if test.removeprefix('//').startswith(tuple(slow(paths)))}
    if left:
        print(f'affected_tests: {len(left)} slow tests are left out', file=sys.stderr)
    print('\n'.join(sorted(tests - left)))


if __name__ == '__main__':
    main()
