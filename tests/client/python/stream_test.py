"""Tests the streams of Client and AsyncClient with a fake server. Each test defines the server's
answers."""

import asyncio
import concurrent.futures
import queue
import threading
import time
import unittest

import grpc

from sfmamba import AsyncClient, Client, VisionError, _messages

PATIENCE = 30  # In seconds.


def answer_of(request):
    """Returns the answer to a request. The bytes of the request's picture are the label. For the
    bytes b'bad', the answer is an error."""
    response = _messages.StreamPredictResponse(correlation_id=request.correlation_id)
    [image] = request.classify.images
    if image.encoded == b'bad':
        response.error.code = 3
    else:
        label = image.encoded.decode('latin-1')
        response.classify.results.add(categories=[{'label': label, 'score': 1}])
    return response


def notice():
    return _messages.StreamPredictResponse(notice={'kind': 'DRAINING'})


class StreamServer:
    """Hands each StreamPredict call to the next of `scripts`, and further calls to the last one.

    A script is a function that yields responses. Its arguments are the iterator of the call's
    requests and the call's context.

    Attributes:
      calls: for each call, the messages that were read from it.
      address: '127.0.0.1:port'.
    """

    def __init__(self, *scripts, port=0):
        self.calls = []
        self._scripts = list(scripts)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        handler = grpc.stream_stream_rpc_method_handler(
            self._stream, request_deserializer=_messages.StreamPredictRequest.FromString,
            response_serializer=lambda response: response.SerializeToString())
        health = grpc.unary_stream_rpc_method_handler(
            self._watch, response_serializer=lambda response: response.SerializeToString())
        self._server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler('sfmamba.v1.VisionService',
                                                 {'StreamPredict': handler}),
            grpc.method_handlers_generic_handler('grpc.health.v1.Health', {'Watch': health})))
        self.address = f'127.0.0.1:{self._server.add_insecure_port(f"127.0.0.1:{port}")}'
        self._server.start()

    def stop(self):
        self._server.stop(0).wait()

    def _watch(self, request, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        yield _messages.HealthCheckResponse(status=1)
        ended.wait()

    def _stream(self, requests, context):
        messages = []
        self.calls.append(messages)
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]

        def noted():
            for request in requests:
                messages.append(request)
                yield request
        yield from script(noted(), context)


def answers_all(requests, context):
    for request in requests:
        if not request.HasField('config'):
            yield answer_of(request)


def unavailable(requests, context):
    context.abort(grpc.StatusCode.UNAVAILABLE, 'told so')
    yield


class Blocking:
    """Runs the cases with Client."""

    def connect(self, address):
        client = Client(address, timeout=PATIENCE)
        self.addCleanup(client.close)
        return client

    def collect(self, stream, most=None):
        found = []
        for answer in stream:
            found.append(answer)
            if len(found) == most:
                break
        stream.close()
        return found


class Asyncio:
    """Runs the cases with AsyncClient in an event loop of the test."""

    def setUp(self):
        super().setUp()
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)

    def connect(self, address):
        async def made():
            return AsyncClient(address, timeout=PATIENCE)
        client = self.loop.run_until_complete(made())
        self.addCleanup(lambda: self.loop.run_until_complete(client.close()))
        return client

    def collect(self, stream, most=None):
        async def collected():
            found = []
            async for answer in stream:
                found.append(answer)
                if len(found) == most:
                    break
            await stream.aclose()
            return found
        return self.loop.run_until_complete(collected())


