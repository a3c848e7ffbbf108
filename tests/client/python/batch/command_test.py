"""Tests sfmamba-batch from the command line: runs that are interrupted, killed, resumed or refused.

If BATCH_PICTURES=20000 is set, the killed jobs are as large as docs/batch.md says.
"""

import json
import random
import resource
import signal
import subprocess
import sys
import unittest

import batch_testing
import grpc
import pyarrow.parquet as pq
from batch_testing import (MODEL, PATIENCE, PICTURES, add_pictures, begin, classified, data_files,
                           folder, refusal, run)

KILLS = 10


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = folder(self)
        self.photos = self.folder / 'photos'
        self.output = self.folder / 'results'

    def server(self, *arguments, **named):
        return batch_testing.server(self, *arguments, **named)

    def job(self, *servers, output=None, flags=()):
        """Returns the arguments of a job."""
        named = [f'--server={one.address}' for one in servers]
        return ['classify', '--input', self.photos, '--output', output or self.output, '--model',
                'fake', *named, *flags]

    def rows(self, output=None):
        """Returns all rows, in the order of the files."""
        return [row for file in sorted((output or self.output).glob('part-*.parquet'))
                for row in pq.read_table(file).to_pylist()]

    def assert_complete(self, count, bad=()):
        rows = self.rows()
        self.assertEqual([row['id'] for row in rows], [f'{n:05}.jpg' for n in range(count)])
        self.assertEqual([n for n, row in enumerate(rows) if row['reason']], sorted(bad))


class OutputTest(CommandTest):
    def test_rows_are_the_servers_answers(self):
        add_pictures(self.photos, 3)
        code, out, err = run(*self.job(self.server()))
        self.assertEqual((code, out), (0, ''), err)
        self.assertIn('3 of 3 done, 0 failed', err)
        for number, row in enumerate(self.rows()):
            categories = classified(b'picture %d' % number).results[0].categories
            self.assertEqual(row, {
                'id': f'0000{number}.jpg', 'class_ids': [one.class_id for one in categories],
                'labels': [one.label for one in categories],
                'scores': [one.score for one in categories], 'embedding': None, 'reason': None,
                'message': None})

    def test_pictures_that_fail_are_rows_and_can_be_tried_again(self):
        bad = [3, 7]
        add_pictures(self.photos, 20, bad)
        server = self.server()
        code, _, err = run(*self.job(server, flags=['--part_size=5']))
        self.assertEqual(code, 3, err)
        self.assert_complete(20, bad)
        _, listed, _ = run('status', self.output, '--failed')
        self.assertEqual(listed, ''.join(f'0000{n}.jpg\tIMAGE_DECODE_FAILED\ttold so\n'
                                         for n in bad))
        _, status, _ = run('status', self.output)
        self.assertEqual(status.splitlines(),
                         [f'20 of 20 done, 2 failed, 0 left: classify with {MODEL}', 'complete'])
        before = data_files(self.output)
        del server.asked[:]
        self.assertEqual(run(*self.job(server, flags=['--part_size=5']))[0], 3)
        self.assertEqual(server.asked, [])
        add_pictures(self.photos, 20)  # All pictures are replaced by valid ones.
        code, _, err = run(*self.job(server, flags=['--part_size=5', '--retry-failed']))
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(server.asked), [b'picture 3', b'picture 7'])
        self.assert_complete(20)
        changed = [name for name, data in data_files(self.output).items() if before[name] != data]
        self.assertEqual(sorted(changed), ['part-0001-00000.parquet', 'part-0001-00001.parquet'])

    def test_shards_and_part_sizes_divide_the_input(self):
        add_pictures(self.photos, 10)
        server = self.server()
        for shard in (2, 1, 3):
            self.assertEqual(
                run(*self.job(server, flags=[f'--shard={shard}/3', '--part_size=2']))[0], 0)
        self.assert_complete(10)
        self.assertEqual(len(server.asked), 10)
        self.assertEqual(sorted(data_files(self.output)), [
            'part-0001-00000.parquet', 'part-0001-00001.parquet', 'part-0002-00000.parquet',
            'part-0002-00001.parquet', 'part-0003-00000.parquet', 'part-0003-00001.parquet'])

    def test_a_token_goes_with_each_call(self):
        add_pictures(self.photos, 3)
        server = self.server()
        token = self.folder / 'token'
        token.write_text('secret\n')
        self.assertEqual(run(*self.job(server, flags=[f'--token_file={token}']))[0], 0)
        self.assertEqual({sent.get('authorization') for sent in server.metadata},
                         {'Bearer secret'})

    def test_lines_of_json(self):
        add_pictures(self.photos, 3, [1])
        self.assertEqual(run(*self.job(self.server(), flags=['--format=jsonl']))[0], 3)
        lines = (self.output / 'part-0001-00000.jsonl').read_text().splitlines()
        self.assertEqual([json.loads(line)['reason'] for line in lines],
                         [None, 'IMAGE_DECODE_FAILED', None])


