"""Tests that the unmodified tritonclient gets the same answers over HTTP as over gRPC.

The package is fetched by deploy/setup.sh --interop.
"""

import asyncio
import http.client
import json
import time
import unittest

import numpy
import tritonclient.grpc
import tritonclient.http as triton
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

from model_server import PATIENCE, SAMPLES, Server, wait_until

MODEL = 'everyday'
SIDE = 160
CLASSES = 20


def tensor(values, module=triton, **how):
    image = module.InferInput('image', values.shape, 'FP32')
    image.set_data_from_numpy(values, **how)
    return image


def pictures(*names, module=triton):
    files = numpy.array([(SAMPLES / name).read_bytes() for name in names], dtype=numpy.object_)
    image = module.InferInput('image', [len(names)], 'BYTES')
    image.set_data_from_numpy(files)
    return image


def random_images(count, seed=1):
    values = numpy.random.default_rng(seed).standard_normal((count, 3, SIDE, SIDE))
    return values.astype(numpy.float32)


class TritonClientHttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.client = triton.InferenceServerClient(cls.server.http_address)
        cls.addClassCleanup(cls.client.close)
        cls.grpc = tritonclient.grpc.InferenceServerClient(cls.server.address)
        cls.addClassCleanup(cls.grpc.close)

    def test_is_live_and_ready(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready(MODEL))
        self.assertTrue(self.client.is_model_ready(MODEL, '1'))
        self.assertFalse(self.client.is_model_ready('other'))

    def test_describes_itself(self):
        extensions = self.client.get_server_metadata()['extensions']
        self.assertIn('binary_tensor_data', extensions)
        self.assertIn('statistics', extensions)
        metadata = self.client.get_model_metadata(MODEL)
        self.assertEqual(metadata['inputs'], [
            {'name': 'image', 'datatype': 'FP32', 'shape': [-1, 3, SIDE, SIDE]}])
        self.assertEqual(metadata['outputs'][0],
                         {'name': 'logits', 'datatype': 'FP32', 'shape': [-1, CLASSES]})
        config = self.client.get_model_config(MODEL)
        self.assertGreater(config['max_batch_size'], 0)
        self.assertEqual(config['input'][0]['dims'], [3, SIDE, SIDE])
        self.assertEqual(config['input'][0]['data_type'], 'TYPE_FP32')
        self.assertIn('dynamic_batching', config)

    def check_same(self, model, make_input, outputs):
        """Checks that binary data and JSON contain the same bits as the answer over gRPC."""
        expected = self.grpc.infer(model, [make_input(tritonclient.grpc)])
        binary = self.client.infer(model, [make_input(triton)])
        wanted = [triton.InferRequestedOutput(name, binary_data=False) for name in outputs]
        text = self.client.infer(model, [make_input(triton)], outputs=wanted)
        for name in outputs:
            with self.subTest(model=model, output=name):
                for result in (binary, text):
                    values = result.as_numpy(name)
                    self.assertEqual(values.dtype, expected.as_numpy(name).dtype)
                    numpy.testing.assert_array_equal(values, expected.as_numpy(name))
        self.assertIn('data', text.get_output(outputs[0]))
        self.assertNotIn('data', binary.get_output(outputs[0]))
        return binary

    def test_tensors_have_the_bits_of_grpc(self):
        values = random_images(3)
        self.check_same(MODEL, lambda module: tensor(values, module), ['logits', 'embedding'])

    def test_pictures_have_the_bits_of_grpc(self):
        picture = lambda module: pictures('render_01.jpg', module=module)
        self.check_same(MODEL, picture, ['logits', 'embedding'])
        found = self.check_same('everyday_detector', picture,
                                ['num_detections', 'boxes', 'scores', 'classes'])
        self.assertGreater(found.as_numpy('num_detections')[0, 0], 0)
        self.check_same('everyday_segmenter', picture, ['class_map'])

    def test_json_tensors_are_the_same(self):
        values = random_images(1, seed=2)
        binary = self.client.infer(MODEL, [tensor(values)], request_id='seven')
        text = self.client.infer(MODEL, [tensor(values, binary_data=False)])
        numpy.testing.assert_array_equal(text.as_numpy('logits'), binary.as_numpy('logits'))
        self.assertEqual(binary.get_response()['id'], 'seven')
        self.assertEqual(binary.get_response()['model_version'], '1')

    def test_names_the_best_classes(self):
        image = pictures('render_01.jpg', 'chelsea.jpg')
        logits = self.client.infer(MODEL, [image]).as_numpy('logits')
        for binary in (True, False):
            wanted = [triton.InferRequestedOutput('logits', binary_data=binary, class_count=2)]
            best = self.client.infer(MODEL, [image], outputs=wanted).as_numpy('logits')
            self.assertEqual(best.shape, (2, 2))
            for i in range(2):
                text = best[i, 0]
                value, index, _ = (text.decode() if binary else text).split(':')
                self.assertEqual(int(index), logits[i].argmax())
                self.assertAlmostEqual(float(value), logits[i].max(), places=5)

    def test_a_picture_is_a_body(self):
        expected = self.client.infer(MODEL, [pictures('chelsea.jpg')]).as_numpy('logits')
        for headers in ({'Inference-Header-Content-Length': '0'}, {}):
            connection = http.client.HTTPConnection(self.server.http_address, timeout=PATIENCE)
            connection.request('POST', f'/v2/models/{MODEL}/infer',
                               (SAMPLES / 'chelsea.jpg').read_bytes(), headers)
            answer = json.load(connection.getresponse())
            connection.close()
            numpy.testing.assert_array_equal(
                numpy.array(answer['outputs'][0]['data'], numpy.float32), expected[0])

    def test_errors_name_the_field(self):
        with self.assertRaises(InferenceServerException) as raised:
            self.client.infer(MODEL, [tensor(numpy.zeros((1, 3, 8, 8), numpy.float32))])
        self.assertEqual(raised.exception.status(), '400')
        self.assertIn('inputs[0][0].tensor.shape', raised.exception.message())
        with self.assertRaises(InferenceServerException) as raised:
            self.client.infer('other', [tensor(random_images(1))])
        self.assertEqual(raised.exception.status(), '404')

    def test_requests_may_be_compressed_and_answers_are_not(self):
        values = random_images(2)
        expected = self.client.infer(MODEL, [tensor(values)]).as_numpy('logits')
        for packing in ('gzip', 'deflate'):
            result = self.client.infer(MODEL, [tensor(values)],
                                       request_compression_algorithm=packing)
            numpy.testing.assert_array_equal(result.as_numpy('logits'), expected)
        result = self.client.infer(MODEL, [tensor(random_images(1))],
                                   response_compression_algorithm='gzip')
        self.assertEqual(result.as_numpy('logits').shape, (1, CLASSES))

    def test_parameters(self):
        image = tensor(random_images(1))
        self.client.infer(MODEL, [image], priority=1, timeout=10_000_000)
        with self.assertRaises(InferenceServerException):
            self.client.infer(MODEL, [image], sequence_id=7, sequence_start=True)
        with self.assertRaises(InferenceServerException) as raised:
            self.client.infer(MODEL, [image], headers={'X-Request-Timeout': 'soon'})
        self.assertIn('timeout', raised.exception.message())

    def test_statistics(self):
        def statistics():
            return self.client.get_inference_statistics(MODEL)['model_stats'][0]
        before = statistics()
        self.client.infer(MODEL, [tensor(random_images(3))])
        after = statistics()
        self.assertEqual(after['inference_count'] - before['inference_count'], 3)
        self.assertEqual(after['inference_stats']['success']['count']
                         - before['inference_stats']['success']['count'], 1)
        self.assertEqual(len(self.client.get_inference_statistics()['model_stats']), 4)

    def test_index(self):
        models = self.client.get_model_repository_index()
        self.assertEqual([model['name'] for model in models],
                         ['everyday', 'everyday_detector', 'everyday_segmenter',
                          'photographs'])
        self.assertEqual({model['state'] for model in models}, {'READY'})

    def test_models_stay(self):
        for call in (self.client.load_model, self.client.unload_model):
            with self.assertRaises(InferenceServerException) as raised:
                call(MODEL)
            self.assertEqual(raised.exception.status(), '400')
        self.assertEqual(self.client.get_trace_settings(), {})

    def test_shared_memory_was_removed(self):
        image = triton.InferInput('image', [1, 3, SIDE, SIDE], 'FP32')
        image.set_shared_memory('region', 4)
        for call in (lambda: self.client.register_system_shared_memory('region', '/key', 4),
                     self.client.get_system_shared_memory_status,
                     self.client.unregister_system_shared_memory,
                     lambda: self.client.register_cuda_shared_memory('region', b'aGFuZGxl', 0, 4),
                     self.client.get_cuda_shared_memory_status,
                     self.client.unregister_cuda_shared_memory,
                     lambda: self.client.infer(MODEL, [image])):
            with self.assertRaises(InferenceServerException) as raised:
                call()
            self.assertEqual(raised.exception.status(), '501')
            self.assertEqual(raised.exception.message(),
                             'shared memory was removed: send tensors in the request')

    def test_a_hundred_at_once(self):
        values = random_images(10)
        expected = self.client.infer(MODEL, [tensor(values)]).as_numpy('logits')
        with triton.InferenceServerClient(self.server.http_address, concurrency=100,
                                          network_timeout=PATIENCE) as client:
            waiting = [client.async_infer(MODEL, [tensor(values[i % 10:i % 10 + 1])])
                       for i in range(200)]
            for i, answer in enumerate(waiting):
                numpy.testing.assert_array_equal(
                    answer.get_result(timeout=PATIENCE).as_numpy('logits')[0], expected[i % 10])

    def test_a_hundred_at_once_by_asyncio(self):
        values = random_images(10)
        expected = self.client.infer(MODEL, [tensor(values)]).as_numpy('logits')

        async def ask():
            async with tritonclient.http.aio.InferenceServerClient(
                    self.server.http_address, conn_limit=100) as client:
                return await asyncio.gather(*(
                    client.infer(MODEL, [tensor(values[i % 10:i % 10 + 1])]) for i in range(200)))

        for i, answer in enumerate(asyncio.run(ask())):
            numpy.testing.assert_array_equal(answer.as_numpy('logits')[0], expected[i % 10])

    def value_of(self, name, **labels):
        """Returns the sum of the metric over all series that have these labels."""
        connection = http.client.HTTPConnection(self.server.http_address, timeout=PATIENCE)
        connection.request('GET', '/metrics')
        text = connection.getresponse().read().decode()
        connection.close()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(float(line.rsplit(' ', 1)[1]) for line in text.splitlines()
                   if line.startswith(name + '{') and all(label in line for label in wanted))

    def test_who_closes_the_connection_disturbs_nobody(self):
        """Checks that requests are still answered after their client has closed the connection.

        The server must answer, because TCP does not tell whether such a client still reads.
        """
        def in_flight():
            return self.value_of('sfmamba_in_flight_requests', method='ModelInfer')

        async def ask_and_go():
            async with tritonclient.http.aio.InferenceServerClient(
                    self.server.http_address, conn_limit=100) as client:
                asked = [asyncio.ensure_future(client.infer(
                    'everyday_detector', [pictures('render_01.jpg')])) for _ in range(60)]
                end = time.monotonic() + PATIENCE
                while in_flight() < 30:
                    self.assertLess(time.monotonic(), end, 'the requests do not come')
                    await asyncio.sleep(0)
                for one in asked:
                    one.cancel()
                await asyncio.gather(*asked, return_exceptions=True)

        asyncio.run(ask_and_go())
        wait_until(lambda: in_flight() == 0)
        self.client.infer(MODEL, [tensor(random_images(1))])


class ModelControlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server('--model_control=explicit')
        cls.addClassCleanup(cls.server.close)
        cls.client = triton.InferenceServerClient(cls.server.http_address, network_timeout=120)
        cls.addClassCleanup(cls.client.close)

    def test_unloads_and_loads(self):
        self.client.unload_model('everyday_segmenter', unload_dependents=True)
        self.assertFalse(self.client.is_model_ready('everyday_segmenter'))
        # The model stays UNLOADING until its last request has ended.
        wait_until(lambda: ('everyday_segmenter', 'UNAVAILABLE') in self.index())
        self.client.load_model('everyday_segmenter')
        self.assertTrue(self.client.is_model_ready('everyday_segmenter'))
        self.assertIn(('everyday_segmenter', 'READY'), self.index())

    def index(self):
        return [(model['name'], model['state'])
                for model in self.client.get_model_repository_index()]

    def test_files_and_configurations_are_refused(self):
        for parameters in ({'files': {'file:1/model.safetensors': b'x'}, 'config': '{}'},
                           {'config': '{"max_batch_size": 3}'}):
            with self.assertRaises(InferenceServerException):
                self.client.load_model(MODEL, **parameters)
        with self.assertRaises(InferenceServerException):
            self.client.load_model('other')
        self.assertTrue(self.client.is_model_ready(MODEL))

    def test_a_page_in_a_browser_is_refused(self):
        for origin in ('http://example.org', f'http://{self.server.http_address}', 'null'):
            connection = http.client.HTTPConnection(self.server.http_address, timeout=PATIENCE)
            connection.request('POST', f'/v2/repository/models/{MODEL}/unload', '{}',
                               {'Origin': origin, 'Content-Type': 'text/plain'})
            self.assertEqual(connection.getresponse().status, 403)
            connection.close()
        self.assertTrue(self.client.is_model_ready(MODEL))


if __name__ == '__main__':
    unittest.main()
