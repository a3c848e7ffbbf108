"""Tests the picture of a run. The expected pixels are computed from loss_curve's margins."""

import math
import pathlib
import tempfile
import unittest

import numpy as np
from PIL import Image

import loss_curve


def drawn(curves):
    """Draws the curves. Returns the picture as an array, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'curve.png')
        loss_curve.draw(path, curves)
        if not path.exists():
            return None
        with Image.open(path) as image:
            return np.asarray(image.convert('RGB'))


def heights(picture, colour, x):
    """Returns the rows in which a column of the picture has a curve's colour."""
    return np.flatnonzero((picture[:, x] == colour).all(-1))


class LossCurveTest(unittest.TestCase):
    def test_a_curve_goes_through_its_points(self):
        picture = drawn({'loss': [(0, 2.0), (100, 0.5)], 'accuracy': [(0, 0.0), (100, 1.0)]})
        self.assertEqual(picture.shape, (2 * loss_curve.HEIGHT, loss_curve.WIDTH, 3))
        middle = (loss_curve.LEFT + loss_curve.WIDTH - loss_curve.RIGHT) // 2
        low, high = loss_curve.HEIGHT - loss_curve.BOTTOM, loss_curve.TOP
        rows = heights(picture, loss_curve.COLOURS[0], middle)
        # The loss is 1.25 of 2 in the upper panel, and the accuracy is 0.5 of 1 in the lower panel.
        for expected in (low + (high - low) * 1.25 / 2, loss_curve.HEIGHT + (low + high) / 2):
            self.assertLessEqual(abs(rows - expected).min(), 2)

    def test_each_curve_has_its_colour_and_name(self):
        picture = drawn({f'loss {i}': [(0, i), (10, i + 1)] for i in range(3)})
        self.assertEqual(len(picture), loss_curve.HEIGHT)
        for colour in loss_curve.COLOURS[:3]:
            self.assertGreater((picture[:loss_curve.TOP] == colour).all(-1).sum(), 10)

    def test_what_is_not_finite_is_left_out(self):
        picture = drawn({'loss': [(0, 1.0), (1, math.nan), (2, math.inf), (3, 1.0)]})
        whole = drawn({'loss': [(0, 1.0), (3, 1.0)]})
        marks = loss_curve.COLOURS[0]
        self.assertEqual((picture == marks).all(-1).sum(), (whole == marks).all(-1).sum())
        self.assertIsNone(drawn({'loss': [(0, math.nan)], 'accuracy': []}))

    def test_a_single_point_is_drawn(self):
        self.assertIsNotNone(drawn({'loss': [(0, 0.0)]}))

    def test_a_growing_curve_keeps_means(self):
        curve = loss_curve.Curve(most=4)
        for step in range(1, 24):
            curve = loss_curve.Curve(4, curve.state)  # A resumed run restores it like this.
            curve.add(step, float(step))
        self.assertEqual(curve.points, [(8, 4.5), (16, 12.5)])

    def test_ticks_are_round_and_reach_the_top(self):
        for top in (1e-6, 0.3, 1, 2.31, 7, 99, 123456):
            ticks = loss_curve.ticks(top)
            self.assertGreaterEqual(ticks[-1] * (1 + 1e-6), top)
            self.assertIn(len(ticks), range(3, 8))
        self.assertEqual(loss_curve.ticks(7), [0, 2, 4, 6, 8])
        self.assertEqual([loss_curve.short(v) for v in (500, 2500, 12000, 2.5e6)],
                         ['500', '2500', '12k', '2.5M'])


if __name__ == '__main__':
    unittest.main()