class RefusalsTest(CommandTest):
    def refused(self, arguments, why):
        code, out, err = run(*arguments)
        self.assertEqual((code, out), (1, ''))
        self.assertRegex(err, why)
        self.assertNotIn('Traceback', err)

    def test_a_folder_of_another_job(self):
        add_pictures(self.photos, 3)
        server = self.server()
        self.assertEqual(run(*self.job(server))[0], 0)
        before = data_files(self.output)
        self.refused(self.job(server, flags=['--top_k=1']), 'parameters is .* there, and .* here')
        self.refused(self.job(server, flags=['--part_size=1']), 'part_size is 10000 there')
        server.weights = 'b'
        self.refused(self.job(server), 'weights is a there, and b here')
        server.weights = 'a'
        add_pictures(self.photos, 4)
        self.refused(self.job(server), 'inputs is 3 there, and 4 here')
        self.assertEqual(data_files(self.output), before)
        self.assertEqual(len(server.asked), 3)

    def test_a_second_process_on_a_shard(self):
        add_pictures(self.photos, 3)
        server = self.server()
        server.release.clear()
        blocked = []

        def block(request):
            blocked.append(request)
            server.hold.wait(PATIENCE)
        server.hold = batch_testing.threading.Event()
        server.refuse = block
        server.release.set()
        with begin(*self.job(server)) as first:
            batch_testing.wait_until(lambda: blocked)
            self.refused(self.job(server), 'another process works on this')
            _, status, _ = run('status', self.output)
            self.assertIn('1 of 1 shards running', status)
            server.hold.set()
            self.assertEqual(first.wait(PATIENCE), 0, first.stderr.read())
        self.assert_complete(3)

    def test_an_id_twice_before_anything_is_sent(self):
        server = self.server()
        self.photos.write_text('a.jpg\na.jpg\n')
        self.refused(self.job(server), '1 stand for several, such as a.jpg')
        self.assertEqual(server.requests, [])

    def test_a_server_that_is_not_there_and_an_input_that_is_not(self):
        self.refused(['status', self.folder], 'has no job')
        self.refused(self.job(self.server()), 'neither a folder nor a file')

    def test_a_parameter_that_the_server_does_not_take(self):
        add_pictures(self.photos, 30)
        wrong = refusal(grpc.StatusCode.INVALID_ARGUMENT, 'INVALID_FIELD', field='params.top_k')
        self.refused(self.job(self.server(lambda request: wrong)), 'params.top_k')


