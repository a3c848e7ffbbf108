"""Tests how pictures and parameters become messages, and how lists are divided into requests."""

import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
from PIL import Image

from sfmamba import (Crops, Options, Picture, Resized, Slide, Tiles, _answers, _messages,
                     _requests)
from sfmamba._images import several, to_image

PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


def classifier(resize, resize_size, side=4):
    model = _messages.Model(name='models/m/versions/1', task='CLASSIFICATION')
    model.input.resize, model.input.resize_size = resize, resize_size
    model.input.buckets.add(height=side, width=side)
    return _answers.model_info(model)


class SeveralTest(unittest.TestCase):
    def test_one_picture_is_not_iterated_over(self):
        for one in ('a.jpg', pathlib.Path('a.jpg'), b'a', memoryview(b'a'), io.BytesIO(b'a'),
                    PIXELS, PIXELS[:, :, 0], np.zeros((3, 4, 4), np.float32),
                    Image.fromarray(PIXELS), Picture('a.jpg')):
            with self.subTest(one), self.assertRaisesRegex(TypeError, 'got one picture'):
                several(one)

    def test_several_stay_as_they_are(self):
        for images in (['a.jpg'], iter([b'a']), PIXELS[np.newaxis], np.zeros((2, 8, 8), np.uint8)):
            self.assertIs(several(images), images)


class ResizedTest(unittest.TestCase):
    def test_cuts_the_middle_of_what_is_resized(self):
        wide = np.zeros((12, 22, 3), np.uint8)
        wide[:, 11:] = 255
        for resize, size in [('center_crop', 6), ('stretch', 6), ('center_crop', 4)]:
            tensor = to_image(Resized(wide, classifier(resize, size))).tensor
            self.assertEqual((list(tensor.shape), len(tensor.data)), ([3, 4, 4], 48))
            row = tensor.data[:4]
            self.assertEqual(list(tensor.data), list(row * 12))
            self.assertEqual((row[0], row[3]), (0, 255))

    def test_leaves_what_has_the_size(self):
        tensor = to_image(Resized(PIXELS[:2, :2], classifier('stretch', 2, side=2))).tensor
        self.assertEqual(list(tensor.data), list(PIXELS[:2, :2].transpose(2, 0, 1).ravel()))

    def test_takes_files_and_turns_them(self):
        file = io.BytesIO()
        exif = Image.Exif()
        # Orientation 6 means that the stored left side is the top.
        exif[0x0112] = 6
        Image.fromarray(PIXELS).save(file, 'PNG', exif=exif)
        model = classifier('center_crop', 5)
        turned = to_image(Resized(np.rot90(PIXELS, -1), model))
        self.assertEqual(to_image(Resized(file.getvalue(), model)), turned)
        self.assertEqual(to_image(Resized(Image.open(file), model)), turned)
        file.seek(0)
        self.assertEqual(to_image(Resized(file, model)), turned)

    def test_is_for_classifiers(self):
        with self.assertRaises(ValueError):
            to_image(Resized(PIXELS, classifier('keep_ratio', 0)))

    def test_says_what_to_install(self):
        with mock.patch.dict(sys.modules, {'PIL': None}):
            with self.assertRaisesRegex(ModuleNotFoundError, 'pip install pillow'):
                to_image(Resized(PIXELS, classifier('stretch', 2)))


