"""Composes scenes of several objects with their boxes, masks and class map.

The cut-outs and the backgrounds come from compose.py, with the same splits.
"""

import dataclasses

import cv2
import numpy as np
import torch

import compose

MAX_OBJECTS = 6
LARGEST, SMALLEST = 0.95, 0.2  # Longest side of an object, as a share of the scene's short side.
# An object has no label if a smaller share of it is visible, or if its visible part has a shorter
# side in pixels.
MIN_VISIBLE, MIN_SIDE = 0.25, 8
IGNORE = 255  # Marks the half-covered rim of an object in a class map.


@dataclasses.dataclass
class Scene:
    picture: np.ndarray    # uint8 [H,W,3]
    boxes: np.ndarray      # float32 [n,4], tight around the visible part
    labels: np.ndarray     # int64 [n]
    masks: np.ndarray      # uint8 [n,H,W] 0 or 1, the visible part
    class_map: np.ndarray  # uint8 [H,W]: 0 background, label + 1, or IGNORE


def exemplars_of(cutouts, labels):
    """Returns [(index of the label, views)] of all exemplars, and the probability of each.

    The probability of a class with n exemplars is proportional to sqrt(n). So a large class is
    drawn more often than a small one, but each of its exemplars is drawn less often.
    """
    exemplars = [(k, views) for k, label in enumerate(labels) for views in cutouts.get(label, [])]
    counts = np.bincount([k for k, _ in exemplars], minlength=len(labels))
    weights = np.array([counts[k] ** -0.5 for k, _ in exemplars])
    return exemplars, weights / weights.sum()


def trim(cutout):
    """Returns the part of a cut-out [S,S,4] that is not transparent, or None if there is none."""
    ys, xs = np.nonzero(cutout[..., 3] > 25)
    if not len(ys):
        return None
    return cutout[ys.min():ys.max() + 1, xs.min():xs.max() + 1]


def scaled(rng, cutout, longest):
    """Returns the cut-out as float32 in 0..255. Its longest side has about `longest` pixels. Its
    proportions and colours vary a little at random."""
    h, w = cutout.shape[:2]
    scale, stretch = longest / max(h, w), np.exp(rng.uniform(-0.1, 0.1))
    sides = max(int(w * scale * stretch), 2), max(int(h * scale / stretch), 2)
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    cutout = cv2.resize(np.ascontiguousarray(cutout), sides, interpolation=interpolation)
    gain = rng.uniform(0.8, 1.25) * rng.uniform(0.9, 1.1, 3)
    cutout = cutout.astype(np.float32)
    cutout[..., :3] = np.minimum(cutout[..., :3] * gain, cutout[..., 3:])
    return cutout


