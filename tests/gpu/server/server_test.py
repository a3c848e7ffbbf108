"""Tests measure.py with servers and clients that fail, hang or report wrong values."""

import io
import json
import pathlib
import tarfile
import tempfile
import time
import unittest

import answers
import loads
import measure
import server_process

LISTENING = '{"msg":"listening","port":1}'
SERVING = '{"msg":"serving"}'


def answer(file, scores):
    return {'file': file, 'categories': [{'class_id': i, 'score': score}
                                         for i, score in enumerate(scores)]}


class AnswersTest(unittest.TestCase):
    def test_equal_answers_do_not_deviate(self):
        some = [answer('a', [0.7, 0.2, 0.1]), answer('b', [0.1, 0.2, 0.7])]
        self.assertEqual(answers.deviation(some, some, 3), (0, 2))

    def test_a_deviation_is_in_standard_deviations(self):
        # The expected logits 0, 1 and 2 have a standard deviation of 0.816. The last logit of the
        # answer is larger than expected by 0.15. The mean is therefore larger by 0.05. After the
        # means are subtracted, the last logits differ by 0.1.
        logits = lambda *values: answer('a', [2.718281828459045**value / 9 for value in values])
        worst, same = answers.deviation([logits(0, 1, 2.15)], [logits(0, 1, 2)], 3)
        self.assertAlmostEqual(worst, 0.1 / 0.8165, places=3)
        self.assertEqual(same, 1)

    def test_what_cannot_be_compared_is_refused(self):
        good = [answer('a', [0.7, 0.3])]
        for bad in ([answer('b', [0.7, 0.3])], [answer('a', [0.7])], [],
                    [answer('a', [0.7, float('nan')])], [answer('a', [0.7, -0.1])]):
            with self.assertRaises(ValueError, msg=str(bad)):
                answers.deviation(bad, good, 2)

    def test_a_score_may_be_too_small_for_a_float(self):
        worst, _ = answers.deviation([answer('a', [1, 0])], [answer('a', [1, 1e-39])], 2)
        self.assertEqual(worst, 0)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def program(self, name, script):
        path = self.root / name
        path.write_text(f'#!/bin/bash\n{script}\n')
        path.chmod(0o755)


class ServerTest(FolderTest):
    def server(self, script):
        self.program('sfmamba_server', script)
        server = server_process.Server(self.root, self.root, self.root / 'log')
        self.addCleanup(server.kill)
        return server

    def test_it_is_ready_when_it_says_so(self):
        server = self.server(f"sleep 0.2; echo '{LISTENING}'; echo 'no JSON'; echo '{SERVING}'\n"
                             "trap 'exit 3' TERM; sleep 20 & wait")
        server.start(10)
        self.assertEqual(server.address, '127.0.0.1:1')
        self.assertGreater(server.seconds_to_ready, 0.15)
        self.assertTrue(server.thread_times())
        self.assertEqual(server.stop(10)[0], 3)

    def test_it_says_why_it_does_not_start(self):
        with self.assertRaisesRegex(server_process.ServerError, 'ended with 2: bad flag'):
            self.server('echo bad flag; exit 2').start(10)
        with self.assertRaises(server_process.NoGpu):
            self.server('exit 5').start(10)
        with self.assertRaisesRegex(server_process.ServerError, 'not READY after 0 s: .*warming'):
            self.server("echo warming; exec sleep 60").start(0.3)

    def test_a_server_that_hangs_is_ended(self):
        server = self.server(f"trap '' TERM; echo '{LISTENING}'; echo '{SERVING}'\n"
                             "while true; do sleep 0.1; done").start(10)
        with self.assertRaisesRegex(server_process.ServerError, 'after SIGTERM'):
            server.stop(0.3)
        self.assertFalse(server.alive())

    def test_threads_of_a_kind_are_one(self):
        self.assertEqual(server_process.kind_of('batch-11'), 'batch')
        self.assertEqual(server_process.kind_of('batch-drop'), 'batch-drop')
        self.assertEqual(server_process.kind_of('decode'), 'decode')
        self.assertEqual(server_process.microseconds_an_image(
            {'batch': 1.0}, {'batch': 1.5, 'decode': 2.0, 'log': 1e-6}, 1000),
            {'decode': 2000.0, 'batch': 500.0})

    def test_a_model_has_what_its_measurement_needs(self):
        server_process.write_model(self.root, 't', 't')
        text = (self.root / 't/1/config.textproto').read_text()
        for part in ('"sf_mamba_t"', 'precision: BF16', 'max_batch_size: 128'):
            self.assertIn(part, text)


class StepsTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.program('sfmamba_server',
                     f"echo start >>{self.root}/starts; echo '{LISTENING}'; echo '{SERVING}'\n"
                     'exec sleep 60')
        self.lines = []
        self.addCleanup(loads.STEPS.update, dict(loads.STEPS))

    def run_steps(self, *arguments, **steps):
        loads.STEPS.update(steps)
        options = measure.parse_arguments([
            '--out', str(self.root / 'lines'), '--server', str(self.root),
            '--work', str(self.root), '--steps', ','.join(steps), *arguments])
        session = measure.Session(options, self.lines.append)
        self.addCleanup(session.close)
        failed = measure.run_steps(session, options.steps)
        return failed, [line['status'] for line in self.lines
                        if line['benchmark'] == 'server_step']

    def starts(self):
        return len((self.root / 'starts').read_text().splitlines())

    def fails(self, session):
        raise AssertionError('wrong')

    def test_what_fails_stops_nothing_and_gets_a_new_server(self):
        failed, statuses = self.run_steps(ready=lambda _: None, uint8=self.fails,
                                          jpeg=lambda _: None, fp32=lambda _: None)
        self.assertEqual(failed, 1)
        self.assertEqual(statuses, ['passed', 'AssertionError: wrong', 'passed', 'passed'])
        self.assertEqual(self.starts(), 2)

    def test_a_client_that_hangs_is_ended_at_the_limit(self):
        self.program('sfmamba', 'exec sleep 60')
        begin = time.monotonic()
        _, statuses = self.run_steps('--time_scale=0.02', uint8=loads.uint8, rates=loads.rates)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(statuses, ['ServerError: the client took too long',
                                    'AssertionError: the peak is unknown: the step uint8 did '
                                    'not pass'])

    def test_a_client_that_fails_says_why(self):
        self.program('sfmamba', 'echo no such server >&2; exit 1')
        _, statuses = self.run_steps(jpeg=loads.jpeg)
        self.assertEqual(statuses, ['ServerError: the client ended with 1: no such server'])

    def test_a_server_that_has_died_is_started_again(self):
        _, statuses = self.run_steps(ready=lambda session: session.server.kill(),
                                     uint8=lambda _: None)
        self.assertEqual(statuses, ['passed', 'passed'])
        self.assertEqual(self.starts(), 2)

    def test_after_the_time_nothing_is_begun(self):
        _, statuses = self.run_steps('--seconds=0', ready=self.fails)
        self.assertEqual(statuses, ['no time was left'])

    def test_steps_are_known(self):
        self.assertEqual(set(measure.STEPS), set(loads.STEPS))
        with self.assertRaises(SystemExit):
            measure.parse_arguments(['--out=x', '--steps=ready,speed'])

    def test_without_a_gpu_it_is_skipped(self):
        self.program('sfmamba_server', 'exit 5')
        self.assertEqual(measure.main([
            '--out', str(self.root / 'lines'), '--server', str(self.root),
            '--work', str(self.root / 'work')]), 0)
        self.assertFalse((self.root / 'lines').exists())

    def test_an_archive_is_unpacked(self):
        with tarfile.open(self.root / 'packed.tar.xz', 'w:xz') as archive:
            entry = tarfile.TarInfo('packed/sfmamba')
            entry.size = 3
            archive.addfile(entry, io.BytesIO(b'abc'))
        measure.unpack(str(self.root / 'packed'))
        self.assertEqual((self.root / 'packed/sfmamba').read_bytes(), b'abc')


if __name__ == '__main__':
    unittest.main()
