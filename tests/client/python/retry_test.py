"""Tests when a call is retried. The test sets the clock."""

import unittest

import grpc

from sfmamba import VisionError
from sfmamba._retry import PATIENCE, Attempts, Budget, Patience


def unavailable(delay=None, **details):
    return VisionError(grpc.StatusCode.UNAVAILABLE, 'gone', retry_delay=delay, **details)


class RetryTest(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        self.jitter = []  # The (low, high) arguments of each call of uniform().

    def attempts(self, most=3, seconds=10.0, budget=None):
        def uniform(low, high):
            self.jitter.append((low, high))
            return high
        return Attempts(most, self.now + seconds, budget or Budget(), lambda: self.now, uniform)

    def test_three_attempts_with_growing_backoff(self):
        attempts = self.attempts()
        delays = [attempts.delay_after(unavailable()) for _ in range(3)]
        self.assertEqual(delays, [0.05 * 1.2, 0.2 * 1.2, None])
        self.assertEqual(self.jitter, [(0.8, 1.2)] * 2)

    def test_a_server_that_has_answered_gets_attempts_until_the_deadline(self):
        attempts = Attempts(3, 10.0, Budget(), lambda: self.now, has_answered=True)
        self.now = 0.0
        delays = [attempts.delay_after(unavailable()) for _ in range(20)]
        self.assertNotIn(None, delays)
        failed = unavailable(reason='MODEL_NOT_READY', metadata={'state': 'FAILED'})
        self.assertIsNone(attempts.delay_after(failed))
        self.now = 9.5
        self.assertEqual(attempts.delay_after(unavailable()), 0.25)
        self.assertIsNone(attempts.delay_after(unavailable(0.5)))
        self.now = 9.96
        self.assertIsNone(attempts.delay_after(unavailable()))

    def test_backoff_has_a_limit(self):
        attempts = self.attempts(most=9, budget=Generous())
        delays = [attempts.delay_after(unavailable()) for _ in range(5)]
        self.assertEqual(delays, [delay * 1.2 for delay in (0.05, 0.2, 0.8, 1, 1)])

    def test_only_unavailable(self):
        for code in grpc.StatusCode:
            if code is not grpc.StatusCode.UNAVAILABLE:
                error = VisionError(code, '', retry_delay=0.1)
                self.assertIsNone(self.attempts().delay_after(error), code)

    def test_the_servers_delay_goes_first(self):
        attempts = self.attempts()
        self.assertEqual(attempts.delay_after(unavailable(3.0)), 3.0)
        self.assertEqual(self.jitter, [])
        # The delay 0 in a server's error means that another server may answer at once. The client
        # still waits a little, because there may be only one server.
        self.assertEqual(attempts.delay_after(unavailable(0.0)), 0.05 * 1.2)

    def test_never_past_the_deadline(self):
        self.assertIsNone(self.attempts(seconds=0.059).delay_after(unavailable()))
        self.assertIsNone(self.attempts(seconds=3).delay_after(unavailable(3.0)))
        attempts = self.attempts(seconds=3)
        self.now += 2.9
        self.assertAlmostEqual(attempts.timeout(), 0.1)
        self.assertIsNotNone(attempts.delay_after(unavailable()))
        self.now += 0.2
        with self.assertRaisesRegex(VisionError, 'DEADLINE_EXCEEDED'):
            attempts.timeout()
        self.assertIsNone(attempts.delay_after(unavailable(0.0)))

    def test_exhausted_if_the_caller_asks_for_it_at_the_servers_pace(self):
        exhausted = VisionError(grpc.StatusCode.RESOURCE_EXHAUSTED, 'busy', retry_delay=0.5)
        attempts = Attempts(3, self.now + 10, Budget(), lambda: self.now, lambda low, high: high,
                            retry_exhausted=True)
        self.assertEqual([attempts.delay_after(exhausted) for _ in range(9)], [0.5 * 1.2] * 9)
        self.now += 9.5
        # 0.5 s are left, so the deadline would pass during the delay.
        self.assertIsNone(attempts.delay_after(exhausted))
        self.now -= 9.5
        no_delay = VisionError(grpc.StatusCode.RESOURCE_EXHAUSTED, 'too large')
        self.assertIsNone(attempts.delay_after(no_delay))

    def test_a_single_attempt(self):
        self.assertIsNone(self.attempts(most=1).delay_after(unavailable()))


class Generous(Budget):
    def failed(self):
        return True


class BudgetTest(unittest.TestCase):
    def test_a_killed_server_does_not_use_it_up(self):
        budget = Budget()
        self.assertTrue(all(budget.failed() for _ in range(64)))

    def test_half_of_the_tokens_stop_retries(self):
        budget = Budget()
        half = Budget.MAX_TOKENS // 2
        self.assertTrue(all(budget.failed() for _ in range(half - 1)))
        self.assertFalse(budget.failed())
        for _ in range(2):
            budget.succeeded()
        self.assertTrue(budget.failed())

    def test_it_never_holds_more_than_it_began_with(self):
        budget = Budget()
        for _ in range(100):
            budget.succeeded()
        self.assertEqual(sum(budget.failed() for _ in range(Budget.MAX_TOKENS)),
                         Budget.MAX_TOKENS // 2 - 1)

    def test_other_errors_take_nothing(self):
        budget = Budget()
        attempts = Attempts(100, 1e9, budget, lambda: 0.0)
        for _ in range(Budget.MAX_TOKENS):
            attempts.delay_after(VisionError(grpc.StatusCode.INVALID_ARGUMENT, ''))
        self.assertIsNotNone(attempts.delay_after(unavailable()))


class PatienceTest(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        self.patience = Patience(3, False, lambda: self.now, lambda low, high: 1.0)

    def delays(self, count, error=None):
        return [self.patience.delay_after(error or unavailable()) for _ in range(count)]

    def test_a_server_that_never_answered_is_tried_so_often(self):
        self.assertEqual(self.delays(3), [0.05, 0.2, None])

    def test_one_that_has_is_waited_for_from_its_first_failure(self):
        self.patience.answered()
        self.now += 10 * PATIENCE  # No request was sent in this time.
        self.assertEqual(self.delays(6), [0.05, 0.2, 0.8, 1, 1, 1])
        self.now += PATIENCE - 1
        self.assertEqual(self.delays(1), [1])
        self.now += 2
        self.assertEqual(self.delays(1), [None])

    def test_an_answer_begins_anew(self):
        for _ in range(3):
            self.patience.answered()
            self.assertEqual(self.delays(2), [0.05, 0.2])
            self.now += PATIENCE - 1

    def test_what_does_not_pass_is_not_waited_for(self):
        self.patience.answered()
        failed = unavailable(reason='MODEL_NOT_READY', metadata={'state': 'UNAVAILABLE'})
        loading = unavailable(reason='MODEL_NOT_READY', metadata={'state': 'LOADING'})
        self.assertEqual(self.delays(1, failed), [None])
        self.assertEqual(self.delays(1, VisionError(grpc.StatusCode.INTERNAL, '')), [None])
        self.assertEqual(self.delays(1, loading), [0.05])


if __name__ == '__main__':
    unittest.main()
