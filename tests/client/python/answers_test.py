"""Tests how class maps, PNGs and results become arrays."""

import random
import struct
import unittest
import zlib

import grpc
import numpy as np
from rle_test import compress, counts_of

from sfmamba import VisionError, _answers, _messages


def class_rles(class_map):
    height, width = class_map.shape
    return _messages.SegmentResponse(results=[{'rle': {'classes': [
        {'class_id': int(number),
         'rle': {'height': height, 'width': width,
                 'counts': compress(counts_of(class_map == number))}}
        for number in np.unique(class_map) if number >= 0]}}]).results[0].rle.classes


class ClassMapTest(unittest.TestCase):
    def test_random_maps(self):
        random.seed(2)
        for _ in range(100):
            height, width = random.randint(1, 30), random.randint(1, 30)
            expected = np.array([[random.randint(-1, 5) for _ in range(width)]
                                 for _ in range(height)], np.int32)
            expected[:random.randint(0, height), :random.randint(0, width)] = 3
            decoded = _answers.class_map(class_rles(expected), height, width)
            np.testing.assert_array_equal(decoded, expected)
            self.assertEqual(decoded.dtype, np.int32)

    def test_one_class_or_none(self):
        for number in (0, 700, -1):
            expected = np.full((3, 4), number)
            np.testing.assert_array_equal(
                _answers.class_map(class_rles(expected), 3, 4), expected)

    def test_refuses(self):
        whole = class_rles(np.zeros((3, 4), int))
        part = class_rles(np.array([[1, -1, -1, 1]] * 3))
        with self.assertRaisesRegex(ValueError, 'overlap'):
            _answers.class_map([*whole, *part], 3, 4)
        with self.assertRaisesRegex(ValueError, 'another size'):
            _answers.class_map(whole, 4, 3)


def png(pixels, colour=0, kind=0):
    """Returns a PNG whose lines have the filter `kind`."""
    def chunk(name, body):
        return struct.pack('>I', len(body)) + name + body + struct.pack('>I',
                                                                        zlib.crc32(name + body))
    height, width = pixels.shape
    lines = b''.join(bytes([kind]) + row.tobytes() for row in pixels)
    return (b'\x89PNG\r\n\x1a\n'
            + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, colour, 0, 0, 0))
            + chunk(b'IDAT', zlib.compress(lines)) + chunk(b'IEND', b''))


class GreyPngTest(unittest.TestCase):
    def test_a_png_without_filters(self):
        pixels = np.random.default_rng(3).integers(0, 256, (3, 5), np.uint8)
        np.testing.assert_array_equal(_answers.grey_png(png(pixels), 3, 5), pixels)

    def test_refuses(self):
        pixels = np.zeros((3, 5), np.uint8)
        good = png(pixels)
        for data, height in [(b'', 3), (good[:20], 3), (good, 4), (good, 2), (b'x' + good, 3),
                             (png(pixels, colour=2), 3), (png(pixels, kind=1), 3),
                             (good.replace(b'IDAT', b'tEXt'), 3)]:
            with self.assertRaises(ValueError):
                _answers.grey_png(data, height, 5)