class ImagesTest(unittest.TestCase):
    def test_encoded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'a.jpg')
            path.write_bytes(b'jpeg')
            with open(path, 'rb') as file:
                for source in (path, str(path), b'jpeg', bytearray(b'jpeg'), memoryview(b'jpeg'),
                               io.BytesIO(b'jpeg'), file):
                    self.assertEqual(to_image(source), _messages.Image(encoded=b'jpeg'))

    def test_pixels(self):
        for array, kind in [(PIXELS, 'RGB8'), (PIXELS[:, :, 0], 'GRAY8'),
                            (PIXELS[:, :, [0, 1, 2, 2]], 'RGBA8'), (PIXELS[:, ::-1], 'RGB8')]:
            pixels = to_image(array).pixels
            self.assertEqual((pixels.height, pixels.width, pixels.row_stride_bytes), (2, 3, 0))
            self.assertEqual(_messages.PixelBuffer.Format.Name(pixels.format), kind)
            self.assertEqual(list(pixels.data), list(array.ravel()))

    def test_a_pil_image(self):
        self.assertEqual(to_image(Image.fromarray(PIXELS)), to_image(PIXELS))
        palette = Image.fromarray(PIXELS).convert('P')
        self.assertEqual(to_image(palette), to_image(np.asarray(palette.convert('RGB'))))

    def test_a_pil_image_is_turned_as_its_exif_data_say(self):
        file = io.BytesIO()
        exif = Image.Exif()
        # Orientation 6 means that the stored left side is the top.
        exif[0x0112] = 6
        Image.fromarray(PIXELS).save(file, 'PNG', exif=exif)
        turned = Image.open(file)
        self.assertEqual(to_image(turned), to_image(np.rot90(PIXELS, -1)))
        self.assertEqual(to_image(Picture(turned)), to_image(np.rot90(PIXELS, -1)))
        as_stored = to_image(Picture(turned, ignore_orientation=True))
        self.assertEqual(as_stored.pixels, to_image(PIXELS).pixels)

    def test_of_16_bit_grey_the_high_byte_is_sent(self):
        deep = np.array([[0x0102, 0xfe01, 0x7fff], [0x8000, 0xffff, 0x00ff]], np.uint16)
        expected = to_image((deep >> 8).astype(np.uint8))
        file = io.BytesIO()
        Image.fromarray(deep).save(file, 'PNG')
        self.assertEqual(to_image(Image.open(file)), expected)
        for mode, kind in [('I;16', '<u2'), ('I;16B', '>u2')]:
            image = Image.frombytes(mode, (3, 2), deep.astype(kind).tobytes())
            self.assertEqual(to_image(image), expected, mode)

    def test_a_tensor(self):
        values = np.arange(12).reshape(2, 2, 3).transpose(2, 0, 1)
        for dtype, name in [('<f4', 'FP32'), ('<f2', 'FP16'), ('>f4', 'FP32')]:
            tensor = to_image(values.astype(dtype)).tensor
            self.assertEqual(_messages.Tensor.DataType.Name(tensor.data_type), name)
            self.assertEqual(list(tensor.shape), [3, 2, 2])
            little = '<f4' if name == 'FP32' else '<f2'
            self.assertEqual(list(np.frombuffer(tensor.data, little)), list(values.ravel()))

    def test_a_part(self):
        image = to_image(Picture(b'jpeg', crop=(0.0, 0.25, 0.5, 1.0), ignore_orientation=True))
        self.assertEqual(image.encoded, b'jpeg')
        self.assertEqual((image.crop.x_min, image.crop.y_min, image.crop.x_max, image.crop.y_max),
                         (0.0, 0.25, 0.5, 1.0))
        self.assertEqual(image.orientation, _messages.Image.IGNORE)

    def test_refuses(self):
        for array in (PIXELS.astype(np.int64), PIXELS.astype(np.float32), PIXELS[np.newaxis],
                      PIXELS[:, :, :2], PIXELS[:0], PIXELS.astype(np.float64).transpose(2, 0, 1)):
            with self.assertRaisesRegex(ValueError, 'an array is uint8'):
                to_image(array)
        with self.assertRaisesRegex(TypeError, 'not int'):
            to_image(1)
        with self.assertRaisesRegex(TypeError, 'binary'):
            to_image(io.StringIO('text'))
        with self.assertRaises(FileNotFoundError):
            to_image('/no/such/file')


class SplitTest(unittest.TestCase):
    def test_by_number_and_by_bytes(self):
        for sizes, expected in [([], []), ([9], [(0, 1)]), ([1] * 3, [(0, 3)]),
                                ([1] * 7, [(0, 3), (3, 6), (6, 7)]), ([1] * 6, [(0, 3), (3, 6)]),
                                ([4, 4, 4], [(0, 2), (2, 3)]), ([99, 1, 1], [(0, 1), (1, 3)]),
                                ([1, 99, 1], [(0, 1), (1, 2), (2, 3)])]:
            self.assertEqual(list(_requests.split(sizes, 3, 8)), expected, sizes)

    def test_requests_hold_all_pictures_in_order(self):
        pictures = [bytes([number]) for number in range(5)]
        params = _requests.classify_params(3, 0.5, 'LOGIT', True, [1, 2], None)
        parts = _requests.requests(_requests.CLASSIFY, pictures, 'm', params, Options(), 2)
        self.assertEqual([len(part.images) for part in parts], [2, 2, 1])
        self.assertEqual([image.encoded for part in parts for image in part.images], pictures)
        for part in parts:
            self.assertEqual((part.model, part.params), ('m', params))
            self.assertTrue(part.options.allow_partial_results)

    def test_a_single_picture_is_all_or_nothing(self):
        [part] = _requests.requests(_requests.CLASSIFY, b'a', '', None, Options(), 2)
        self.assertFalse(part.options.allow_partial_results)


