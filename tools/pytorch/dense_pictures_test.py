"""Tests how pictures with boxes, masks and maps are read, placed and scored."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import cv2
import numpy as np
from PIL import Image

import dense_pictures
import pictures
from coco.annotations import CocoError, unpack
from coco_files import Entry, Object, open_coco, run_lengths
from dense_metrics import MeanIou, Precision, box_iou, mask_iou
from pictures import PassedOver


class OutlineTest(unittest.TestCase):
    def test_packed_run_lengths(self):
        # pycocotools packs the run lengths as this string.
        self.assertEqual(unpack('01f03]O00000005'), [0, 1, 22, 4, 3, 4, 3, 4, 3, 4, 3, 4, 8])
        mask = np.zeros((7, 9), np.uint8)
        mask[2:6, 3:8] = mask[0, 0] = 1
        for counts in ('01f03]O00000005', unpack('01f03]O00000005')):
            np.testing.assert_array_equal(run_lengths(dict(counts=counts), (9, 7)), mask)
        outline = dict(counts='01f03]O00000005')
        cut, corner = Object(0, (2.5, 2, 8, 6.5), outline).mask((9, 7))
        self.assertEqual(corner, (2, 2))
        np.testing.assert_array_equal(cut, mask[2:7, 2:8])

    def test_polygons(self):
        square = [4, 3, 12, 3, 12, 9, 4, 9]
        cut, corner = Object(0, (4, 3, 20, 9), [square, [14, 3, 20, 3, 20, 9, 14, 9]]).mask(
            (30, 20))
        self.assertEqual((cut.shape, corner), ((6, 16), (4, 3)))
        self.assertTrue(cut[1:-1, 1:7].all() and cut[1:-1, 11:-1].all())
        self.assertFalse(cut[:, 9].any())


class PlacementTest(unittest.TestCase):
    def test_a_served_picture_is_the_servers(self):
        rng = np.random.default_rng(0)
        pixels = cv2.GaussianBlur(rng.integers(0, 256, (93, 131, 3)).astype(np.uint8), (5, 5), 1)
        for sides in ((64, 96), (150, 200)):
            place = dense_pictures.as_it_is_served((131, 93), *sides)
            expected = cv2.resize(pixels, place.size, interpolation=cv2.INTER_LINEAR)
            got = np.asarray(place.warp(Image.fromarray(pixels), smooth=True))
            self.assertLessEqual(np.abs(got.astype(int) - expected).max(), 2)
        self.assertEqual(dense_pictures.fitted((1000, 100), 64, 96), (96, 10))

    def test_boxes_masks_and_pixels_move_together(self):
        pixels = np.zeros((60, 80, 3), np.uint8)
        pixels[20:40, 30:66] = 255
        thing = Object(0, (30, 20, 66, 40), [[30, 20, 66, 20, 66, 40, 30, 40]])
        kept = 0
        for seed in range(20):
            place = dense_pictures.by_chance(np.random.default_rng(seed), (80, 60), 64, 96,
                                             (96, 64))
            bright = np.asarray(place.warp(Image.fromarray(pixels)))[..., 0] > 0
            boxes, shares = place.boxes([thing])
            if not len(dense_pictures.seen(boxes, shares)):
                continue
            kept += 1
            [mask] = place.masks([thing], (80, 60))
            self.assertGreater(mask_iou(mask[None], bright[None])[0, 0], 0.85)
            ys, xs = np.nonzero(bright)
            around = np.array([[xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]])
            self.assertGreater(box_iou(boxes, around)[0, 0], 0.85)
        self.assertGreater(kept, 10)

    def test_what_is_mostly_outside_is_left_out(self):
        place = dense_pictures.Placement((1, 1), (-40, 0), (64, 64))
        boxes, shares = place.boxes([Object(0, box, None) for box in (
            (0, 0, 50, 20), (20, 0, 60, 20), (50, 0, 52, 20))])
        np.testing.assert_allclose(shares, [0.2, 0.5, 1])
        self.assertEqual(dense_pictures.seen(boxes, shares).tolist(), [1])


class ExamplesTest(unittest.TestCase):
    def write(self, folder, count=12):
        for i in range(count):
            Image.new('RGB', (40, 30) if i % 2 else (30, 40)).save(folder / f'{i:02}.png')
        return [Entry(folder / f'{i:02}.png', ()) for i in range(count)]

    def test_pictures_that_cannot_be_decoded_are_named_and_passed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            entries = self.write(pathlib.Path(folder))
            entries[0].path.write_bytes(entries[1].path.read_bytes()[:50])
            with contextlib.redirect_stderr(io.StringIO()) as said:
                learnt, kept = dense_pictures.split(entries, None)
            self.assertRegex(said.getvalue(), f'^passed over: {entries[0].path}: .+\n$')
            self.assertEqual([e.path.stem for e in kept.entries], ['01', '06', '11'])
            self.assertEqual((len(learnt), len(kept), kept.passed_over.count), (8, 3, 1))

    def test_a_batch_is_wide_or_high(self):
        with tempfile.TemporaryDirectory() as folder:
            examples = dense_pictures.Examples(self.write(pathlib.Path(folder)), PassedOver())
            for seed in range(5):
                drawn = examples.draw(np.random.default_rng(seed), 4)
                self.assertEqual(len({picture.size for picture, _ in drawn}), 1)

    def test_pictures_are_turned_as_the_server_turns_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'a.png')
            exif = Image.Exif()
            exif[pictures.ORIENTATION] = 6
            Image.new('RGB', (40, 30)).save(path, exif=exif)
            self.assertEqual(Entry(path, ()).read(PassedOver())[0].size, (30, 40))
            self.assertEqual(pictures.shown_size(path), (30, 40))
            # The EXIF data may also follow the pixels.
            data = path.read_bytes()
            start = data.index(b'eXIf') - 4
            end = start + 12 + int.from_bytes(data[start:start + 4], 'big')
            path.write_bytes(data[:start] + data[end:-12] + data[start:end] + data[-12:])
            self.assertEqual(Entry(path, ()).read(PassedOver())[0].size, (30, 40))
            self.assertEqual(pictures.shown_size(path), (30, 40))

    def test_all_sizes_are_compared_before_any_picture_is_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            exif = Image.Exif()
            exif[pictures.ORIENTATION] = 6
            (folder / 'images').mkdir()
            for name in 'ab':
                Image.new('RGB', (40, 30)).save(folder / f'images/{name}.jpg', exif=exif)
            root = dict(categories=[dict(id=1, name='cat')], images=[
                dict(id=i, file_name=f'{name}.jpg') for i, name in enumerate('ab')], annotations=[
                    dict(id=i, image_id=i, category_id=1, bbox=[20, 20, 20, 20]) for i in (0, 1)])
            for size in ((30, 40), (None, None), (40, 30)):
                root['images'][1].update(width=size[0], height=size[1])
                (folder / 'annotations.json').write_text(json.dumps(root))
                if size == (40, 30):
                    with self.assertRaisesRegex(
                            CocoError, r'b\.jpg: 40 x 30 pixels in the json, 30 x 40 as '):
                        open_coco(folder)
                else:
                    with contextlib.redirect_stdout(io.StringIO()) as said:
                        entries, _, _ = open_coco(folder)
                    self.assertEqual([e.objects[0].box for e in entries], [(20, 20, 30, 40)] * 2)
                    self.assertIn('2 boxes clipped', said.getvalue())

    def test_pictures_beyond_the_memory_are_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            entries = self.write(pathlib.Path(folder))
            limit, dense_pictures.CACHE = dense_pictures.CACHE, 4 * 1200 * 3
            self.addCleanup(setattr, dense_pictures, 'CACHE', limit)
            learnt, kept = dense_pictures.split(entries, None)
            self.assertEqual(len(learnt.held) + len(kept.held), 4)
            self.assertEqual(len(list(kept.all(99))), 3)


class MetricsTest(unittest.TestCase):
    def test_precision_of_three_answers(self):
        precision = Precision(2)
        scores, labels = np.array([0.9, 0.8, 0.7]), np.zeros(3, np.int64)
        iou = np.array([[0.6, 0.1], [0.9, 0.2], [0.1, 0.5]])  # The second finds no new object.
        precision.add(iou, scores, labels, np.zeros(2, np.int64))
        # The precision is 1 up to recall 1/2, at 51 of the 101 recalls, and 2/3 at the other 50.
        self.assertAlmostEqual(precision.mean(), (51 + 50 * 2 / 3) / 101)

    def test_what_is_never_found_counts_and_what_is_not_there_does_not(self):
        precision = Precision(3)
        precision.add(np.ones((1, 2)), np.ones(1), np.array([0]), np.array([0, 1]))
        self.assertAlmostEqual(precision.mean(), 0.5)
        self.assertIsNone(Precision(3).mean())

    def test_mean_iou_leaves_out_what_neither_map_has(self):
        iou = MeanIou(5, 255)
        iou.add(np.array([[0, 0, 1, 255]], np.uint8), np.array([[0, 1, 1, 3]]))
        self.assertAlmostEqual(iou.mean(np.ones(5, bool)), 0.5)

    def test_mean_iou_is_of_classes_that_are_taught_and_have_pixels(self):
        iou, taught = MeanIou(3, 255), np.array([True, True, False])
        self.assertIsNone(iou.mean(taught))
        iou.add(np.array([[2, 2, 255]], np.uint8), np.array([[0, 1, 1]]))
        self.assertIsNone(iou.mean(taught))
        iou.add(np.array([[0, 1]], np.uint8), np.array([[0, 1]]))
        self.assertAlmostEqual(iou.mean(taught), 0.5)

    def test_iou(self):
        boxes = np.array([[0, 0, 4, 2], [2, 0, 6, 2], [9, 9, 9, 9]], np.float32)
        np.testing.assert_allclose(box_iou(boxes[:1], boxes), [[1, 1 / 3, 0]])
        masks = np.array([[[1, 1, 0]], [[0, 1, 1]]], np.uint8)
        np.testing.assert_allclose(mask_iou(masks[:1], masks), [[1, 1 / 3]])

    def test_pictures_without_answers_or_objects(self):
        masks, boxes = np.zeros((2, 4, 3), bool), np.zeros((2, 4), np.float32)
        precision = Precision(2)
        for n, m in ((0, 2), (2, 0), (0, 0)):
            self.assertEqual(mask_iou(masks[:n], masks[:m]).shape, (n, m))
            iou = box_iou(boxes[:n], boxes[:m])
            precision.add(iou, np.ones(n), np.zeros(n, np.int64), np.zeros(m, np.int64))
        self.assertEqual(precision.mean(), 0)


if __name__ == '__main__':
    unittest.main()
