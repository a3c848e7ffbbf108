"""Runs a folder's Python tests and reports each case to Bazel.

Usage: run_python_tests.py FOLDER [PATTERN [MODULE ...]]

PATTERN names the files, by default *_test.py. The tests need the MODULEs. If one is missing, all
tests are reported as one skipped case. The environment variable XML_OUTPUT_FILE may name a file
for the cases in JUnit's form. Exits with 1 if a test failed or if there was none.
"""

import importlib.util
import os
import pathlib
import sys
import unittest
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).parents[2]


class Result(unittest.TextTestResult):
    """Keeps each case as an XML element."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.suite = ET.Element('testsuite', name='python')

    def _case(self, test):
        group, _, name = test.id().rpartition('.')
        return ET.SubElement(self.suite, 'testcase', classname=group, name=name)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._case(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        ET.SubElement(self._case(test), 'failure').text = self.failures[-1][1]

    def addError(self, test, err):
        super().addError(test, err)
        ET.SubElement(self._case(test), 'error').text = self.errors[-1][1]

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            ET.SubElement(self._case(subtest), 'failure').text = str(err[1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        ET.SubElement(self._case(test), 'skipped', message=reason)


def write(suite):
    report = os.environ.get('XML_OUTPUT_FILE')
    if report:
        ET.ElementTree(suite).write(report, encoding='utf-8', xml_declaration=True)


def main():
    sys.dont_write_bytecode = True
    folder = str(ROOT / sys.argv[1])
    pattern = sys.argv[2] if len(sys.argv) > 2 else '*_test.py'
    missing = [name for name in sys.argv[3:] if importlib.util.find_spec(name) is None]
    if missing:
        message = f'{sys.executable} has no {", ".join(missing)}'
        print(f'skipped: {message}')
        suite = ET.Element('testsuite', name='python')
        case = ET.SubElement(suite, 'testcase', classname=sys.argv[1], name=f'({message})')
        ET.SubElement(case, 'skipped', message=message)
        write(suite)
        return 0
    sys.path[:0] = [folder, str(ROOT / 'tools'), str(ROOT / 'tools/pytorch')]
    tests = unittest.defaultTestLoader.discover(folder, pattern, folder)
    result = unittest.TextTestRunner(resultclass=Result).run(tests)
    write(result.suite)
    return 0 if result.wasSuccessful() and (result.testsRun or result.skipped) else 1


if __name__ == '__main__':
    sys.exit(main())
