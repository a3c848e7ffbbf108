"""Tests the Python client, installed from its wheel, with the real server and the sfmamba command.
"""

import asyncio
import csv
import doctest
import importlib.metadata
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc
import numpy as np
from PIL import Image

import sfmamba

SAMPLES = pathlib.Path('client/samples')
TRIPOD = SAMPLES / 'camera.jpg'
RENDER = SAMPLES / 'render_04.jpg'
SCENE = SAMPLES / 'scene_01.jpg'
STRANGERS = pathlib.Path('tests/testdata/strangers')
SCENES = sorted(SAMPLES.glob('scene_*.jpg'))
PATIENCE = 60  # The time limit of each call, in seconds. Detectors are slow on a busy machine.


def setUpModule():
    """Starts the server with the default models on a free port."""
    global address
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    # The server does not follow links out of its repository, and Bazel's files are links.
    models = shutil.copytree('models', pathlib.Path(folder.name, 'models'))
    server = unittest.enterModuleContext(subprocess.Popen(
        ['server/sfmamba_server', f'--model_repository={models}', '--host=127.0.0.1', '--port=0',
         '--http_port=0', '--metrics_port=0'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    unittest.addModuleCleanup(server.kill)
    lines = []
    while not lines or '"msg":"serving"' not in lines[-1]:
        lines.append(server.stdout.readline())
        if not lines[-1]:
            raise RuntimeError(f'the server has ended: {lines}')
    [listening] = [line for line in lines if '"msg":"listening"' in line]
    address = f'127.0.0.1:{json.loads(listening)["port"]}'
    reader = threading.Thread(target=server.stdout.read)
    reader.start()
    unittest.addModuleCleanup(reader.join)
    unittest.addModuleCleanup(server.kill)


def overlap(a, b):
    """Returns the intersection over union of two boxes."""
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    both = np.prod(np.maximum(high - low, 0))
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


def command(verb, *files, **flags):
    """Returns what `sfmamba VERB --json` prints."""
    run = subprocess.run(
        ['client/sfmamba', verb, *map(str, files), '--json', f'--server={address}',
         *(f'--{name}={value}' for name, value in flags.items())],
        check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


def assert_close(array, printed):
    """Asserts that the values equal the printed ones. The command prints six digits."""
    np.testing.assert_allclose(array, printed, rtol=1e-5)


class InstalledTest(unittest.TestCase):
    def test_the_wheel_is_what_is_tested(self):
        package = pathlib.Path(sfmamba.__file__).parent
        self.assertTrue(package.is_relative_to(sys.prefix), package)
        self.assertTrue((package / 'py.typed').exists())
        self.assertFalse((package.parent / 'google' / 'rpc').exists())

    def test_there_is_one_version(self):
        self.assertEqual(importlib.metadata.version('sfmamba'), sfmamba.__version__)
        for program in ('client/sfmamba', 'server/sfmamba_server'):
            said = subprocess.run([program, '--version'], check=True, stdout=subprocess.PIPE,
                                  text=True).stdout
            self.assertEqual(said, f'{pathlib.Path(program).name} {sfmamba.__version__}\n')

    def test_misspelt_verbs_and_flags_are_suggested(self):
        for arguments, says in [(['client/sfmamba', 'clasify'], 'did you mean classify'),
                                (['client/sfmamba', 'models', '--sever=a:1'],
                                 'did you mean --server'),
                                (['server/sfmamba_server', '--ports=1'], 'did you mean --port')]:
            run = subprocess.run(arguments, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(run.returncode, 2)
            self.assertIn(says, run.stderr)


class PagesTest(unittest.TestCase):
    def test_examples(self):
        for page in ('README.md', 'client/python/README.md', 'docs/clients.md'):
            text = pathlib.Path(page).read_text(encoding='utf-8')
            example = doctest.DocTestParser().get_doctest(
                text.replace('127.0.0.1:8001', address), {}, page, page, 0)
            said = io.StringIO()
            failed, tried = doctest.DocTestRunner().run(example, out=said.write)
            self.assertGreater(tried, 2, page)
            self.assertEqual(failed, 0, said.getvalue())


class SyncTest(unittest.TestCase):
    def setUp(self):
        self.client = sfmamba.Client(address, timeout=PATIENCE)
        self.addCleanup(self.client.close)

    def failure(self, method, *arguments, **named):
        with self.assertRaises(sfmamba.VisionError) as raised:
            method(*arguments, **named)
        return raised.exception

    def test_classify_as_the_command_does(self):
        [expected] = command('classify', TRIPOD)
        answer = self.client.classify(TRIPOD)
        self.assertEqual(answer.model, expected['model'])
        categories = expected['categories']
        self.assertEqual(list(answer.labels), [one['label'] for one in categories])
        self.assertEqual(list(answer.class_ids), [one['class_id'] for one in categories])
        assert_close(answer.scores, [one['score'] for one in categories])
        self.assertEqual((answer.labels[0], answer.model),
                         ('tripod', 'models/photographs/versions/1'))

    def test_detect_as_the_command_does(self):
        [expected] = command('detect', SCENE)
        answer = self.client.detect(SCENE)
        self.assertEqual((answer.width, answer.height), (expected['width'], expected['height']))
        found = expected['detections']
        self.assertGreater(len(found), 3)
        self.assertEqual(list(answer.labels), [one['label'] for one in found])
        assert_close(answer.scores, [one['score'] for one in found])
        boxes = [[one['box'][side] for side in ('x_min', 'y_min', 'x_max', 'y_max')]
                 for one in found]
        assert_close(answer.boxes, boxes)
        self.assertEqual(list(answer.rles), [one['segmentation']['counts'] for one in found])

    def test_crops_are_what_classifying_each_box_says(self):
        picture = np.asarray(Image.open(SCENE).convert('RGB'))
        plain = self.client.detect(picture, score_threshold=0.5, timeout=PATIENCE)
        crops = sfmamba.Crops('photographs', top_k=3, embedding=True)
        found = self.client.detect(picture, score_threshold=0.5, crops=crops, timeout=PATIENCE)
        np.testing.assert_array_equal(found.boxes, plain.boxes)
        self.assertEqual(plain.crops, ())
        self.assertGreater(len(found), 2)
        self.assertEqual(len(found.crops), len(found))
        for box, crop in zip(found.boxes, found.crops):
            left, top = np.floor(box[:2]).astype(int)
            right, bottom = np.ceil(box[2:]).astype(int)
            alone = self.client.classify(np.ascontiguousarray(picture[top:bottom, left:right]),
                                         model='photographs', top_k=3, embedding=True)
            self.assertEqual(crop.labels, alone.labels)
            np.testing.assert_array_equal(crop.scores, alone.scores)
            np.testing.assert_array_equal(crop.embedding, alone.embedding)
        error = self.failure(self.client.detect, picture, crops=sfmamba.Crops('nothing'))
        self.assertEqual(error.code, grpc.StatusCode.NOT_FOUND)
        [printed] = command('detect', SCENE, crops_model='photographs')
        self.assertEqual(len(printed['detections'][0]['crop']['categories']), 1)

    def test_a_heat_maps_mean_is_its_logit(self):
        for model, classes in (('photographs', 1000), ('everyday', 20)):
            asked = {'model': model, 'top_k': classes, 'score_type': 'LOGIT'}
            every = self.client.classify(TRIPOD, **asked)
            self.assertIsNone(every.heat_map)
            best = self.client.classify(TRIPOD, model=model, heat_map='best')
            self.assertEqual(best.heat_map.class_id, best.class_ids[0])
            chosen = self.client.classify(TRIPOD, model=model, heat_map=True)
            self.assertEqual(chosen.heat_map.class_id, best.class_ids[0])
            for class_id in (0, 7, int(best.class_ids[0])):
                one = self.client.classify(TRIPOD, heat_map=class_id, **asked)
                np.testing.assert_array_equal(one.scores, every.scores)
                self.assertEqual(one.heat_map.class_id, class_id)
                logit = float(one.scores[list(one.class_ids).index(class_id)])
                self.assertAlmostEqual(float(one.heat_map.values.mean(dtype=float)), logit,
                                       delta=1e-5 * float(np.ptp(every.scores)))

    def test_tiles_find_what_asking_tile_by_tile_finds(self):
        scenes = [np.asarray(Image.open(path)) for path in SCENES[:4]]
        mosaic = np.vstack([np.hstack(scenes[:2]), np.hstack(scenes[2:])])
        height, width = mosaic.shape[0] // 2, mosaic.shape[1] // 2
        parts = [(x, y, mosaic[y:y + height, x:x + width])
                 for y in (0, height // 2, height) for x in (0, width // 2, width)]
        parts.append((0, 0, mosaic))
        found = []  # Elements are (score, class, box), best first.
        for x, y, part in parts:
            answer = self.client.detect(np.ascontiguousarray(part), timeout=PATIENCE)
            found += zip(answer.scores, answer.class_ids, answer.boxes + [x, y, x, y])
        found.sort(key=lambda one: -one[0])
        kept = []
        for score, class_id, box in found:
            if all(class_id != other or overlap(box, best) < 0.5 for _, other, best in kept):
                kept.append((score, class_id, box))
        self.assertGreater(len(kept), 12)
        answer = self.client.detect(
            mosaic, tiles=sfmamba.Tiles(width=width, height=height, overlap=0.5), timeout=PATIENCE)
        self.assertEqual((answer.width, answer.height), (mosaic.shape[1], mosaic.shape[0]))
        kept = kept[:len(answer)]
        np.testing.assert_allclose(answer.scores, [score for score, _, _ in kept], atol=1e-5)
        np.testing.assert_allclose(answer.boxes, [box for _, _, box in kept], atol=1e-3)
        for box, mask in zip(answer.boxes, answer.masks):
            rows, columns = np.nonzero(mask)
            self.assertGreaterEqual(columns.min() + 1, box[0])
            self.assertLessEqual(rows.max() - 1, box[3])

    def test_masks_fill_their_boxes(self):
        answer = self.client.detect(SCENE, score_threshold=0.5)
        masks = answer.masks
        self.assertEqual(masks.shape, (len(answer), answer.height, answer.width))
        self.assertEqual(masks.dtype, bool)
        for box, mask in zip(answer.boxes, masks):
            rows, columns = np.nonzero(mask)
            # A mask consists of whole pixels, so it may extend beyond its box by up to one pixel on
            # each side. The index of a pixel is the coordinate of its left or top edge.
            self.assertGreaterEqual(columns.min() + 1, box[0])
            self.assertGreaterEqual(rows.min() + 1, box[1])
            self.assertLessEqual(columns.max(), box[2])
            self.assertLessEqual(rows.max(), box[3])
            width, height = box[2] - box[0], box[3] - box[1]
            self.assertGreater(mask.sum(), 0.1 * width * height)

    def test_segment_as_the_command_does(self):
        [expected] = command('segment', SCENES[2])
        answer = self.client.segment(SCENES[2], confidence=True)
        shape = (expected['height'], expected['width'])
        self.assertEqual(answer.class_map.shape, shape)
        areas = {one['class_id']: one['pixel_count'] for one in expected['areas']}
        ids, counts = np.unique(answer.class_map, return_counts=True)
        self.assertEqual(dict(zip(ids.tolist(), counts.tolist())), areas)
        self.assertEqual({area.class_id: area.pixel_count for area in answer.areas}, areas)
        self.assertEqual(answer.confidence.shape, shape)
        self.assertTrue(0.3 < answer.confidence.mean() <= 1)

    def test_slide_over_a_mosaic(self):
        scenes = [np.asarray(Image.open(path)) for path in SCENES[:4]]
        mosaic = np.vstack([np.hstack(scenes), np.hstack(scenes[::-1]), np.hstack(scenes)])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'mosaic.png')
            Image.fromarray(mosaic).save(path)
            slide = sfmamba.Slide(width=96, height=64, stride_x=48, stride_y=40)
            answer = self.client.segment(path, slide=slide, timeout=PATIENCE)
            [printed] = command('segment', path, slide='96x64', stride='48x40')
        self.assertEqual(answer.class_map.shape, mosaic.shape[:2])
        self.assertEqual([area.pixel_count for area in answer.areas],
                         [area['pixel_count'] for area in printed['areas']])
        whole = self.client.segment(mosaic, timeout=PATIENCE)
        self.assertTrue((answer.class_map != whole.class_map).any())
        # Now a single window covers the network's whole input. The result must be nearly the same
        # as without a window.
        one = self.client.segment(mosaic, slide=sfmamba.Slide(320, 320), timeout=PATIENCE)
        self.assertLess(np.mean(one.class_map != whole.class_map), 1e-4)

    def test_filtered_pixels_have_no_class(self):
        answer = self.client.segment(SCENES[2], class_filter=[16], model_size=True)
        self.assertEqual(np.unique(answer.class_map).tolist(), [-1, 16])

    def test_forms_of_a_picture(self):
        expected = self.client.classify(RENDER)
        with open(RENDER, 'rb') as file:
            for source in (str(RENDER), RENDER.read_bytes(), file):
                np.testing.assert_array_equal(self.client.classify(source).scores, expected.scores)

    def test_pixels_are_those_of_a_lossless_file(self):
        picture = Image.open(RENDER)
        png = io.BytesIO()
        picture.save(png, 'PNG')
        expected = self.client.classify(png.getvalue())
        for source in (np.asarray(picture), picture, picture.convert('RGBA'),
                       sfmamba.Picture(picture, crop=(0, 0, 1, 1))):
            np.testing.assert_array_equal(self.client.classify(source).scores, expected.scores)
        swapped = self.client.classify(np.asarray(picture)[:, :, ::-1])
        self.assertFalse(np.array_equal(swapped.scores, expected.scores))

    def test_resized_here_has_the_bits_of_resized_there(self):
        for name in ('everyday', 'photographs'):
            model = self.client.model(name)
            for path in (RENDER, TRIPOD):
                picture = Image.open(path)
                png = io.BytesIO()
                picture.save(png, 'PNG')
                expected = self.client.classify(png.getvalue(), model=name)
                for source in (picture, png.getvalue()):
                    resized = self.client.classify(sfmamba.Resized(source, model), model=name)
                    np.testing.assert_array_equal(resized.scores, expected.scores)
                file = self.client.classify(sfmamba.Resized(path, model), model=name)
                by_server = self.client.classify(path, model=name)
                np.testing.assert_allclose(file.scores, by_server.scores, atol=0.05)
                by_command = command('classify', path, model=name, resize='true')
                self.assertEqual(by_command, command('classify', path, model=name))

    def test_strange_pictures_in_every_form(self):
        with open(STRANGERS / 'expect.tsv', encoding='utf-8') as file:
            rows = list(csv.DictReader(file, delimiter='\t'))
        self.assertEqual(len(rows), 20)
        for row in rows:
            path = STRANGERS / row['file']
            for source in (path, path.read_bytes()):
                answer = self.client.classify(source, model='photographs', top_k=1,
                                              score_type='LOGIT')
                self.assertEqual(answer.class_ids[0], int(row['class_id']), row)
                self.assertAlmostEqual(answer.scores[0], float(row['logit']), delta=0.01, msg=row)
            seen = self.client.detect(path)
            self.assertEqual((seen.width, seen.height), (int(row['width']), int(row['height'])), row)
        for file in ('plain.jpg', 'orient6.jpg', 'eXIf_6.png', 'exif_6_then_1.jpg'):
            by_path = self.client.detect(STRANGERS / file)
            by_pixels = self.client.detect(Image.open(STRANGERS / file))
            self.assertEqual((by_pixels.width, by_pixels.height), (by_path.width, by_path.height),
                             file)

    def test_a_list_with_a_broken_picture(self):
        data = RENDER.read_bytes()
        answers = self.client.classify([RENDER, data[:len(data) // 2], SAMPLES / 'render_01.jpg'],
                                       model='everyday')
        self.assertEqual([answers[0].labels[0], answers[2].labels[0]], ['table', 'tool'])
        self.assertIsInstance(answers[1], sfmamba.VisionError)
        self.assertEqual((answers[1].code, answers[1].reason, answers[1].field),
                         (grpc.StatusCode.INVALID_ARGUMENT, 'IMAGE_DECODE_FAILED',
                          'images[1].encoded'))
        self.assertEqual(self.failure(self.client.classify, data[:99]).code,
                         grpc.StatusCode.INVALID_ARGUMENT)

    def test_a_list_longer_than_a_request(self):
        files = sorted(SAMPLES.glob('render_*.jpg'))
        several = self.client.classify(files * 10)
        self.assertEqual(len(several), 80)
        single = [self.client.classify(file).labels for file in files]
        self.assertEqual([answer.labels for answer in several], single * 10)

    def test_map(self):
        files = sorted(SAMPLES.glob('*.jpg'))
        answers = list(self.client.map(self.client.classify, files, in_flight=4, top_k=1))
        self.assertEqual([answer.labels for answer in answers],
                         [self.client.classify(file, top_k=1).labels for file in files])

    def test_stream(self):
        files = sorted(SAMPLES.glob('*.jpg'))
        expected = [self.client.classify(file).scores for file in files]
        answers = list(self.client.stream(self.client.classify, files * 10, in_flight=8))
        self.assertEqual([file for file, _ in answers], files * 10)
        for (_, answer), scores in zip(answers, expected * 10):
            np.testing.assert_array_equal(answer.scores, scores)
        (_, good), (_, bad) = self.client.stream(self.client.detect, [SCENE, b'no picture'],
                                                 masks=False)
        np.testing.assert_array_equal(good.boxes, self.client.detect(SCENE).boxes)
        self.assertEqual(bad.reason, 'IMAGE_FORMAT_UNSUPPORTED')

    def test_timing(self):
        answer = self.client.classify(RENDER, options=sfmamba.Options(timing=True))
        self.assertGreater(answer.timing.inference, 0)
        self.assertGreaterEqual(answer.timing.total, answer.timing.inference)

    def test_embedding(self):
        answer = self.client.classify(RENDER, embedding=True, score_type='LOGIT', top_k=20,
                                      model='everyday')
        self.assertEqual(answer.embedding.ndim, 1)
        self.assertEqual(len(answer.labels), 20)
        self.assertGreater(np.ptp(answer.scores), 1)

    def test_a_deadline_that_passes(self):
        error = self.failure(self.client.detect, SCENE, timeout=1e-6)
        self.assertEqual(error.code, grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_a_model_that_is_not_there_or_does_something_else(self):
        error = self.failure(self.client.classify, RENDER, model='nope')
        self.assertEqual((error.code, error.reason, error.metadata['model']),
                         (grpc.StatusCode.NOT_FOUND, 'MODEL_NOT_FOUND', 'nope'))
        error = self.failure(self.client.detect, RENDER, model='everyday')
        self.assertEqual(error.reason, 'TASK_MISMATCH')

    def test_a_parameter_out_of_range(self):
        error = self.failure(self.client.classify, RENDER, top_k=-1)
        self.assertEqual((error.reason, error.field), ('INVALID_FIELD', 'params.top_k'))

    def test_models_and_health(self):
        models = self.client.models()
        self.assertEqual([(model.task, model.state) for model in models],
                         [('CLASSIFICATION', 'READY'), ('DETECTION', 'READY'),
                          ('SEGMENTATION', 'READY'), ('CLASSIFICATION', 'READY')])
        model = self.client.model('everyday')
        self.assertEqual(
            (model.name, model.class_count, len(model.labels), model.precision),
            ('models/everyday/versions/1', 20, 20, 'FP32'))
        self.assertTrue(self.client.health())
        self.assertTrue(self.client.health('models/everyday'))
        self.assertEqual(self.failure(self.client.health, 'nobody').code,
                         grpc.StatusCode.NOT_FOUND)


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = sfmamba.AsyncClient(address, timeout=PATIENCE)
        self.addAsyncCleanup(self.client.close)

    async def test_the_same_answers(self):
        with sfmamba.Client(address, timeout=PATIENCE) as client:
            expected = (client.classify(RENDER), client.detect(SCENE), client.segment(SCENE))
        classes, objects, areas = await asyncio.gather(
            self.client.classify(RENDER), self.client.detect(SCENE), self.client.segment(SCENE))
        np.testing.assert_array_equal(classes.scores, expected[0].scores)
        np.testing.assert_array_equal(objects.boxes, expected[1].boxes)
        np.testing.assert_array_equal(areas.class_map, expected[2].class_map)

    async def test_map_and_lists(self):
        files = [*SCENES, '/no/such/file']
        answers = [answer async for answer in self.client.map(self.client.classify, files)]
        self.assertIsInstance(answers.pop(), FileNotFoundError)
        together = await self.client.classify(SCENES)
        self.assertEqual([answer.labels for answer in answers],
                         [answer.labels for answer in together])

    async def test_stream(self):
        together = await self.client.segment(SCENES[:2])
        stream = self.client.stream(self.client.segment, SCENES[:2])
        for answer in together:
            _, streamed = await stream.__anext__()
            np.testing.assert_array_equal(streamed.class_map, answer.class_map)

    async def test_errors(self):
        for arguments, code in [({'model': 'nope'}, grpc.StatusCode.NOT_FOUND),
                                ({'timeout': 1e-6}, grpc.StatusCode.DEADLINE_EXCEEDED)]:
            with self.assertRaises(sfmamba.VisionError) as raised:
                await self.client.classify(RENDER, **arguments)
            self.assertEqual(raised.exception.code, code)

    async def test_models_and_health(self):
        self.assertEqual(len(await self.client.models()), 4)
        self.assertTrue(await self.client.health())


if __name__ == '__main__':
    unittest.main()
