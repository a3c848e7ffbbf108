"""Tests which of several servers gets a picture, and what happens if this server fails."""

import asyncio
import unittest
import unittest.mock

import batch_testing
import grpc
from batch_testing import classified, refusal
from sfmamba.batch.asking import Asker, Rows
from sfmamba.batch.servers import JobError

CODES = grpc.StatusCode


def once(code, reason='', **more):
    """Returns a function that refuses only the first request."""
    left = [refusal(code, reason, **more)]
    return lambda request: left.pop() if left else None


class ServersTest(unittest.TestCase):
    def start(self, *arguments, **named):
        return batch_testing.server(self, *arguments, **named)

    def ask(self, servers, pictures, model='fake', **parameters):
        rows = Rows('classify', [one.address for one in servers], model, **parameters)
        self.addCleanup(rows.close)
        return rows(pictures)

    def assert_all_answered(self, rows, pictures):
        self.assertEqual([row['reason'] for row in rows], [None] * len(pictures))
        self.assertEqual([row['class_ids'] for row in rows],
                         [[one.class_id for one in classified(data).results[0].categories]
                          for data in pictures])


PICTURES = [b'%d' % number for number in range(100)]


class AnswersTest(ServersTest):
    def test_each_picture_has_its_row_in_order(self):
        servers = [self.start(), self.start()]
        self.assert_all_answered(self.ask(servers, PICTURES), PICTURES)
        self.assertEqual(sorted(servers[0].asked + servers[1].asked), sorted(PICTURES))

    def test_online_callers_go_first_and_nothing_has_a_deadline(self):
        server = self.start()
        seen = []
        server.refuse = lambda request: seen.append(request.options.priority)
        self.ask([server], PICTURES[:1])
        self.assertEqual(seen, [3])  # 3 is LOW.
        asked = server.timeouts[-1]
        self.assertTrue(asked is None or asked > 1e6, asked)

    def test_a_picture_that_fails_has_its_reason_and_message(self):
        [bad, good, missing] = self.ask([self.start()], [b'bad', b'good', '/no/such/file'])
        self.assertEqual((bad['reason'], bad['message'], bad['labels']),
                         ('IMAGE_DECODE_FAILED', 'told so', None))
        self.assertIsNone(good['reason'])
        self.assertEqual((missing['reason'], missing['message']),
                         ('UNREADABLE', 'No such file or directory'))

    def test_the_only_model_of_the_task_is_the_default(self):
        [row] = self.ask([self.start()], [b'one'], model='')
        self.assertIsNone(row['reason'])
        with self.assertRaisesRegex(JobError, 'has 0 models for DETECTION'):
            Rows('detect', [self.start().address])

    def test_several_requests_are_in_flight(self):
        server = self.start()
        server.release.clear()
        rows = []

        async def ask():
            async with Asker('classify', [server.address], 'fake') as asker:
                server.release.clear()
                asking = asyncio.create_task(
                    asker.each(enumerate(PICTURES), lambda key, row: rows.append(key)))
                # Several requests arrive before the first is answered.
                for _ in range(8):
                    await asyncio.to_thread(server.came.acquire)
                self.assertEqual(rows, [])
                server.release.set()
                await asking
        server.release.set()
        asyncio.run(ask())
        self.assertEqual(sorted(rows), list(range(len(PICTURES))))


class FailuresTest(ServersTest):
    def test_a_server_without_room_is_asked_again(self):
        for refused in (once(CODES.RESOURCE_EXHAUSTED, 'QUEUE_FULL', delay=0.05),
                        once(CODES.RESOURCE_EXHAUSTED, 'PREDICTED_DEADLINE_MISS'),
                        once(CODES.DEADLINE_EXCEEDED, 'EXPIRED_IN_QUEUE')):
            server = self.start(refused)
            self.assert_all_answered(self.ask([server], PICTURES), PICTURES)
            self.assertEqual(len(server.asked), len(PICTURES) + 1)

    def test_what_never_fits_is_a_row(self):
        for refused in (refusal(CODES.RESOURCE_EXHAUSTED, 'RESPONSE_TOO_LARGE'),
                        refusal(CODES.RESOURCE_EXHAUSTED, 'DEVICE_OOM', delay=0.01)):
            [row] = self.ask([self.start(lambda request, refused=refused: refused)], [b'one'])
            self.assertIn(row['reason'], ('RESPONSE_TOO_LARGE', 'DEVICE_OOM'))

    def test_a_server_that_drains_leaves_its_pictures_to_another(self):
        drains = self.start(lambda request: refusal(CODES.UNAVAILABLE, 'DRAINING', delay=0))
        other = self.start()

        def drain(request):
            drains.health = 2
            return refusal(CODES.UNAVAILABLE, 'DRAINING', delay=0)
        drains.refuse = drain
        self.assert_all_answered(self.ask([drains, other], PICTURES), PICTURES)
        self.assertEqual(sorted(other.asked), sorted(PICTURES))

    def test_a_server_that_comes_back_is_used_again(self):
        server = self.start(once(CODES.UNAVAILABLE, 'DRAINING', delay=0))
        self.assert_all_answered(self.ask([server], PICTURES), PICTURES)

    def test_a_server_that_stops_loses_nothing(self):
        servers = [self.start(), self.start()]
        rows = Rows('classify', [one.address for one in servers], 'fake')
        self.addCleanup(rows.close)
        self.assert_all_answered(rows(PICTURES), PICTURES)
        servers[0].stop()
        self.assert_all_answered(rows(PICTURES), PICTURES)

    def test_a_server_without_the_model_is_not_used(self):
        with_model, without = self.start(), self.start(name='models/other/versions/1')
        self.assert_all_answered(self.ask([with_model, without], PICTURES), PICTURES)
        self.assertEqual(without.asked, [])

    def test_servers_with_other_weights_are_not_mixed(self):
        servers = [self.start(weights='a'), self.start(weights='b')]
        self.assert_all_answered(self.ask(servers, PICTURES), PICTURES)
        self.assertIn([], [one.asked for one in servers])

    def test_what_would_come_to_every_picture_ends_the_job(self):
        refused = refusal(CODES.INVALID_ARGUMENT, 'INVALID_FIELD', field='params.top_k')
        with self.assertRaisesRegex(JobError, 'params.top_k'):
            self.ask([self.start(lambda request: refused)], PICTURES)

    def test_servers_that_stay_away_end_the_job(self):
        servers = [self.start(), self.start()]
        rows = Rows('classify', [one.address for one in servers], 'fake')
        self.addCleanup(rows.close)
        for server in servers:
            server.stop()
        with unittest.mock.patch('sfmamba.batch.servers.PATIENCE', 0):
            with self.assertRaisesRegex(JobError, 'no server can be used: .*nothing listens'):
                rows(PICTURES)

    def test_no_server_has_the_model(self):
        with self.assertRaisesRegex(JobError, 'no server can be used: .*MODEL_NOT_FOUND'):
            self.ask([self.start()], PICTURES, model='none')


if __name__ == '__main__':
    unittest.main()