class ParametersTest(unittest.TestCase):
    def test_options(self):
        options = Options(priority='HIGH', max_queue_wait=1.25, resize='STRETCH', timing=True,
                          request_id='id')
        [part] = _requests.requests(_requests.DETECT, b'a', '', None, options, 1)
        self.assertEqual(part.request_id, 'id')
        self.assertEqual(part.options.priority, _messages.RequestOptions.HIGH)
        self.assertEqual(part.options.resize, _messages.RequestOptions.STRETCH)
        self.assertEqual((part.options.max_queue_wait.seconds, part.options.max_queue_wait.nanos),
                         (1, 250_000_000))
        self.assertTrue(part.options.include_timing)

    def test_defaults_leave_choices_to_the_server(self):
        asked = [_requests.classify_params(0, 0, 'LOGIT', False, (), heat_map)
                 for heat_map in (None, False, 'best', True, np.True_, 0)]
        self.assertEqual([params.HasField('heat_map') for params in asked],
                         [False, False, True, True, True, True])
        self.assertEqual([params.heat_map.HasField('class_id') for params in asked],
                         [False, False, False, False, False, True])
        params = _requests.detect_params(None, None, 0, False, False, (), None, None)
        self.assertEqual(params, _messages.DetectParams())
        self.assertTrue(_requests.detect_params(0.0, None, 0, True, False, (), None, None)
                        .HasField('score_threshold'))
        params_with_crops = _requests.detect_params(None, None, 0, False, False, (), None, Crops())
        self.assertTrue(params_with_crops.HasField('crops'))
        [part] = _requests.requests(_requests.DETECT, b'a', '', params, Options(), 1)
        self.assertFalse(part.options.HasField('max_queue_wait'))

    def test_tiles(self):
        tiles = Tiles(width=640, overlap=0.5, whole=False, merge='GREEDY_NMM', match='IOS')
        sent = _requests.detect_params(None, None, 0, False, False, (), tiles).tiles
        self.assertEqual((sent.width, sent.height, sent.overlap, sent.without_picture),
                         (640, 0, 0.5, True))
        self.assertEqual((sent.merge, sent.match), (_messages.Tiles.GREEDY_NMM, _messages.Tiles.IOS))
        self.assertTrue(_requests.detect_params(None, None, 0, False, False, (), Tiles())
                        .HasField('tiles'))

    def test_unknown_names_are_answered_with_the_choices(self):
        def error(ask):
            with self.assertRaises(ValueError) as context:
                ask()
            return str(context.exception)

        self.assertEqual(
            error(lambda: _requests.classify_params(0, 0, 'softmax', False, (), None)),
            "score_type: got 'softmax', expected one of 'SOFTMAX', 'LOGIT', 'SIGMOID'")
        for option, got in (('merge', 'ALL'), ('match', 'iou')):
            self.assertTrue(error(lambda: _requests.detect_params(
                None, None, 0, False, False, (), Tiles(**{option: got}))
            ).startswith(f"{option}: got '{got}', expected one of '"))
        for option in ('priority', 'resize'):
            self.assertTrue(error(lambda: _requests.requests(
                _requests.DETECT, b'a', '', None, Options(**{option: 'LOUD'}), 1)
            ).startswith(f"{option}: got 'LOUD', expected one of '"))

    def test_values_that_do_not_fit_are_named_with_their_field(self):
        def ask(**parameters):
            _requests.classify_params(**{'top_k': 0, 'min_score': 0, 'score_type': 'LOGIT',
                                         'embedding': False, 'class_filter': (), 'heat_map': None,
                                         **parameters})

        for field, value in (('top_k', 2**31), ('top_k', 2.5), ('min_score', 'high'),
                             ('class_filter', ['cat']), ('heat_map', 'worst'),
                             ('top_k', True), ('min_score', np.True_), ('class_filter', [True])):
            with self.subTest(field), self.assertRaisesRegex((TypeError, ValueError),
                                                             f'^{field}: got '):
                ask(**{field: value})
        for options, field in ((Options(request_id='\ud800'), 'request_id'),
                               (Options(max_queue_wait=float('nan')), 'max_queue_wait')):
            with self.assertRaisesRegex(ValueError, f'^{field}: got '):
                _requests.requests(_requests.CLASSIFY, b'a', '', None, options, 1)
        with self.assertRaisesRegex(ValueError, '^width: got '):
            _requests.segment_params(False, False, (), Slide(width=2**40))
        with self.assertRaisesRegex(TypeError, '^overlap: got True, expected a number'):
            _requests.detect_params(None, None, 0, False, False, (), Tiles(overlap=True))

    def test_what_is_none_or_zero_is_as_it_was_given(self):
        unset = _requests.detect_params(None, None, 0, False, False, ())
        self.assertFalse(unset.HasField('score_threshold') or unset.HasField('tiles'))
        zero = _requests.detect_params(0.0, 0.0, 0, False, False, ())
        self.assertTrue(zero.HasField('score_threshold') and zero.HasField('nms_iou_threshold'))


if __name__ == '__main__':
    unittest.main()
