"""Composes pictures of one object over a background, from cut-outs made by render.py.

A cut-out is one view of an exemplar, which is a 3D model of exemplars.tsv.
"""

import csv
import pathlib

import cv2
import numpy as np

import render

HERE = pathlib.Path(__file__).parent
cv2.setNumThreads(0)  # OpenCV's threads would not survive the fork of a data worker.

PHOTO_SIDE = 640  # Longest side to which background photographs are reduced.


def load_cutouts(folder, split):
    """Returns a dict from each class to its exemplars in a split. An exemplar is an array of its
    views, uint8 [views,S,S,4], which is memory-mapped. Exemplars without a file are left out.
    """
    cutouts = {}
    for exemplar in render.read_exemplars():
        if exemplar['split'] == split:
            path = pathlib.Path(folder) / f'{render.exemplar_seed(exemplar):08x}.npy'
            if path.exists():
                cutouts.setdefault(exemplar['class'], []).append(np.load(path, mmap_mode='r'))
    return cutouts


def load_photos(split, licences=None):
    """Returns the background photographs of a split, uint8 RGB. If `licences` is given, only
    photographs with one of these licences are returned.
    """
    photos = []
    with open(HERE / 'backgrounds.tsv', encoding='utf-8', newline='') as file:
        for row in csv.DictReader(file, delimiter='\t'):
            if row['split'] != split or (licences and row['licence'] not in licences):
                continue
            path = row['picture']
            if path.startswith('skimage:'):
                import skimage
                path = pathlib.Path(skimage.__file__).parent / 'data' / path.split(':')[1]
            image = cv2.imread(str(path), cv2.IMREAD_COLOR)
            scale = min(1, PHOTO_SIDE / max(image.shape[:2]))
            image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            photos.append(cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
    return photos


def random_colour(rng):
    """Returns a random RGB colour in 0..255. Colours near grey are more frequent."""
    grey = rng.uniform(20, 245)
    return np.clip(grey + rng.normal(0, 25, 3) * rng.choice([0.3, 1, 2]), 0, 255)


def plain(rng, size):
    """Returns a picture, float32 [size,size,3], of one colour or of a gradient between two colours.
    """
    a, b = random_colour(rng), random_colour(rng)
    b = a + (b - a) * rng.choice([0, 0.3, 1])
    y, x = np.mgrid[0:size, 0:size] / size
    angle = rng.uniform(0, 2 * np.pi)
    t = np.clip((x - 0.5) * np.cos(angle) + (y - 0.5) * np.sin(angle) + 0.5, 0, 1)
    return (a + (b - a) * t[..., None]).astype(np.float32)


def shapes(rng, canvas):
    """Draws random rectangles, ellipses and lines on the canvas, and returns it. They are clutter
    that has no label.
    """
    size = len(canvas)
    for _ in range(rng.integers(1, 6)):
        colour, (x, y, w, h) = random_colour(rng).tolist(), rng.integers(0, size, 4).tolist()
        kind = rng.integers(3)
        if kind == 0:
            cv2.rectangle(canvas, (x, y), (x + w // 2, y + h // 2), colour, -1)
        elif kind == 1:
            cv2.ellipse(canvas, (x, y), (w // 3 + 1, h // 3 + 1), w, 0, 360, colour, -1)
        else:
            cv2.line(canvas, (x, y), (w, h), colour, int(rng.integers(1, 5)))
    return canvas


def room(rng, size):
    """Returns a picture, float32 [size,size,3], of a wall and a floor. Some have floor boards or a
    second wall.
    """
    canvas, floor = plain(rng, size), random_colour(rng)
    horizon = int(size * rng.uniform(0.45, 0.85))
    if rng.random() < 0.4:
        corner = int(size * rng.uniform(0.1, 0.9))
        canvas[:, corner:] *= rng.uniform(0.7, 0.95)
    canvas[horizon:] = floor
    if rng.random() < 0.6:
        vanish, step = size * rng.uniform(0.2, 0.8), size * rng.uniform(0.1, 0.5)
        for k in range(-12, 13):
            foot = (int(vanish + k * step * 2), size)
            cv2.line(canvas, (int(vanish + k * step * 0.7), horizon), foot,
                     (floor * rng.uniform(0.8, 0.95)).tolist(), 1)
    if rng.random() < 0.5:
        cv2.line(canvas, (0, horizon), (size, horizon), random_colour(rng).tolist(), 2)
    return canvas


def photo_crop(rng, photos, size):
    photo = photos[rng.integers(len(photos))]
    side = int(min(photo.shape[:2]) * rng.uniform(0.25, 1))
    y = rng.integers(0, photo.shape[0] - side + 1)
    x = rng.integers(0, photo.shape[1] - side + 1)
    crop = cv2.resize(photo[y:y + side, x:x + side], (size, size), interpolation=cv2.INTER_AREA)
    return crop[:, ::rng.choice([-1, 1])].astype(np.float32)


def background(rng, photos, size):
    kind = rng.random()
    if kind < 0.55 and photos:
        return photo_crop(rng, photos, size)
    canvas = plain(rng, size) if kind < 0.72 else room(rng, size)
    canvas += rng.normal(0, rng.uniform(0, 8), (size, size, 1)).astype(np.float32)
    return shapes(rng, canvas) if rng.random() < 0.25 else canvas


def paste(rng, canvas, cutout, sides, corner):
    """Draws a cut-out, RGBA with premultiplied alpha, and returns the new canvas.

    The cut-out is scaled to `sides` = (width, height). `corner` = (x, y) is its upper left corner,
    which may be outside of the canvas. Half of the cut-outs get a soft shadow.
    """
    size, (w, h), (x, y) = len(canvas), sides, corner
    interpolation = cv2.INTER_AREA if min(w, h) < len(cutout) else cv2.INTER_LINEAR
    cutout = cv2.resize(cutout, (w, h), interpolation=interpolation).astype(np.float32)
    x0, y0, x1, y1 = max(x, 0), max(y, 0), min(x + w, size), min(y + h, size)
    layer = np.zeros((size, size, 4), np.float32)
    layer[y0:y1, x0:x1] = cutout[y0 - y:y1 - y, x0 - x:x1 - x]
    alpha = layer[..., 3:] / 255
    if rng.random() < 0.5:
        shift = np.float32([[1, 0, rng.uniform(-0.06, 0.06) * size],
                            [0, 1, rng.uniform(0.01, 0.06) * size]])
        shadow = cv2.warpAffine(alpha[..., 0], shift, (size, size))
        shadow = cv2.GaussianBlur(shadow, (0, 0), rng.uniform(0.02, 0.06) * size)
        canvas = canvas * (1 - rng.uniform(0.2, 0.6) * shadow[..., None])
    gain = rng.uniform(0.8, 1.25) * rng.uniform(0.9, 1.1, 3)
    colour = np.minimum(layer[..., :3] * gain, layer[..., 3:])
    return canvas * (1 - alpha) + colour


def camera(rng, canvas):
    """Imitates a camera. Changes brightness and contrast at random, and may add blur, noise and
    JPEG artefacts. Returns uint8 RGB.
    """
    canvas = (canvas - 128) * rng.uniform(0.8, 1.2) + 128 + rng.uniform(-20, 20)
    if rng.random() < 0.3:
        canvas = cv2.GaussianBlur(canvas, (0, 0), rng.uniform(0.3, 1))
    if rng.random() < 0.5:
        canvas = canvas + rng.normal(0, rng.uniform(0, 5), canvas.shape)
    picture = np.clip(canvas, 0, 255).astype(np.uint8)
    if rng.random() < 0.5:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(50, 96))]
        picture = cv2.imdecode(cv2.imencode('.jpg', picture, quality)[1], cv2.IMREAD_COLOR)
    return picture


def vary(rng, cutout):
    """Mirrors, turns and recolours a cut-out at random. Its alpha is premultiplied, before and
    after.
    """
    cutout = np.ascontiguousarray(cutout[:, ::rng.choice([-1, 1])])
    if rng.random() < 0.2:
        centre = len(cutout) / 2
        turn = cv2.getRotationMatrix2D((centre, centre), rng.uniform(-15, 15), 1)
        cutout = cv2.warpAffine(cutout, turn, cutout.shape[:2])
    if rng.random() < 0.1:
        cutout = cutout[..., [*rng.permutation(3), 3]]
    return cutout


def training_canvas(rng, cutout, photos, size):
    """Returns a picture, float32 [size,size,3], to be given to camera(). The object may be
    stretched, and may extend a little beyond the picture's edges.
    """
    side, stretch = size * rng.uniform(0.55, 1.05), np.exp(rng.uniform(-0.12, 0.12))
    sides = int(side * stretch), int(side / stretch)
    corner = []
    for length in sides:
        slack, out = size - length, length // 10
        low, high = (-out, slack + out) if slack >= 0 else (slack - out, out)
        corner.append(rng.integers(low, high + 1))
    canvas = paste(rng, background(rng, photos, size), vary(rng, cutout), sides, corner)
    if rng.random() < 0.05:
        canvas = np.repeat(canvas.mean(axis=2, keepdims=True), 3, axis=2)
    return canvas.astype(np.float32)


def test_picture(rng, cutout, photos, size):
    """Returns a picture, uint8 [size,size,3], with the whole object. The cut-out's side is 60 to
    98 % of the picture's side.
    """
    side = int(size * rng.uniform(0.6, 0.98))
    corner = rng.integers(0, size - side + 1, 2)
    canvas = background(rng, photos, size)
    return camera(rng, paste(rng, canvas, np.ascontiguousarray(cutout), (side, side), corner))


def test_set(cutouts, labels, photos, size, views, seed=20):
    """Returns (pictures uint8 [n,size,size,3], classes [n]). There are up to `views` pictures of
    each exemplar, each of another view. A class's number is its index in `labels`.
    """
    rng = np.random.default_rng(seed)
    pictures, classes = [], []
    for index, label in enumerate(labels):
        for exemplar in cutouts.get(label, []):
            for view in rng.permutation(len(exemplar))[:views]:
                pictures.append(test_picture(rng, exemplar[view], photos, size))
                classes.append(index)
    return np.stack(pictures), np.array(classes)
