"""What make_pictures.py writes is what the classifier's training reads."""

import pathlib
import tempfile
import unittest

import numpy as np

import configs
import dataset
import make_pictures


class ComposedTest(unittest.TestCase):
    """What make_pictures.py writes, of cut-outs that are plain discs."""

    def draw(self, number):
        rng = np.random.default_rng(number)
        y, x = np.mgrid[-1:1:128j, -1:1:128j]
        disc = np.repeat(np.uint8(255 * (x * x + y * y < 0.8))[..., None], 4, axis=2)
        exemplars = [(0, disc[None]), (1, disc[None] // 2)]
        return make_pictures.draw(rng, exemplars, [0.5, 0.5], [], 2 * make_pictures.BATCH,
                                  dict(maps=lambda pictures: pictures.transpose(0, 3, 1, 2),
                                       features=lambda pictures: pictures.mean(axis=(1, 2))))

    def test_files_that_come_later_are_found(self):
        side = configs.SIZE
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / 'labels.txt').write_text('bright\ndim\n')
            (folder / 'CREDITS.md').write_text('# Credits of discs\n')
            np.savez(folder / 'validation.npz', pictures=np.zeros((1, side, side, 3), np.uint8),
                     classes=np.array([0]))
            np.savez(folder / '0000.npz', **self.draw(0))
            data = dataset.open_data(folder, configs.SIZE)
            self.assertEqual(len(data.ordered), 1)
            np.savez(folder / '0001.npz', **self.draw(1))
            data.refresh()
        self.assertEqual(len(data.ordered), 2)
        self.assertEqual(data.labels, ['bright', 'dim'])
        self.assertEqual(data.credits, '# Credits of discs\n')
        maps, classes, features = data.draw(np.random.default_rng(0), 9)
        self.assertEqual(maps.shape, (9, 3, side, side))
        self.assertEqual(features.shape, (9, 3))
        self.assertEqual([len(x) for x in data.taught(50)], [50, 50])


if __name__ == '__main__':
    unittest.main()
