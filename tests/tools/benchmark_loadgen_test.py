import array
import ctypes
import pathlib
import tempfile
import types
import unittest

import benchmark_loadgen


class FakeLoadGen:
    """A stand-in for MLPerf's LoadGen. Stores the class in the answer to each query, by the query's
    ID."""

    def __init__(self):
        self.answers = {}

    def QuerySampleResponse(self, query, address, size):
        return query, address, size

    def QuerySamplesComplete(self, responses):
        for query, address, size in responses:
            data = ctypes.string_at(address, size)
            self.answers[query] = array.array('i', data)[0]


def sample(query, index):
    return types.SimpleNamespace(id=query, index=index)


class SystemUnderTestTest(unittest.TestCase):
    def ask(self, classify, samples, images_a_request):
        loadgen = FakeLoadGen()
        pictures = types.SimpleNamespace(bytes={0: b'zero', 1: b'one', 2: b'two'})
        sut = benchmark_loadgen.SystemUnderTest(loadgen, pictures, classify, 2, images_a_request)
        sut.issue(samples)
        sut.stop()
        return loadgen.answers, sut.failed

    def test_each_query_gets_the_class_of_its_picture(self):
        sizes = []

        def classify(images):
            sizes.append(len(images))
            return [len(image) for image in images]

        answers, failed = self.ask(classify, [sample(10, 0), sample(11, 1), sample(12, 0)], 2)
        self.assertEqual(answers, {10: 4, 11: 3, 12: 4})
        self.assertEqual(sorted(sizes), [1, 2])
        self.assertFalse(failed)

    def test_queries_of_a_request_that_fails_are_answered_and_counted(self):
        def classify(images):
            if b'two' in images:
                raise ValueError('refused')
            return [7] * len(images)

        answers, failed = self.ask(classify, [sample(1, 2), sample(2, 0)], 1)
        self.assertEqual(answers, {1: benchmark_loadgen.NO_CLASS, 2: 7})
        self.assertEqual(failed, {'ValueError: refused': 1})


class LogsTest(unittest.TestCase):
    def test_reads_the_lines_of_a_summary(self):
        summary = benchmark_loadgen.parse_summary(
            '=====\nMLPerf Results Summary\nScenario : Server\nResult is : INVALID\n'
            '  Min queries satisfied : Yes\n99.00 percentile latency (ns)   : 73175752\n'
            'No warnings encountered during test.\n')
        self.assertEqual(summary['Result is'], 'INVALID')
        self.assertEqual(summary['Min queries satisfied'], 'Yes')
        self.assertEqual(int(summary['99.00 percentile latency (ns)']), 73175752)
        self.assertEqual(len(summary), 4)

    def test_reads_the_answers_of_an_accuracy_run(self):
        text = ('[{"seq_id": 0, "qsl_idx": 2, "data": "07000000"},'
                ' {"seq_id": 1, "qsl_idx": 0, "data": "FFFFFFFF"}]')
        self.assertEqual(benchmark_loadgen.answered_classes(text), {2: 7, 0: -1})


class PicturesTest(unittest.TestCase):
    def test_finds_pictures_and_the_classes_that_their_folders_name(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / 'cat').mkdir()
            (folder / 'cat' / 'a.JPG').write_bytes(b'a')
            (folder / 'b.png').write_bytes(b'b')
            (folder / '._b.png').write_bytes(b'hidden')
            (folder / 'notes.txt').write_bytes(b'no picture')
            pictures = benchmark_loadgen.Pictures(folder)
            self.assertEqual([path.name for path in pictures.paths], ['b.png', 'a.JPG'])
            self.assertEqual(pictures.labels, [None, 'cat'])
            pictures.load([1])
            self.assertEqual(pictures.bytes, {1: b'a'})
            pictures.unload([1])
            self.assertEqual(pictures.bytes, {})

    def test_a_folder_without_pictures_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(SystemExit, 'expected pictures, found none'):
                benchmark_loadgen.Pictures(pathlib.Path(folder))


class MostTest(unittest.TestCase):
    def test_agrees_with_the_queue_of_one_server_and_equal_services(self):
        # In an M/D/1 queue with load 0.5, 99 % of the requests wait at most 3.2 service times. They
        # are answered one service time later, so the limit is 4.2 service times. If the load is
        # 0.9, 99 % wait at most 20 service times, so the limit is 21.
        self.assertAlmostEqual(benchmark_loadgen.most(4.2), 0.5, delta=0.03)
        self.assertAlmostEqual(benchmark_loadgen.most(21), 0.9, delta=0.03)

    def test_nothing_is_answered_before_it_is_computed(self):
        self.assertLess(benchmark_loadgen.most(0.9), 0.001)


if __name__ == '__main__':
    unittest.main()
