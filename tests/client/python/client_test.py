"""Tests both clients with a server that answers as the test says."""

import asyncio
import io
import pathlib
import subprocess
import tempfile
import threading
import unittest
import warnings

import grpc
from fake_server import FakeServer

from sfmamba import AsyncClient, Client, Options, Slide, VisionError, _messages

UNAVAILABLE = (grpc.StatusCode.UNAVAILABLE, ())
FULL = (grpc.StatusCode.RESOURCE_EXHAUSTED, ())


def named(*labels):
    """Returns a response with one class for each picture."""
    return _messages.ClassifyResponse(
        results=[{'categories': [{'label': label, 'score': 1}]} for label in labels])


def by_bytes(request):
    """Answers each picture with its bytes as the class. For b'bad' the answer is an error."""
    response = named(*(image.encoded.decode('latin-1') for image in request.images))
    for image, result in zip(request.images, response.results):
        if image.encoded == b'bad':
            result.error.code = 3
    return response


def retry_info(seconds):
    """Returns the trailing metadata of an error with this retry delay."""
    info = _messages.RetryInfo()
    info.retry_delay.seconds = seconds
    status = _messages.Status(code=14)
    status.details.add(type_url='type.googleapis.com/google.rpc.RetryInfo',
                       value=info.SerializeToString())
    return (('grpc-status-details-bin', status.SerializeToString()),)


def error_info(reason, **metadata):
    """Returns the trailing metadata of an error with this reason."""
    info = _messages.ErrorInfo(reason=reason, domain='sfmamba.serving', metadata=metadata)
    status = _messages.Status(code=14)
    status.details.add(type_url='type.googleapis.com/google.rpc.ErrorInfo',
                       value=info.SerializeToString())
    return (('grpc-status-details-bin', status.SerializeToString()),)


class Blocking:
    """Runs the cases with Client."""

    def connect(self, server, **arguments):
        client = Client(server, **arguments)
        self.addCleanup(client.close)
        return client

    def run_method(self, method, *arguments, **named_arguments):
        return method(*arguments, **named_arguments)

    def run_map(self, client, images, **arguments):
        return list(client.map(client.classify, images, **arguments))


class Asyncio:
    """Runs the cases with AsyncClient in an event loop of the test."""

    def setUp(self):
        super().setUp()
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)

    def connect(self, server, **arguments):
        async def made():
            return AsyncClient(server, **arguments)
        client = self.loop.run_until_complete(made())
        self.addCleanup(lambda: self.loop.run_until_complete(client.close()))
        return client

    def run_method(self, method, *arguments, **named_arguments):
        return self.loop.run_until_complete(method(*arguments, **named_arguments))

    def run_map(self, client, images, **arguments):
        async def collected():
            return [answer async for answer in client.map(client.classify, images, **arguments)]
        return self.loop.run_until_complete(collected())