class AnswersTest(unittest.TestCase):
    def test_detections_without_objects(self):
        response = _messages.DetectResponse(
            results=[{'image_width': 5, 'image_height': 4}], model='models/a/versions/1')
        [found] = _answers.answers(response, _answers.detections, 1)
        self.assertEqual((len(found), found.boxes.shape, found.masks.shape), (0, (0, 4), (0, 4, 5)))
        self.assertEqual((found.model, found.timing), ('models/a/versions/1', None))

    def detections(self, *rles):
        response = _messages.DetectResponse(results=[{
            'image_width': 4, 'image_height': 3, 'detections': [
                {'box': {'x_min': 1, 'y_min': 0.5, 'x_max': 3, 'y_max': 2}, 'class_id': 7,
                 'label': 'cup', 'score': 0.5,
                 **({'rle': {'height': 3, 'width': 4, 'counts': rle}} if rle else {})}
                for rle in rles]}])
        [found] = _answers.answers(response, _answers.detections, 1)
        return found

    def test_detections(self):
        found = self.detections('342M0', '<')
        np.testing.assert_array_equal(found.boxes, [[1, 0.5, 3, 2]] * 2)
        self.assertEqual((found.labels, list(found.class_ids), list(found.scores)),
                         (('cup', 'cup'), [7, 7], [0.5, 0.5]))
        self.assertEqual([found.boxes.dtype, found.scores.dtype, found.class_ids.dtype],
                         [np.float32, np.float32, np.int32])
        self.assertEqual(found.masks.shape, (2, 3, 4))
        self.assertEqual(list(found.masks.sum((1, 2))), [5, 0])
        np.testing.assert_array_equal(found.masks[0], found.mask(0))

    def test_crops(self):
        self.assertEqual(self.detections('342M0').crops, ())
        response = _messages.DetectResponse(results=[{'detections': [
            {'crop': {'categories': [{'class_id': 1, 'label': 'a', 'score': 0.5}]}},
            {'crop': {'error': {'code': 4, 'message': 'late'}}}]}])
        [found] = _answers.answers(response, _answers.detections, 1)
        self.assertEqual(found.crops[0].labels, ('a',))
        self.assertEqual(found.crops[1].code, grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_detections_without_masks(self):
        for rles in [('',), ('342M0', '')]:
            found = self.detections(*rles)
            self.assertEqual((found.rles, found.masks), ((), None))

    def test_a_mask_that_is_malformed(self):
        with self.assertRaises(VisionError) as raised:
            self.detections('9').mask(0)
        self.assertEqual(raised.exception.code, grpc.StatusCode.DATA_LOSS)

    def test_an_error_in_its_place(self):
        response = _messages.ClassifyResponse(results=[
            {'categories': [{'class_id': 1, 'label': 'a', 'score': 0.5}]},
            {'error': {'code': 3, 'message': 'bad'}}])
        good, bad = _answers.answers(response, _answers.classification, 2)
        self.assertEqual((good.labels, list(good.scores), good.embedding), (('a',), [0.5], None))
        self.assertIsInstance(bad, VisionError)
        self.assertEqual((bad.code, bad.message), (grpc.StatusCode.INVALID_ARGUMENT, 'bad'))

    def test_a_heat_map(self):
        response = _messages.ClassifyResponse(results=[
            {'heat_map': {'class_id': 3, 'width': 3, 'height': 2, 'values': range(6)}}])
        [answer] = _answers.answers(response, _answers.classification, 1)
        self.assertEqual(answer.heat_map.class_id, 3)
        np.testing.assert_array_equal(answer.heat_map.values, [[0, 1, 2], [3, 4, 5]])
        response.results[0].heat_map.width = 4
        [answer] = _answers.answers(response, _answers.classification, 1)
        self.assertEqual(answer.code, grpc.StatusCode.DATA_LOSS)

    def test_a_map_that_is_malformed(self):
        response = _messages.SegmentResponse(results=[{'width': 4, 'height': 3, 'rle': {
            'classes': [{'rle': {'height': 3, 'width': 4, 'counts': '9'}}]}}])
        [answer] = _answers.answers(response, _answers.segmentation, 1)
        self.assertEqual(answer.code, grpc.StatusCode.DATA_LOSS)

    def test_too_few_answers(self):
        with self.assertRaisesRegex(VisionError, '0 results for 1 pictures'):
            _answers.answers(_messages.ClassifyResponse(), _answers.classification, 1)

    def test_timing(self):
        response = _messages.ClassifyResponse(results=[{}], timing={
            'decode': {'nanos': 1_500_000}, 'total': {'seconds': 2}, 'batch_size': 3,
            'device': 'cpu'})
        [answer] = _answers.answers(response, _answers.classification, 1)
        self.assertEqual((answer.timing.decode, answer.timing.total, answer.timing.batch_size,
                          answer.timing.device), (0.0015, 2, 3, 'cpu'))


if __name__ == '__main__':
    unittest.main()
