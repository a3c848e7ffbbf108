"""Names the tests that what changed may break: affected_tests.py [REVISION]

Compares the working tree, new files included, with REVISION (HEAD) and prints the labels of the
tests that depend on a changed file. Slow tests are left to a run of everything, unless they
changed themselves; how many is said on standard error.
"""

import pathlib
import subprocess
import sys

import sources

# Tests that start servers or emulate a GPU for long, and the one that needs --config=cuda.
SLOW = ('tests/deploy', 'tests/e2e', 'tests/gpu', 'tests/kernels/cuda:compile_test')
# They may change what any target is.
EVERYTHING = ('.bzl', '.BUILD', '.bazelrc', 'WORKSPACE')


def changed(revision):
    """Paths of what differs from the revision, or is new and not ignored."""
    def lines(*command):
        return subprocess.run(['git', *command], cwd=sources.ROOT, check=True,
                              capture_output=True, text=True).stdout.splitlines()

    return sorted({*lines('diff', '--name-only', '--no-renames', revision),
                   *lines('ls-files', '--others', '--exclude-standard')})


def targets(paths):
    """What the paths are to Bazel: a file's own label; all of a package whose BUILD changed."""
    if any(path.endswith(EVERYTHING) for path in paths):
        return ['//...']
    paths = [pathlib.Path(path) for path in paths]
    names = [f'//{path.parent}:all'.replace('//.:', '//:') if path.name == 'BUILD' else str(path)
             for path in paths if (sources.ROOT / path).is_file()]
    return sorted(names)


def slow(paths):
    """Those of SLOW in which nothing changed."""
    return [folder for folder in SLOW
            if not any(path.startswith(folder + '/') for path in paths)]


def query(expression):
    """Labels. A path that no package has, such as a page of docs, names nothing."""
    done = subprocess.run(['bazel', 'query', '--keep_going', '--noshow_progress', expression],
                          cwd=sources.ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 3):  # 3: some names are unknown.
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
