"""Tests what count_results.py counts."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import count_results

CASES = """<testsuites><testsuite name="A">
<testcase classname="A" name="b" status="run"/>
<testcase classname="A" name="c" status="run" result="skipped"/>
<testcase classname="A" name="d" status="notrun"/>
{}</testsuite></testsuites>"""
FAILURE = '<testcase classname="A" name="e"><failure message="m"/></testcase>'


class CountResultsTest(unittest.TestCase):
    def count(self, report, verdict=None):
        """Returns the counts of a target with this report and Bazel's verdict."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'test.xml'
            if report is not None:
                path.write_text(report)
            if verdict is not None:
                path.with_name('test.cache_status').write_bytes(verdict)
            with contextlib.redirect_stdout(io.StringIO()):
                return dict(count_results.count_target(path, '//a:b'))

    def test_cases_count_by_what_came_of_them(self):
        self.assertEqual(self.count(CASES.format('')), {'passed': 1, 'skipped': 1})
        self.assertEqual(self.count(CASES.format(FAILURE)),
                         {'passed': 1, 'skipped': 1, 'failed': 1})

    def test_a_target_without_report_has_failed(self):
        self.assertEqual(self.count(None), {'failed': 1})

    def test_a_target_may_fail_outside_its_cases(self):
        passed, failed = b'\x10\x01\x18\x01', b'\x10\x00\x18\x04'
        self.assertEqual(self.count(CASES.format(''), passed), {'passed': 1, 'skipped': 1})
        self.assertEqual(self.count(CASES.format(''), failed).get('failed'), 1)
        self.assertEqual(self.count(CASES.format(FAILURE), failed)['failed'], 1)


if __name__ == '__main__':
    unittest.main()
