import unittest

import numpy as np

from checkpoint.tensor import CheckpointError, Storage, checked_tensor, convert, fits, printable


def storage(values):
    array = np.asarray(values, np.float32)
    return Storage('F32', array.size, lambda: array.tobytes())


class ViewTest(unittest.TestCase):
    def setUp(self):
        self.storage = storage(range(24))

    def test_contiguous_transposed_and_strided_views(self):
        values = np.arange(24, dtype=np.float32)
        for offset, shape, strides, expected in (
                (0, (2, 3, 4), None, values.reshape(2, 3, 4)),
                (0, (4, 6), (1, 4), values.reshape(6, 4).T),
                (3, (5,), (4,), values[3:20:4]),
                (23, (), None, values[23]),
                (2, (3, 2), (0, 1), np.tile(values[2:4], (3, 1))),
                (24, (0, 7), None, np.empty((0, 7)))):
            array = checked_tensor(self.storage, offset, shape, strides).array()
            np.testing.assert_array_equal(array, expected)
            self.assertTrue(array.flags.c_contiguous)
            self.assertEqual(array.shape, expected.shape)

    def test_views_that_leave_their_storage(self):
        for offset, shape, strides in (
                (0, (25,), (1,)), (1, (24,), (1,)), (24, (), ()), (0, (2,), (24,)),
                (0, (5,), (0,) * 2), (0, (2**62, 2**62), (0, 0)), (0, (25,), (0,)),
                (2**62, (1,), (1,))):
            with self.assertRaises(CheckpointError):
                checked_tensor(self.storage, offset, shape, strides)

    def test_numbers_that_are_none(self):
        for offset, shape, strides in (
                (-1, (1,), (1,)), (0, (-1,), (1,)), (0, (1,), (-1,)), (0, (1.0,), (1,)),
                (True, (1,), (1,)), (0, ('a',), (1,)), (0, 7, (1,)), (0, None, None),
                (0, (1,) * 9, (1,) * 9), (0, (2**70,), (1,)), (None, (1,), (1,))):
            with self.assertRaisesRegex(CheckpointError, 'whole numbers'):
                checked_tensor(self.storage, offset, shape, strides)


def bits(value):
    return int(convert(np.float32([value]), 'F32', 'BF16')[0])


class ConvertTest(unittest.TestCase):
    def test_bfloat16_rounds_to_nearest_even(self):
        self.assertEqual(bits(1.0), 0x3f80)
        # A tie is rounded down to the even number.
        self.assertEqual(bits(1 + 2**-8), 0x3f80)
        # A tie is rounded up to the even number.
        self.assertEqual(bits(1 + 3 * 2**-8), 0x3f82)
        self.assertEqual(bits(1 + 2**-8 + 2**-20), 0x3f81)
        self.assertEqual(bits(-0.0), 0x8000)
        self.assertEqual(bits(1e-45), 0)
        self.assertEqual(bits(np.inf), 0x7f80)
        # The value exceeds the largest finite bfloat16, so it becomes infinite.
        self.assertEqual(bits(3.4e38), 0x7f80)

    def test_every_bfloat16_comes_back(self):
        every = np.arange(2**16, dtype=np.uint16)
        wide = convert(every, 'BF16', 'F32')
        back = convert(wide, 'F32', 'BF16')
        number = ~np.isnan(wide)
        np.testing.assert_array_equal(back[number], every[number])
        self.assertTrue(np.isnan(convert(back, 'BF16', 'F32')[~number]).all())

    def test_every_half_comes_back(self):
        every = np.arange(2**16, dtype=np.uint16).view(np.float16)
        back = convert(convert(every, 'F16', 'F32'), 'F32', 'F16')
        number = ~np.isnan(every)
        np.testing.assert_array_equal(back[number].view(np.uint16), every[number].view(np.uint16))
        self.assertTrue(np.isnan(back[~number]).all())

    def test_half_rounds_to_nearest_even(self):
        values = np.float32([1 + 2**-11, 1 + 3 * 2**-11, 2**-25, 3 * 2**-25, 65519, 65520])
        expected = np.float16([1, 1 + 2**-9, 0, 2**-23, 65504, np.inf])
        np.testing.assert_array_equal(convert(values, 'F32', 'F16'), expected)

    def test_nans_with_any_payload_stay(self):
        nans = np.uint32([0x7f800001, 0xff800001, 0x7fffffff, 0x7fc00000]).view(np.float32)
        for dtype in ('F16', 'BF16'):
            narrow = convert(nans, 'F32', dtype)
            self.assertTrue(np.isnan(convert(narrow, dtype, 'F32')).all())
        self.assertTrue(np.isnan(convert(np.float64([np.nan]), 'F64', 'F32')).all())

    def test_doubles_are_rounded_once(self):
        # If this number were first rounded to the nearest float32, it would become a tie. It would
        # then be rounded to the even bfloat16.
        value = 1 + 2**-8 + 2**-40
        self.assertEqual(int(convert(np.float64([value]), 'F64', 'BF16')[0]), 0x3f81)
        self.assertEqual(int(convert(np.float64([-value]), 'F64', 'BF16')[0]), 0xbf81)
        # convert() rounds to float32 first and then to bfloat16. The first step must choose the
        # float32 neighbour whose last bit is 1. The second step then sees that the value is not
        # exactly a tie.
        above = 1 + 2**-8 + 2**-23 - 2**-40
        self.assertEqual(int(convert(np.float64([above]), 'F64', 'BF16')[0]), 0x3f81)
        below = 1 + 3 * 2**-8 - 2**-40
        self.assertEqual(int(convert(np.float64([below]), 'F64', 'BF16')[0]), 0x3f81)
        half = 1 + 2**-11 + 2**-40
        self.assertEqual(convert(np.float64([half]), 'F64', 'F16')[0], np.float16(1 + 2**-10))
        exact = np.float64([1.5, np.inf, -np.inf, 0, 1e300])
        np.testing.assert_array_equal(convert(exact, 'F64', 'BF16'),
                                      [0x3fc0, 0x7f80, 0xff80, 0, 0x7f80])

    def test_half_to_bfloat16_and_back(self):
        values = np.float16([1, -0.5, 1024])
        np.testing.assert_array_equal(
            convert(convert(values, 'F16', 'BF16'), 'BF16', 'F16'), values)

    def test_fits_tells_what_would_become_infinite(self):
        self.assertTrue(fits(np.float32([65504, np.inf, np.nan]), 'F32', 'F16'))
        self.assertFalse(fits(np.float32([1, 65520]), 'F32', 'F16'))
        self.assertFalse(fits(np.float32([3.4e38]), 'F32', 'BF16'))
        self.assertTrue(fits(np.float32([3e38]), 'F32', 'BF16'))


class PrintableTest(unittest.TestCase):
    def test_no_control_character_reaches_the_terminal(self):
        self.assertEqual(printable('a\n\x1b[2Jö'), r'a\n\x1b[2J\xf6')
        self.assertEqual(len(printable('x' * 1000)), 200)
