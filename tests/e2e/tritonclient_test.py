"""Tests the unmodified tritonclient on the real server with the default models.

The package is fetched by deploy/setup.sh --interop.
"""

import contextlib
import io
import pathlib
import queue
import re
import unittest

import numpy
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from model_server import SAMPLES, Server, wait_until

MODEL = 'everyday'
SIDE = 160
CLASSES = 20


def tensor(values):
    image = triton.InferInput('image', values.shape, 'FP32')
    image.set_data_from_numpy(values)
    return image


def pictures(*names):
    files = numpy.array([(SAMPLES / name).read_bytes() for name in names], dtype=numpy.object_)
    image = triton.InferInput('image', [len(names)], 'BYTES')
    image.set_data_from_numpy(files)
    return image


class Stream:
    """Opens a stream with its own client. The stream ends with the `with` block."""

    def __init__(self, address, headers=None):
        self._client = triton.InferenceServerClient(address)
        self._came = queue.Queue()
        self._client.start_stream(lambda result, error: self._came.put((result, error)),
                                  stream_timeout=120, headers=headers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._client.close()

    def send(self, model, image, **options):
        self._client.async_stream_infer(model, [image], **options)

    def next(self):
        """Waits for the next answer. Returns (result, error), one of which is None."""
        return self._came.get(timeout=60)

    def stop(self, cancel_requests):
        self._client.stop_stream(cancel_requests=cancel_requests)


class TritonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.client = triton.InferenceServerClient(cls.server.address)
        cls.addClassCleanup(cls.client.close)

    def test_is_live_and_ready(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready(MODEL))
        self.assertFalse(self.client.is_model_ready('other'))

    def test_the_example_of_the_page(self):
        page = pathlib.Path('docs/clients.md').read_text(encoding='utf-8')
        [example] = re.findall(r'^```python\n(import numpy, tritonclient.*?)^```$', page,
                               re.M | re.S)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(example.replace('127.0.0.1:8001', self.server.address), {})
        self.assertRegex(said.getvalue(), r"^\[\[b'8\.2\d+:872:tripod'\]\]$")

    def test_describes_itself(self):
        self.assertIn('statistics', self.client.get_server_metadata().extensions)
        metadata = self.client.get_model_metadata(MODEL, as_json=True)
        self.assertEqual(metadata['inputs'], [
            {'name': 'image', 'datatype': 'FP32', 'shape': ['-1', '3', str(SIDE), str(SIDE)]}])
        self.assertEqual(metadata['outputs'][0],
                         {'name': 'logits', 'datatype': 'FP32', 'shape': ['-1', str(CLASSES)]})
        config = self.client.get_model_config(MODEL, as_json=True)['config']
        self.assertGreater(config['max_batch_size'], 0)
        self.assertEqual(config['input'][0]['data_type'], 'TYPE_FP32')
        self.assertIn('dynamic_batching', config)

    def test_infers_tensors(self):
        values = numpy.random.default_rng(1).standard_normal((2, 3, SIDE, SIDE))
        values = values.astype(numpy.float32)
        result = self.client.infer(MODEL, [tensor(values)], request_id='seven')
        logits = result.as_numpy('logits')
        self.assertEqual(logits.shape, (2, CLASSES))
        self.assertEqual(result.get_response().id, 'seven')
        # The answer to an image does not depend on the other images of its request.
        one = self.client.infer(MODEL, [tensor(values[1:])]).as_numpy('logits')
        numpy.testing.assert_array_equal(one[0], logits[1])

    def test_infers_pictures(self):
        names = ['render_01.jpg', 'chelsea.jpg']
        wanted = [triton.InferRequestedOutput('logits', class_count=1)]
        best = self.client.infer(MODEL, [pictures(*names)], outputs=wanted).as_numpy('logits')
        self.assertEqual(best.shape, (2, 1))
        logits = self.client.infer(MODEL, [pictures(*names)]).as_numpy('logits')
        labels = pathlib.Path('models/everyday/1/labels.txt').read_text().splitlines()
        for i in range(2):
            value, index, label = best[i, 0].decode().split(':')
            self.assertEqual(int(index), logits[i].argmax())
            self.assertEqual(label, labels[int(index)])
            self.assertAlmostEqual(float(value), logits[i].max(), places=5)

    def test_detects_and_segments(self):
        result = self.client.infer('everyday_detector', [pictures('render_01.jpg')])
        count = result.as_numpy('num_detections')[0, 0]
        self.assertGreater(count, 0)
        boxes = result.as_numpy('boxes')
        self.assertEqual(boxes.shape[0::2], (1, 4))
        self.assertTrue((result.as_numpy('scores')[0, :count] > 0).all())
        self.assertFalse(boxes[0, count:].any())
        result = self.client.infer('everyday_segmenter', [pictures('render_01.jpg')])
        self.assertEqual(result.as_numpy('class_map').dtype, numpy.uint8)

    def test_errors_name_the_field(self):
        with self.assertRaises(InferenceServerException) as raised:
            self.client.infer(MODEL, [tensor(numpy.zeros((1, 3, 8, 8), numpy.float32))])
        self.assertIn('INVALID_ARGUMENT', raised.exception.status())
        self.assertIn('inputs[0][0].tensor.shape', raised.exception.message())

    def test_parameters(self):
        zeros = tensor(numpy.zeros((1, 3, SIDE, SIDE), numpy.float32))
        self.client.infer(MODEL, [zeros], priority=1, timeout=10_000_000)
        with self.assertRaises(InferenceServerException):
            self.client.infer(MODEL, [zeros], sequence_id=7, sequence_start=True)

    def test_statistics(self):
        def statistics():
            answer = self.client.get_inference_statistics(MODEL)
            return answer.model_stats[0]
        before = statistics()
        self.client.infer(MODEL, [tensor(numpy.zeros((3, 3, SIDE, SIDE), numpy.float32))])
        after = statistics()
        self.assertEqual(after.inference_count - before.inference_count, 3)
        self.assertEqual(after.inference_stats.success.count - before.inference_stats.success.count,
                         1)
        self.assertGreater(after.execution_count, before.execution_count)

    def test_index(self):
        models = self.client.get_model_repository_index().models
        self.assertEqual([model.name for model in models],
                         ['everyday', 'everyday_detector', 'everyday_segmenter',
                          'photographs'])
        self.assertEqual({model.state for model in models}, {'READY'})

    def test_streams_several_hundred_requests(self):
        values = numpy.random.default_rng(2).standard_normal((4, 1, 3, SIDE, SIDE))
        values = values.astype(numpy.float32)
        logits = [self.client.infer(MODEL, [tensor(image)]).as_numpy('logits')
                  for image in values]
        with Stream(self.server.address) as stream:
            for i in range(300):
                stream.send(MODEL, tensor(values[i % 4]), request_id=str(i))
            answered = set()
            for _ in range(300):
                result, error = stream.next()
                self.assertIsNone(error)
                i = int(result.get_response().id)
                answered.add(i)
                numpy.testing.assert_array_equal(result.as_numpy('logits'), logits[i % 4])
        self.assertEqual(answered, set(range(300)))

    def test_streams_of_all_models_in_order(self):
        # Requests without an id are answered in the order in which they were sent.
        with Stream(self.server.address) as stream:
            for model in ('everyday_detector', MODEL, 'everyday_segmenter', MODEL):
                stream.send(model, pictures('render_01.jpg'))
            for name in ('boxes', 'logits', 'class_map', 'logits'):
                result, error = stream.next()
                self.assertIsNone(error)
                self.assertIsNotNone(result.as_numpy(name))
            stream.stop(cancel_requests=False)

    def test_a_streams_error_is_of_one_request(self):
        with Stream(self.server.address) as stream:
            stream.send('other', pictures('render_01.jpg'), request_id='wrong')
            result, error = stream.next()
            self.assertIsNone(result)
            self.assertIn('NOT_FOUND', error.message())
            self.assertIn('wrong', error.message())
            stream.send(MODEL, pictures('render_01.jpg'), request_id='right',
                        enable_empty_final_response=True)
            result, error = stream.next()
            self.assertIsNone(error)
            parameters = result.get_response().parameters
            self.assertTrue(parameters['triton_final_response'].bool_param)

    def test_a_streams_error_ends_it_if_asked(self):
        with Stream(self.server.address, {'triton_grpc_error': 'true'}) as stream:
            stream.send('other', pictures('render_01.jpg'))
            _, error = stream.next()
            self.assertIn('NOT_FOUND', error.status())

    def test_a_stream_is_cancelled(self):
        with Stream(self.server.address) as stream:
            for i in range(100):
                stream.send('everyday_detector', pictures('render_01.jpg'), request_id=str(i))
            stream.next()
            stream.stop(cancel_requests=True)
        # The server must answer other callers again.
        self.assertIsNotNone(self.client.infer(MODEL, [pictures('render_01.jpg')]))

    def test_models_stay(self):
        with self.assertRaises(InferenceServerException) as raised:
            self.client.unload_model(MODEL)
        self.assertIn('FAILED_PRECONDITION', raised.exception.status())

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
            self.assertIn('UNIMPLEMENTED', raised.exception.status())
            self.assertEqual(raised.exception.message(),
                             'shared memory was removed: send tensors in the request')


class ModelControlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server('--model_control=explicit')
        cls.addClassCleanup(cls.server.close)
        cls.client = triton.InferenceServerClient(cls.server.address)
        cls.addClassCleanup(cls.client.close)

    def state_of(self, name):
        return {model.name: model.state
                for model in self.client.get_model_repository_index().models}.get(name)

    def test_unloads_and_loads(self):
        self.client.unload_model('everyday_segmenter', unload_dependents=True)
        self.assertFalse(self.client.is_model_ready('everyday_segmenter'))
        # The model stays UNLOADING until its last request has ended.
        wait_until(lambda: self.state_of('everyday_segmenter') == 'UNAVAILABLE')
        self.assertTrue(self.client.is_model_ready(MODEL))
        self.client.load_model('everyday_segmenter')
        self.assertTrue(self.client.is_model_ready('everyday_segmenter'))
        self.assertEqual(self.state_of('everyday_segmenter'), 'READY')

    def test_files_and_configurations_are_refused(self):
        for parameters in ({'files': {'file:1/model.safetensors': b'x'}, 'config': '{}'},
                           {'config': '{"max_batch_size": 3}'}):
            with self.assertRaises(InferenceServerException) as raised:
                self.client.load_model(MODEL, **parameters)
            self.assertIn('UNIMPLEMENTED', raised.exception.status())
        with self.assertRaises(InferenceServerException) as raised:
            self.client.load_model('other')
        self.assertIn('NOT_FOUND', raised.exception.status())
        self.assertTrue(self.client.is_model_ready(MODEL))


if __name__ == '__main__':
    unittest.main()
