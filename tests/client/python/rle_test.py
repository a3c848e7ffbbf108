"""Compares COCO's run lengths with a simple decoder that follows the specification."""

import random
import unittest

import numpy as np

from sfmamba import _rle


def compress(counts):
    """Returns the compressed string of run lengths, as docs/heads.md ("COCO run lengths") defines
    it."""
    text = ''
    for index, count in enumerate(counts):
        number = count - counts[index - 2] if index > 2 else count
        more = True
        while more:
            group = number & 0x1f
            number >>= 5
            more = number != (-1 if group & 0x10 else 0)
            text += chr(48 + group + (0x20 if more else 0))
    return text


def naive_mask(counts, height, width):
    """Returns the mask of run lengths. Sets the pixels one by one, column by column."""
    mask = np.zeros((height, width), bool)
    at = 0
    for index, count in enumerate(counts):
        for _ in range(count):
            mask[at % height, at // height] = index % 2
            at += 1
    return mask


def counts_of(mask):
    counts, last = [0], 0
    for pixel in mask.T.ravel():
        if pixel != last:
            counts.append(0)
            last = pixel
        counts[-1] += 1
    return counts


class RleTest(unittest.TestCase):
    def test_random_masks(self):
        random.seed(1)
        for _ in range(200):
            height, width = random.randint(1, 40), random.randint(1, 40)
            # A block of set pixels gives long runs, and the noise gives short runs.
            mask = np.array([[random.random() < 0.1 for _ in range(width)] for _ in range(height)])
            mask[:random.randint(0, height), :random.randint(0, width)] = True
            counts = counts_of(mask)
            decoded = _rle.decode_mask(compress(counts), height, width)
            np.testing.assert_array_equal(decoded, naive_mask(counts, height, width))
            np.testing.assert_array_equal(decoded, mask)
            self.assertEqual(decoded.dtype, bool)

    def test_lengths_of_many_groups(self):
        counts = [0, 40_000_000, 1, 3, 9_999_996]
        np.testing.assert_array_equal(_rle.runs(compress(counts), 50_000_000), counts)

    def test_a_published_string(self):
        # The example of base/coco_rle.h: 3 unset, 4 set, 2 unset, 1 set and 2 unset pixels.
        self.assertEqual(compress([3, 4, 2, 1, 2]), '342M0')
        np.testing.assert_array_equal(_rle.runs('342M0', 12), [3, 4, 2, 1, 2])

    def test_refuses(self):
        for text, why in [('', 'empty'), ('342M1', 'add up'), ('342M', 'add up'),
                          ('342m', 'malformed'), ('34 M0', 'malformed'), ('34~M0', 'malformed'),
                          ('3é', 'ascii'), ('o' * 12 + '0', 'too large'), ('O>', 'add up')]:
            with self.subTest(text), self.assertRaisesRegex(ValueError, why):
                _rle.runs(text, 12)


if __name__ == '__main__':
    unittest.main()
