"""Tests how many requests a server gets at a time. The test sets the clock."""

import unittest

from sfmamba.batch.window import FIRST, IN_TIME, MOST, Window


class WindowTest(unittest.TestCase):
    def setUp(self):
        self.window = Window()

    def round_trip(self, sent, took):
        """Fills the window at the time `sent`. Each answer takes `took` seconds, and the window is
        filled again after each."""
        for _ in range(self.window.size):
            self.window.in_flight = self.window.size
            self.window.answered(sent, sent + took)

    def test_it_doubles_until_the_most_while_answers_come_in_time(self):
        sizes = []
        for trip in range(7):
            sizes.append(self.window.size)
            self.round_trip(trip, IN_TIME)
        self.assertEqual(sizes, [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST, 16 * FIRST, MOST, MOST])

    def test_late_answers_do_not_widen_it(self):
        self.round_trip(0, IN_TIME * 1.1)
        self.assertEqual(self.window.size, FIRST)

    def test_a_window_that_is_not_full_does_not_grow(self):
        for _ in range(100):
            self.window.answered(0, 0.01)
        self.assertEqual(self.window.size, FIRST)

    def test_a_refusal_halves_it_and_closes_it_for_as_long_as_the_server_says(self):
        self.window.refused(sent=0, delay=3, now=1)
        self.assertEqual(self.window.size, FIRST // 2)
        self.assertFalse(self.window.has_room(3.9))
        self.assertEqual(self.window.closed_for(3), 1)
        self.assertTrue(self.window.has_room(4))

    def test_refusals_of_one_round_halve_it_once(self):
        for _ in range(5):
            self.window.refused(sent=0, delay=0.1, now=1)
        self.assertEqual(self.window.size, FIRST // 2)
        self.window.refused(sent=2, delay=0.1, now=3)
        self.assertEqual(self.window.size, FIRST // 4)

    def test_after_a_refusal_it_grows_by_one_a_round(self):
        self.window.refused(sent=0, delay=0, now=1)
        for trip in range(3):
            self.round_trip(2 + trip, 0.1)
        self.assertIn(self.window.size, (FIRST // 2 + 2, FIRST // 2 + 3))

    def test_it_never_closes_for_good(self):
        for trip in range(20):
            self.window.refused(sent=2 * trip, delay=0, now=2 * trip + 1)
        self.assertTrue(self.window.has_room(100))

    def test_a_server_that_was_lost_begins_anew(self):
        self.window.refused(sent=0, delay=1000, now=1)
        self.window.restart(max_batch_size=1)
        self.assertEqual(self.window.size, FIRST)
        self.assertTrue(self.window.has_room(2))

    def test_it_begins_with_two_batches(self):
        for batch, size in ((8, FIRST), (64, 128), (1000, MOST)):
            self.window.restart(batch)
            self.assertEqual(self.window.size, size)


if __name__ == '__main__':
    unittest.main()
