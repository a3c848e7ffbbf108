"""Tests which queries affected_tests.py sends to Bazel."""

import unittest

import affected_tests


class AffectedTestsTest(unittest.TestCase):
    def test_a_file_is_itself(self):
        self.assertEqual(affected_tests.targets(['tests/checks/sources.py']),
                         ['tests/checks/sources.py'])

    def test_a_file_that_is_gone_is_nothing(self):
        self.assertEqual(affected_tests.targets(['tests/checks/gone.py']), [])

    def test_a_build_file_is_its_package(self):
        self.assertEqual(affected_tests.targets(['tests/checks/BUILD']), ['//tests/checks:all'])

    def test_a_rule_or_an_option_is_everything(self):
        for path in ('kernels/simd/simd_kernel.bzl', '.bazelrc', 'WORKSPACE'):
            self.assertEqual(affected_tests.targets(['server/server.cc', path]), ['//...'])

    def test_slow_tests_are_left_out_unless_they_changed(self):
        self.assertIn('tests/e2e', affected_tests.slow(['server/server.cc']))
        self.assertNotIn('tests/e2e', affected_tests.slow(['tests/e2e/soak/soak.cc']))
        self.assertIn('tests/gpu', affected_tests.slow(['tests/e2e/soak/soak.cc']))


if __name__ == '__main__':
    unittest.main()