def place(rng, sides, shape, owners):
    """Returns the corner (x, y) of a new object.

    Draws three random corners and takes the one at which the object covers the fewest pixels of
    other objects. About a tenth of each side may lie outside the scene.
    """
    corners = []
    for _ in range(3):
        corner = [rng.integers(-side // 10, max(whole - side + side // 10, 0) + 1)
                  for side, whole in zip(sides, shape[::-1])]
        x, y = (max(c, 0) for c in corner)
        covered = np.count_nonzero(owners[y:y + sides[1], x:x + sides[0]])
        corners.append((covered, *corner))
    return min(corners)[1:]


def shade(rng, canvas, alpha, x, y):
    """Darkens the canvas by the soft shadow of an object at (x, y)."""
    h, w = canvas.shape[:2]
    layer = np.zeros((h, w), np.float32)
    x0, y0, x1, y1 = max(x, 0), max(y, 0), min(x + alpha.shape[1], w), min(y + alpha.shape[0], h)
    layer[y0:y1, x0:x1] = alpha[y0 - y:y1 - y, x0 - x:x1 - x]
    side = max(alpha.shape)
    shift = np.float32([[1, 0, rng.uniform(-0.06, 0.06) * side],
                        [0, 1, rng.uniform(0.01, 0.06) * side]])
    layer = cv2.GaussianBlur(cv2.warpAffine(layer, shift, (w, h)), (0, 0),
                             rng.uniform(0.02, 0.06) * side)
    canvas *= 1 - rng.uniform(0.2, 0.6) * layer[..., None]


def label(owners, classes, areas):
    """Returns the boxes, labels and masks of the objects that are visible enough."""
    boxes, labels, masks = [], [], []
    for number, (k, area) in enumerate(zip(classes, areas), 1):
        mask = owners == number
        ys, xs = np.nonzero(mask)
        if len(ys) < MIN_VISIBLE * area or not len(ys):
            continue
        box = xs.min(), ys.min(), xs.max() + 1, ys.max() + 1
        if min(box[2] - box[0], box[3] - box[1]) >= MIN_SIDE:
            boxes.append(box)
            labels.append(k)
            masks.append(mask)
    return (np.array(boxes, np.float32).reshape(-1, 4), np.array(labels, np.int64),
            np.array(masks, np.uint8).reshape(-1, *owners.shape))


def draw_objects(rng, exemplars, probabilities, shape, varied):
    """Draws 1 to MAX_OBJECTS random objects. Returns (label, cut-out, longest side in pixels) of
    each, back to front. If `varied`, compose.vary() changes the cut-outs."""
    objects = []
    count = int(rng.integers(1, MAX_OBJECTS + 1))
    largest = LARGEST / count**0.25
    for index in rng.choice(len(exemplars), count, p=probabilities):
        k, views = exemplars[index]
        cutout = np.asarray(views[rng.integers(len(views))])
        share = np.exp(rng.uniform(np.log(SMALLEST), np.log(largest)))
        objects.append((k, compose.vary(rng, cutout) if varied else cutout, min(shape) * share))
    return objects


def compose_scene(rng, objects, photos, shape):
    """Composes `objects`, a result of draw_objects(), into a Scene of `shape` = (H, W) pixels."""
    h, w = shape
    canvas = compose.background(rng, photos, max(shape))[:h, :w].astype(np.float32)
    class_map = np.zeros(shape, np.uint8)
    owners = np.zeros(shape, np.uint8)  # The number of the object in front, from 1, or 0.
    classes, areas = [], []
    for k, cutout, longest in objects:
        cutout = trim(cutout)
        if cutout is None:
            continue
        cutout = scaled(rng, cutout, longest)
        alpha = cutout[..., 3] / 255
        x, y = place(rng, alpha.shape[::-1], shape, owners)
        if rng.random() < 0.5:
            shade(rng, canvas, alpha, x, y)
        x0, y0 = max(x, 0), max(y, 0)
        x1, y1 = min(x + alpha.shape[1], w), min(y + alpha.shape[0], h)
        part = np.s_[y0:y1, x0:x1]
        colour, inside = (a[y0 - y:y1 - y, x0 - x:x1 - x] for a in (cutout[..., :3], alpha))
        canvas[part] = canvas[part] * (1 - inside[..., None]) + colour
        classes.append(k)
        areas.append(np.count_nonzero(alpha > 0.5))
        owners[part][inside > 0.5] = len(classes)
        class_map[part][inside > 0.5] = k + 1
        class_map[part][(inside > 0.1) & (inside <= 0.5)] = IGNORE
    return Scene(compose.camera(rng, canvas), *label(owners, classes, areas), class_map)


def collate(scenes):
    """Returns a batch of scenes. Pictures and class maps are stacked, uint8 [N,H,W,...]. The other
    fields are lists, because scenes have different numbers of objects."""
    return dict(pictures=torch.from_numpy(np.stack([s.picture for s in scenes])),
                class_maps=torch.from_numpy(np.stack([s.class_map for s in scenes])),
                boxes=[torch.from_numpy(s.boxes) for s in scenes],
                labels=[torch.from_numpy(s.labels) for s in scenes],
                masks=[torch.from_numpy(s.masks) for s in scenes])


def shapes(short):
    """Returns ((height, width), probability) of each shape of scenes with this short side."""
    long = short * 4 // 3 // 32 * 32  # A multiple of 32, the largest stride.
    return ((short, short), 0.5), ((short, long), 0.3), ((long, short), 0.2)


class Scenes(torch.utils.data.IterableDataset):
    """Endless batches of scenes.

    `size` is a multiprocessing.Value, which the training can change. Each batch reads the short
    side of its scenes from it.
    """

    def __init__(self, cutouts, labels, photos, size, batch, seed):
        self.exemplars, self.probabilities = exemplars_of(cutouts, labels)
        self.photos, self.size, self.batch, self.seed = photos, size, batch, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        while True:
            options, weights = zip(*shapes(self.size.value))
            shape = options[rng.choice(len(options), p=weights)]
            yield collate([self.draw(rng, shape) for _ in range(self.batch)])

    def draw(self, rng, shape):
        objects = draw_objects(rng, self.exemplars, self.probabilities, shape, varied=True)
        scene = compose_scene(rng, objects, self.photos, shape)
        if rng.random() < 0.05:
            scene.picture = np.repeat(cv2.cvtColor(scene.picture, cv2.COLOR_RGB2GRAY)[..., None],
                                      3, axis=2)
        return scene


def test_set(cutouts, labels, photos, short, count, seed=20):
    """Composes scenes for validation and tests. The objects are not changed by compose.vary(). The
    scenes have the shapes of shapes() in turn."""
    options = [shape for shape, _ in shapes(short)]
    rng = np.random.default_rng(seed)
    exemplars, probabilities = exemplars_of(cutouts, labels)
    result = []
    for i in range(count):
        shape = options[i % len(options)]
        objects = draw_objects(rng, exemplars, probabilities, shape, varied=False)
        result.append(compose_scene(rng, objects, photos, shape))
    return result