class InterruptsTest(CommandTest):
    def reference(self, server, flags):
        """Runs a job without interruption and returns its files."""
        output = self.folder / 'undisturbed'
        self.assertIn(run(*self.job(server, output=output, flags=flags))[0], (0, 3))
        return data_files(output)

    def test_killed_again_and_again_it_gives_the_bytes_of_an_undisturbed_job(self):
        bad = range(0, PICTURES, 100)
        add_pictures(self.photos, PICTURES, bad)
        servers = [self.server() for _ in range(3)]
        flags = [f'--part_size={PICTURES // 10 + 1}']
        expected = self.reference(servers[0], flags)
        chance = random.Random(59)
        for kill in range(KILLS):
            # The job has answers when it is killed, and it must not lose them. The moment of the
            # kill is random.
            before = sum(len(one.asked) for one in servers)
            most = before + chance.randrange(1, PICTURES // KILLS)
            with begin(*self.job(*servers, flags=flags)) as process:
                batch_testing.wait_until(
                    lambda: sum(len(one.asked) for one in servers) >= most or process.poll() is not None)
                self.assertIsNone(process.poll(), f'it ended before kill {kill}')
                process.kill()
        code, _, err = run(*self.job(*servers, flags=flags))
        self.assertEqual(code, 3, err)
        self.assertEqual(data_files(self.output), expected)
        self.assert_complete(PICTURES, bad)

    def test_a_signal_ends_it_within_five_seconds_and_keeps_the_answers(self):
        add_pictures(self.photos, 100)
        for number in (signal.SIGINT, signal.SIGTERM):
            output = self.folder / number.name
            server = self.server()
            hold = batch_testing.threading.Event()
            self.addCleanup(hold.set)
            server.refuse = lambda request, server=server, hold=hold: (
                hold.wait(PATIENCE) and None if len(server.asked) >= 50 else None)
            with begin(*self.job(server, output=output)) as process:
                server.wait_for(50)
                batch_testing.wait_until(lambda: '50 of 100' in run('status', output)[1])
                process.send_signal(number)
                self.assertEqual(process.wait(5), 1)
                self.assertIn('interrupted', process.stderr.read())
            hold.set()
            self.assertIn('not running', run('status', output)[1])
            del server.asked[:]
            self.assertEqual(run(*self.job(server, output=output))[0], 0)
            self.assertEqual(len(server.asked), 50)

    def test_a_full_disk_loses_nothing(self):
        add_pictures(self.photos, 200)
        server = self.server()
        expected = self.reference(server, ['--part_size=100'])
        limited = [sys.executable, '-c', 'import resource, sys; from sfmamba.batch.command import run; '
                   'resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)); '
                   'sys.exit(run(sys.argv[1:]))']
        self.assertGreater(resource.getrlimit(resource.RLIMIT_FSIZE)[0] % 2**63, 8000)
        done = subprocess.run([*limited, *map(str, self.job(server, flags=['--part_size=100']))],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, 'the disk is full|File too large')
        self.assertNotIn('Traceback', done.stderr)
        self.assertIn(' 0 failed', run('status', self.output)[1])
        self.assertEqual(run(*self.job(server, flags=['--part_size=100']))[0], 0)
        self.assertEqual(data_files(self.output), expected)

    def test_a_torn_line_of_a_journal_is_asked_again(self):
        add_pictures(self.photos, 5)
        server = self.server()
        expected = self.reference(server, [])
        journal = self.output / '_job' / 'part-0001-00000.journal'
        self.assertEqual(run(*self.job(server))[0], 0)
        (self.output / '_job' / 'part-0001-00000.json').unlink()
        row = self.rows()[0]
        journal.write_text(json.dumps([0, row]) + '\n' + json.dumps([1, row])[:20])
        del server.asked[:]
        self.assertEqual(run(*self.job(server))[0], 0)
        self.assertEqual(sorted(server.asked), [b'picture %d' % n for n in range(1, 5)])
        self.assertEqual(data_files(self.output), expected)

    def test_inputs_that_change_meanwhile_end_it(self):
        add_pictures(self.photos, 2)
        server = self.server()
        self.assertEqual(run(*self.job(server))[0], 0)
        (self.photos / '00000.jpg').rename(self.photos / 'other.jpg')
        code, _, err = run(*self.job(server))
        self.assertEqual(code, 1)
        self.assertIn('inputs_hash', err)


if __name__ == '__main__':
    unittest.main()