class Cases:
    """The cases that both clients must pass."""

    def serve(self, *scripts):
        self.server = StreamServer(*scripts)
        self.addCleanup(self.server.stop)
        return self.connect(self.server.address)

    def stream(self, client, images, most=None, **arguments):
        """Returns a short text for each answer of the stream: the answer's label, the name of its
        error code, or the name of the exception."""
        def word(pair):
            image, answer = pair
            if isinstance(answer, VisionError):
                return answer.code.name
            if isinstance(answer, OSError):
                return type(answer).__name__
            self.assertEqual(answer.labels[0], image.decode())
            return answer.labels[0]
        # AsyncClient must create its stream in the event loop.
        stream = client.stream(client.classify, images, **arguments)
        return [word(pair) for pair in self.collect(stream, most)]

    def test_answers_in_order_over_one_call(self):
        client = self.serve(answers_all)
        pictures = [str(number).encode() for number in range(100)]
        self.assertEqual(self.stream(client, iter(pictures), in_flight=5, top_k=2),
                         [str(number) for number in range(100)])
        [[config, *requests]] = self.server.calls
        self.assertEqual((config.config.max_in_flight, config.config.preserve_order), (5, True))
        self.assertEqual(requests[7].classify.params.top_k, 2)

    def test_errors_have_their_places(self):
        client = self.serve(answers_all)
        self.assertEqual(self.stream(client, [b'a', b'bad', '/no/such/file', b'c']),
                         ['a', 'INVALID_ARGUMENT', 'FileNotFoundError', 'c'])

    def test_nothing_is_asked_of_nobody(self):
        client = self.serve(answers_all)
        self.assertEqual(self.stream(client, []), [])
        self.assertEqual(self.stream(client, ['/no/such/file']), ['FileNotFoundError'])
        self.assertEqual(self.server.calls, [])

    def test_in_the_order_of_the_answers_if_that_is_asked(self):
        def backwards(requests, context):
            next(requests)
            yield from map(answer_of, reversed([next(requests) for _ in range(3)]))
        client = self.serve(backwards)
        self.assertEqual(self.stream(client, [b'a', b'b', b'c'], ordered=False), ['c', 'b', 'a'])
        self.assertFalse(self.server.calls[0][0].config.preserve_order)
        self.assertEqual(self.stream(client, [b'a', b'b', b'c']), ['a', 'b', 'c'])

    def test_what_is_in_flight_is_bounded(self):
        taken, came = [], queue.Queue()

        def pictures():
            for number in range(9):
                taken.append(number)
                yield b''

        def waits_for_three(requests, context):
            next(requests)
            held = [next(requests) for _ in range(3)]
            came.put(len(taken))
            yield from map(answer_of, held)
            yield from map(answer_of, requests)

        client = self.serve(waits_for_three)
        self.assertEqual(len(self.stream(client, pictures(), in_flight=3)), 9)
        # The fourth picture is read only after the first is answered.
        self.assertEqual(came.get(timeout=PATIENCE), 3)

    def test_leaving_early_ends_the_call(self):
        ended = threading.Event()

        def endless():
            while True:
                yield b'a'

        def noted(requests, context):
            context.add_callback(ended.set)
            yield from answers_all(requests, context)

        client = self.serve(noted)
        self.assertEqual(self.stream(client, endless(), most=3), ['a', 'a', 'a'])
        self.assertTrue(ended.wait(PATIENCE))

    def test_a_server_that_drains_is_followed_by_another(self):
        def drains(requests, context):
            next(requests)
            first, _ = next(requests), next(requests)
            yield answer_of(first)
            yield notice()
            for _ in requests:  # The loop ends when the client closes its side of the stream.
                pass

        client = self.serve(drains, answers_all)
        pictures = [str(number).encode() for number in range(20)]
        self.assertEqual(self.stream(client, pictures, in_flight=2),
                         [str(number) for number in range(20)])
        asked = [[request.correlation_id for request in call if not request.HasField('config')]
                 for call in self.server.calls]
        self.assertEqual(asked[1], [str(number) for number in range(1, 20)])

    def test_a_server_that_ends_is_tried_again(self):
        def one(requests, context):
            next(requests)
            yield answer_of(next(requests))
            context.abort(grpc.StatusCode.UNAVAILABLE, 'told so')

        client = self.serve(unavailable, one, one, one, one, one)
        self.assertEqual(self.stream(client, [b'a', b'b', b'c', b'd'], in_flight=1),
                         ['a', 'b', 'c', 'd'])
        client = self.serve(unavailable)
        with self.assertRaisesRegex(VisionError, 'UNAVAILABLE'):
            self.stream(client, [b'a'])
        self.assertEqual(len(self.server.calls), 3)

    def test_a_server_that_comes_back_is_sent_what_it_owes(self):
        def ends(requests, context):
            next(requests)
            yield answer_of(next(requests))
            yield answer_of(next(requests))
            ended = threading.Event()
            context.add_callback(ended.set)
            threading.Thread(target=restart).start()
            ended.wait(PATIENCE)

        def restart():
            self.server.stop()
            # If a server has never answered, the client stops trying before this time is over.
            # This server has answered, so the client must keep trying.
            time.sleep(0.5)
            self.server = StreamServer(
                unready, answers_all, port=int(self.server.address.rpartition(':')[2]))
            self.addCleanup(self.server.stop)

        def unready(requests, context):
            next(requests)
            first = next(requests)
            refusal = _messages.StreamPredictResponse(correlation_id=first.correlation_id)
            refusal.error.code = 14
            yield refusal
            yield from (answer_of(request) for request in requests)

        client = self.serve(ends)
        pictures = [str(number).encode() for number in range(40)]
        self.assertEqual(self.stream(client, pictures, in_flight=4),
                         [str(number) for number in range(40)])

    def test_other_errors_end_the_stream(self):
        def refuses(requests, context):
            next(requests)
            yield answer_of(next(requests))
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, 'told so')
        client = self.serve(refuses)
        with self.assertRaisesRegex(VisionError, 'INVALID_ARGUMENT: told so'):
            self.stream(client, [b'a', b'b'], in_flight=1)
        self.assertIn(len(self.server.calls), self.CALLS_UNTIL_THE_STATUS)

    def test_silence_ends_the_stream(self):
        def silent(requests, context):
            for _ in requests:
                pass
            ended = threading.Event()
            context.add_callback(ended.set)
            ended.wait(PATIENCE)
            yield
        client = self.serve(silent)
        with self.assertRaisesRegex(VisionError, 'DEADLINE_EXCEEDED.* 0.2 s'):
            self.stream(client, [b'a'], timeout=0.2)

    def test_an_answer_to_nothing_is_an_error(self):
        def invents(requests, context):
            next(requests)
            yield _messages.StreamPredictResponse(correlation_id='7')
        client = self.serve(invents)
        with self.assertRaisesRegex(VisionError, 'DATA_LOSS.*"7"'):
            self.stream(client, [b'a'])

    def test_errors_of_the_pictures_are_the_callers(self):
        def pictures():
            yield b'a'
            raise KeyError('told so')
        client = self.serve(answers_all)
        with self.assertRaisesRegex(KeyError, 'told so'):
            self.stream(client, pictures())
        with self.assertRaises(TypeError):
            self.stream(client, [1])

    def test_arguments_are_checked_at_once(self):
        client = self.serve(answers_all)
        for arguments, error in (({'in_flight': 0}, ValueError), ({'in_flight': 513}, ValueError),
                                 ({'timeout': 0}, ValueError), ({'masks': True}, TypeError)):
            with self.assertRaises(error, msg=arguments):
                client.stream(client.classify, [], **arguments)
        with self.assertRaisesRegex(ValueError, 'method'):
            client.stream(client.models, [])
        with self.assertRaisesRegex(TypeError, 'got one picture'):
            client.stream(client.classify, b'a')


class SyncTest(Cases, Blocking, unittest.TestCase):
    CALLS_UNTIL_THE_STATUS = (1,)


class AsyncTest(Cases, Asyncio, unittest.TestCase):
    # If the server ends the call while the client writes a picture, grpc.aio loses the status. The
    # client then makes a second call, which gets the status.
    CALLS_UNTIL_THE_STATUS = (1, 2)

    def test_pictures_may_come_asynchronously(self):
        async def pictures():
            for number in range(5):
                yield str(number).encode()
        client = self.serve(answers_all)
        self.assertEqual(self.stream(client, pictures()), list('01234'))


if __name__ == '__main__':
    unittest.main()
