import unittest

import benchmark_neighbours


class FiguresTest(unittest.TestCase):
    def test_a_round_counts_as_a_whole(self):
        figures = benchmark_neighbours.medians([(10, 8), (20, 12), (40, 12)])
        self.assertEqual(figures, {'alone': 20, 'beside': 12, 'part': 0.6})

    def test_a_caller_may_wait_for_one_batch_of_the_slowest(self):
        self.assertEqual(benchmark_neighbours.allowed(10, [5, 200, 100]), 230)

    def test_the_longest_batch_is_that_of_any_size(self):
        profile = {'size_classes': [
            {'times': [{'images': 1, 'p95': '0.010s'}, {'images': 4, 'p95': '0.030s'}]},
            {'times': [{'images': 1, 'p95': '0.250s'}]}]}
        self.assertAlmostEqual(benchmark_neighbours.longest_batch(profile), 250)
        self.assertEqual(benchmark_neighbours.longest_batch({'size_classes': []}), 0)


if __name__ == '__main__':
    unittest.main()