class Cases:
    """The cases that both clients must pass."""

    def serve(self, *answers, **arguments):
        self.server = FakeServer(*answers, **arguments)
        self.addCleanup(self.server.stop)
        return self.server.address

    def failure(self, method, *arguments, **named_arguments):
        with self.assertRaises(VisionError) as raised:
            self.run_method(method, *arguments, **named_arguments)
        return raised.exception

    def test_a_picture_and_a_list(self):
        client = self.connect(self.serve(by_bytes))
        self.assertEqual(self.run_method(client.classify, b'a').labels, ('a',))
        first, bad, last = self.run_method(client.classify, [b'a', b'bad', b'c'])
        self.assertEqual((first.labels, last.labels), (('a',), ('c',)))
        self.assertEqual(bad.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.failure(client.classify, b'bad').code,
                         grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.run_method(client.classify, []), [])

    def test_a_long_list_is_cut(self):
        client = self.connect(self.serve(by_bytes), max_images_per_request=2)
        answers = self.run_method(client.classify, [b'a', b'b', b'c', b'd', b'e'])
        self.assertEqual([answer.labels[0] for answer in answers], list('abcde'))
        self.assertEqual([len(request.images) for request in self.server.requests], [2, 2, 1])

    def test_unavailable_is_tried_three_times(self):
        client = self.connect(self.serve(UNAVAILABLE, UNAVAILABLE, named('a')))
        self.assertEqual(self.run_method(client.classify, b'').labels, ('a',))
        self.assertEqual(len(self.server.requests), 3)

    def test_and_no_more(self):
        client = self.connect(self.serve(UNAVAILABLE))
        self.assertEqual(self.failure(client.classify, b'').code, grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(len(self.server.requests), 3)

    def test_overload_is_tried_once(self):
        client = self.connect(self.serve(FULL))
        error = self.failure(client.classify, b'')
        self.assertEqual((error.code, error.message),
                         (grpc.StatusCode.RESOURCE_EXHAUSTED, 'told so'))
        self.assertEqual(len(self.server.requests), 1)

    def test_a_delay_beyond_the_deadline_ends_the_call(self):
        client = self.connect(self.serve((grpc.StatusCode.UNAVAILABLE, retry_info(60))))
        self.assertEqual(self.failure(client.classify, b'', timeout=30).retry_delay, 60)
        self.assertEqual(len(self.server.requests), 1)

    def test_deadlines(self):
        client = self.connect(self.serve(named('a')), timeout=500)
        self.run_method(client.classify, b'')
        self.run_method(client.classify, b'', timeout=1000)
        for limit, given in zip((500, 1000), self.server.timeouts):
            self.assertTrue(0.8 * limit < given < 1.1 * limit, given)
        self.server.release.clear()
        error = self.failure(client.classify, b'', timeout=0.05)
        self.assertEqual(error.code, grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_no_deadline_is_no_choice(self):
        address = self.serve(named('a'))
        for timeout in (0, -1, float('inf'), float('nan')):
            with self.assertRaisesRegex(ValueError, 'timeout'):
                self.connect(address, timeout=timeout)
            with self.assertRaisesRegex(ValueError, 'timeout'):
                self.run_method(self.connect(address).classify, b'', timeout=timeout)

    def test_map_keeps_the_order(self):
        client = self.connect(self.serve(by_bytes))
        pictures = [bytes([number]) for number in range(100)]
        answers = self.run_map(client, iter(pictures), in_flight=5)
        self.assertEqual([answer.labels[0] for answer in answers], [chr(n) for n in range(100)])

    def test_map_keeps_errors_in_their_places(self):
        client = self.connect(self.serve(by_bytes))
        good, bad, missing = self.run_map(client, [b'a', b'bad', '/no/such/file'], top_k=3)
        self.assertEqual(good.labels, ('a',))
        self.assertEqual(bad.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIsInstance(missing, FileNotFoundError)
        self.assertEqual(self.server.requests[0].params.top_k, 3)
        with self.assertRaises(TypeError):
            self.run_map(client, [1])
        with self.assertRaisesRegex(ValueError, 'in_flight'):
            self.run_map(client, [], in_flight=0)
        with self.assertRaisesRegex(TypeError, 'got one picture'):
            self.run_map(client, '/no/such/file')

    def test_map_waits_for_a_server_that_has_answered(self):
        address = self.serve(by_bytes)
        client = self.connect(address)
        first, *rest = [bytes([number]) for number in range(60, 100)]
        self.assertEqual(self.run_method(client.classify, first).labels, (first.decode(),))

        def pictures():
            yield first
            for number, picture in enumerate(rest):
                if number == 10:
                    self.server.stop()
                    threading.Timer(0.5, restart).start()
                yield io.BytesIO(picture)

        def restart():
            self.server = FakeServer(by_bytes, port=int(address.rpartition(':')[2]))
            self.addCleanup(self.server.stop)

        answers = self.run_map(client, pictures(), in_flight=32)
        self.assertEqual([getattr(answer, 'labels', answer) for answer in answers],
                         [(picture.decode(),) for picture in (first, *rest)])

    def test_map_bounds_what_is_in_flight(self):
        self.serve(named('a'))
        client = self.connect(self.server.address)
        self.server.release.clear()
        taken = []

        def pictures():
            for number in range(9):
                taken.append(number)
                yield b''

        mapping = threading.Thread(target=self.run_map, args=(client, pictures()),
                                   kwargs={'in_flight': 3})
        mapping.start()
        for _ in range(3):
            self.server.came.acquire()
        self.assertEqual(taken, [0, 1, 2])  # The fourth picture waits until the first is answered.
        self.server.release.set()
        mapping.join()
        self.assertEqual(len(self.server.requests), 9)

    def test_parameters(self):
        client = self.connect(self.serve(
            _messages.DetectResponse(results=[{'image_width': 5, 'image_height': 4}]),
            _messages.SegmentResponse(results=[{'width': 1, 'height': 1, 'rle': {'classes': [
                {'class_id': 3, 'rle': {'height': 1, 'width': 1, 'counts': '01'}}]}}])))
        self.run_method(client.detect, b'', model='finder', score_threshold=0.25, masks=True,
                        class_filter=[4], options=Options(priority='LOW'))
        answer = self.run_method(client.segment, b'', model_size=True, confidence=True,
                                 slide=Slide(width=512, height=512, stride_x=341))
        self.assertEqual(answer.class_map.tolist(), [[3]])
        detect, segment = self.server.requests
        self.assertEqual((detect.model, detect.params.score_threshold,
                          list(detect.params.class_filter)), ('finder', 0.25, [4]))
        self.assertEqual(detect.params.mask_encoding, _messages.DetectParams.COCO_RLE)
        self.assertEqual(detect.options.priority, _messages.RequestOptions.LOW)
        self.assertEqual(segment.params.output_size, _messages.SegmentParams.MODEL)
        self.assertTrue(segment.params.include_confidence_map)
        self.assertEqual(segment.params.slide, _messages.SegmentParams(slide={
            'width': 512, 'height': 512, 'stride_x': 341}).slide)

    def test_traceparent(self):
        traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
        client = self.connect(self.serve(
            UNAVAILABLE, _messages.ClassifyResponse(results=[{}]),
            _messages.ClassifyResponse(results=[{}])))
        self.run_method(client.classify, b'', options=Options(traceparent=traceparent))
        self.run_method(client.classify, b'')
        self.assertEqual([metadata.get('traceparent') for metadata in self.server.metadata],
                         [traceparent, traceparent, None])
        for bad in ('00', traceparent.upper(), traceparent + '-x', traceparent + '\n'):
            with self.subTest(bad), self.assertRaisesRegex(ValueError, 'a traceparent is'):
                Options(traceparent=bad)

    def test_models(self):
        client = self.connect(self.serve(
            _messages.ListModelsResponse(models=[{'name': 'a', 'task': 1}], next_page_token='x'),
            _messages.ListModelsResponse(models=[{'name': 'b', 'state': 2}]),
            _messages.Model(name='c', classes=[{'label': 'cup'}],
                            input={'buckets': [{'height': 2, 'width': 3}]})))
        first, second = self.run_method(client.models)
        self.assertEqual((first.name, first.task, second.name, second.state),
                         ('a', 'CLASSIFICATION', 'b', 'READY'))
        self.assertEqual(self.server.requests[1].page_token, 'x')
        one = self.run_method(client.model, 'c')
        self.assertEqual((one.name, one.labels, one.input_sizes), ('c', ('cup',), ((2, 3),)))

    def test_health(self):
        client = self.connect(self.serve(_messages.HealthCheckResponse(status=1),
                                         _messages.HealthCheckResponse(status=2), UNAVAILABLE))
        self.assertIs(self.run_method(client.health), True)
        self.assertIs(self.run_method(client.health, 'liveness'), False)
        self.failure(client.health)
        self.assertEqual([request.service for request in self.server.requests],
                         ['sfmamba.v1.VisionService', 'liveness', 'sfmamba.v1.VisionService'])

    def test_a_server_that_drains_is_asked_if_there_is_no_other(self):
        client = self.connect(self.serve(named('a'), serving=False))
        self.assertEqual(self.run_method(client.classify, b'').labels, ('a',))

    def test_states_of_a_server_are_said_in_a_sentence(self):
        for answer, says in [
                (error_info('DRAINING'), 'the server at 127.0.0.1:.* is draining'),
                (error_info('MODEL_NOT_READY', state='LOADING'),
                 'the server at 127.0.0.1:.* is loading: told so')]:
            for serving in (True, False):
                client = self.connect(self.serve((grpc.StatusCode.UNAVAILABLE, answer),
                                                 serving=serving))
                self.assertRegex(str(self.failure(client.classify, b'')), says)

    def test_no_server(self):
        address = self.serve(named('a'))
        self.server.stop()
        error = self.failure(self.connect(address).classify, b'')
        self.assertEqual(error.code, grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(error.message, f'nothing listens at {address}')
        error = self.failure(self.connect('no-such-host.invalid:1').classify, b'')
        self.assertEqual(error.message, 'the host of no-such-host.invalid:1 is unknown')

    def test_tokens_that_are_not_accepted(self):
        answer = (grpc.StatusCode.UNAUTHENTICATED, error_info('TOKEN_INVALID'))
        for arguments, says in [({}, 'expects a token'),
                                ({'token': 'old'}, 'does not accept the token')]:
            client = self.connect(self.serve(answer), **arguments)
            self.assertRegex(str(self.failure(client.classify, b'')),
                             f'UNAUTHENTICATED.*the server at 127.0.0.1:.*{says}')

    def test_a_token(self):
        client = self.connect(self.serve(named('a')), token='secret')
        self.run_method(client.classify, b'')
        self.assertEqual(self.server.metadata[0]['authorization'], 'Bearer secret')

    def test_a_token_that_changes(self):
        tokens = ['first', 'second']
        client = self.connect(self.serve(named('a')), token=lambda: tokens.pop(0))
        for _ in range(2):
            self.run_method(client.classify, b'')
        self.assertEqual([metadata['authorization'] for metadata in self.server.metadata],
                         ['Bearer first', 'Bearer second'])

    def test_a_token_goes_to_no_other_machine_in_clear(self):
        for server in ('10.0.0.1:8001', 'dns:///vision.example.org:443', 'localhost.example.org:1'):
            with self.assertRaisesRegex(ValueError, 'without TLS') as raised:
                self.connect(server, token='secret')
            self.assertNotIn('secret', str(raised.exception))
            self.connect(server, token='secret', tls=True)
            self.connect(server, token='secret', plaintext_token=True)

    def test_a_token_that_cannot_be_sent(self):
        for token in ('', 'a b', 'secret\n', 'sécret'):
            with self.assertRaisesRegex(ValueError, 'visible ASCII') as raised:
                self.connect('localhost:1', token=token)
            self.assertNotIn('cret', str(raised.exception))
        client = self.connect(self.serve(named('a')), token=lambda: 'secret\n')
        with self.assertRaisesRegex(ValueError, 'visible ASCII'):
            self.run_method(client.classify, b'')

    def test_tls(self):
        keys = certificates(self)
        client = self.connect(self.serve(named('a'), credentials=grpc.ssl_server_credentials(
            [(keys['server.key'], keys['server.crt'])], keys['root.crt'], True)),
            root_certificates=keys['root.crt'], private_key=keys['client.key'],
            certificate_chain=keys['client.crt'])
        self.assertEqual(self.run_method(client.classify, b'').labels, ('a',))
        for arguments, says in (({}, 'does it expect TLS'), ({'tls': True}, 'root_certificates'),
                                ({'root_certificates': keys['root.crt']}, 'certificate')):
            stranger = self.connect(self.server.address, **arguments)
            error = self.failure(stranger.classify, b'')
            self.assertEqual(error.code, grpc.StatusCode.UNAVAILABLE)
            self.assertRegex(error.message, f'the server at 127.0.0.1:[^ ]*.*{says}')
        with self.assertRaisesRegex(ValueError, 'belong together'):
            self.connect(self.server.address, private_key=b'x')

    def test_whom_the_certificate_is_for(self):
        keys = certificates(self, name='DNS:localhost')
        server = self.serve(named('a'), credentials=grpc.ssl_server_credentials(
            [(keys['server.key'], keys['server.crt'])]))
        roots = {'root_certificates': keys['root.crt']}
        stranger = self.connect(server, **roots)
        self.assertRegex(self.failure(stranger.classify, b'').message, 'is for another name')
        client = self.connect(server, server_name='localhost', **roots)
        self.assertEqual(self.run_method(client.classify, b'').labels, ('a',))
        with self.assertRaisesRegex(ValueError, 'server_name'):
            self.connect(server, server_name='localhost')

    def test_a_server_without_tls(self):
        client = self.connect(self.serve(named('a')), tls=True)
        self.assertRegex(self.failure(client.classify, b'').message, 'does not speak TLS')

    def test_certificates_that_are_empty(self):
        for arguments in ({'root_certificates': b''},
                          {'private_key': b'', 'certificate_chain': b'x'}):
            with self.assertRaisesRegex(ValueError, 'empty'):
                self.connect('localhost:1', **arguments)


class ClientTest(Blocking, Cases, unittest.TestCase):
    def test_close_ends_calls(self):
        client = self.connect(self.serve(named('a')))
        self.server.release.clear()
        ended = []
        call = threading.Thread(target=lambda: ended.append(self.failure(client.classify, b'')))
        call.start()
        self.server.came.acquire()
        client.close()
        call.join()
        self.assertEqual(ended[0].code, grpc.StatusCode.CANCELLED)

    def test_leaving_map_early(self):
        client = self.connect(self.serve(by_bytes))
        for answer in client.map(client.classify, [b'a'] * 1000, in_flight=2):
            self.assertEqual(answer.labels, ('a',))
            break
        self.assertLessEqual(len(self.server.requests), 2)


class AsyncClientTest(Asyncio, Cases, unittest.TestCase):
    def test_cancelling_the_task_cancels_the_call(self):
        client = self.connect(self.serve(named('a')))
        self.server.release.clear()

        async def cancelled():
            task = asyncio.create_task(client.classify(b''))
            await asyncio.to_thread(self.server.came.acquire)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        self.loop.run_until_complete(cancelled())

    def test_cancelling_map_cancels_its_calls(self):
        client = self.connect(self.serve(named('a')))
        self.server.release.clear()
        cancelled = []

        async def watched(image):
            try:
                return await client.classify(image)
            except asyncio.CancelledError:
                cancelled.append(image)
                raise

        async def left():
            mapping = client.map(watched, [b'a', b'b', b'c'], in_flight=3)
            first = asyncio.ensure_future(mapping.__anext__())
            for _ in range(3):
                await asyncio.to_thread(self.server.came.acquire)
            first.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await first
        self.loop.run_until_complete(left())
        self.assertEqual(sorted(cancelled), [b'a', b'b', b'c'])

    def test_one_client_serves_several_loops(self):
        client = AsyncClient(self.serve(by_bytes))

        async def labels():
            answers = [answer.labels[0] async for answer in client.map(client.classify, [b'a', b'b'])]
            stranger = await asyncio.to_thread(lambda: asyncio.run(client.classify(b'c')))
            return [*answers, *stranger.labels, *(await client.classify(b'd')).labels]

        with warnings.catch_warnings():
            warnings.simplefilter('error')
            for _ in range(3):
                self.assertEqual(asyncio.run(labels()), list('abcd'))
        asyncio.run(client.close())

    def test_many_at_a_time(self):
        client = self.connect(self.serve(by_bytes))

        async def gathered():
            return await asyncio.gather(*(client.classify(bytes([n])) for n in range(50)))
        answers = self.loop.run_until_complete(gathered())
        self.assertEqual([answer.labels[0] for answer in answers], [chr(n) for n in range(50)])


def certificates(test, name='IP:127.0.0.1'):
    """Makes keys and certificates of a root, of a client and of a server with the alternative name
    `name`. Returns their contents by file name."""
    temporary = tempfile.TemporaryDirectory()
    test.addCleanup(temporary.cleanup)
    folder = pathlib.Path(temporary.name)

    def openssl(*arguments):
        subprocess.run(['openssl', *arguments], cwd=folder, check=True, capture_output=True)

    new = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
    openssl(*new, '-x509', '-subj', '/CN=root', '-days', '2', '-keyout', 'root.key',
            '-out', 'root.crt')
    (folder / 'extensions').write_text(f'subjectAltName={name}\n')
    for peer in ('server', 'client'):
        openssl(*new, '-subj', f'/CN={peer}', '-keyout', f'{peer}.key', '-out', f'{peer}.csr')
        openssl('x509', '-req', '-in', f'{peer}.csr', '-CA', 'root.crt', '-CAkey', 'root.key',
                '-CAcreateserial', '-days', '2', '-extfile', 'extensions', '-out', f'{peer}.crt')
    return {path.name: path.read_bytes() for path in folder.iterdir()}


if __name__ == '__main__':
    unittest.main()
