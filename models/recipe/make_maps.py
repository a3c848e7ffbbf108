"""Cuts training pictures out of photographs, and writes the maps that the trunk makes of them.

    python make_maps.py --photographs FOLDER ... --stamps FOLDER ... --out MAPS --count 50000

The program reads all pictures in the folders and their subfolders. It cuts the photographs at many
scales. A stamp is a picture with an alpha channel. Stamps are laid over some of the cuts, so that a
few photographs show many things.

MAPS receives files of 1000 maps, float16 [1000,192,7,7]. A map is the output of
EfficientNet-Lite0's layers down to stride 32. distill.py needs only these files, no pictures and no
labels. It can start when the first file exists. Several processes can share the work. For example,
one has the options --part 0 --parts 2, and the other has --part 1 --parts 2.
"""

import argparse
import io
import pathlib

import cv2
import numpy as np
import torch
from PIL import Image

from configs import PHOTOGRAPHS_SIZE as SIZE
from lite_trunk import LiteTrunk
from make_pictures import runner
from pictures import SUFFIXES, preprocess

FILE, BATCH = 1000, 20         # Pictures per file, and per call of the trunk.
LARGEST = 1600                 # Short side in pixels to which larger photographs are reduced.
LEAST_STAMP = 48               # Smaller stamps are left out. The longest side in pixels counts.
WHOLE, STAMPED = 0.08, 0.55    # Shares of pictures: a photograph's centre, a cut with a stamp.
LEAST_CUT = 0.1                # Smallest side of a cut / the photograph's short side.
GREY = 0.1                     # Share of pictures without colour.
LEAST_PIXELS = 80              # Smallest side of a cut in pixels, unless the photograph is smaller.


class Trunk(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = LiteTrunk(32).load_imagenet()

    def forward(self, x):
        return self.trunk(x)[-1]


def files_in(folders):
    """Returns all pictures in the folders and their subfolders, in a fixed order."""
    paths = {path for folder in folders for path in pathlib.Path(folder).rglob('*')
             if path.suffix.lower() in SUFFIXES and path.is_file() and not path.is_symlink()}
    return sorted(paths)


def reduced(image, short):
    """Returns the picture, reduced if its short side has more than `short` pixels."""
    scale = short / min(image.size)
    if scale >= 1:
        return image
    return image.resize([round(side * scale) for side in image.size], Image.LANCZOS)


def load_photographs(folders):
    """Returns a list of photographs, uint8 [H,W,3]. Leaves out photographs with little contrast and
    small ones."""
    pictures = []
    for path in files_in(folders):
        with Image.open(path) as image:
            picture = np.asarray(reduced(image.convert('RGB'), LARGEST))
        if picture[::8, ::8].std() > 6 and min(picture.shape[:2]) >= SIZE // 2:
            pictures.append(picture)
    return pictures


def load_stamps(folders):
    """Returns a list of stamps, uint8 [H,W,4], cropped to what is not transparent. Leaves out small
    stamps and pictures without an alpha channel."""
    stamps = []
    for path in files_in(folders):
        with Image.open(path) as image:
            if 'A' not in image.getbands() and 'transparency' not in image.info:
                continue
            image = reduced(image.convert('RGBA'), 2 * SIZE)
        box = image.getchannel('A').getbbox()
        if box and max(box[2] - box[0], box[3] - box[1]) >= LEAST_STAMP:
            stamps.append(np.asarray(image.crop(box)))
    return stamps


def cut(rng, photo, least=LEAST_CUT):
    """Cuts out a rectangle of random size and place. Returns it resized to uint8 [SIZE,SIZE,3]."""
    high, wide = photo.shape[:2]
    short = min(high, wide)
    least = min(1, max(least, LEAST_PIXELS / short))
    side = short * np.exp(rng.uniform(np.log(least), 0))
    aspect = np.exp(rng.uniform(-0.28, 0.28))
    w, h = (int(max(16, min(limit, side * a)))
            for limit, a in ((wide, aspect), (high, 1 / aspect)))
    x, y = rng.integers(0, wide - w + 1), rng.integers(0, high - h + 1)
    method = cv2.INTER_AREA if w > SIZE else cv2.INTER_CUBIC
    return cv2.resize(photo[y:y + h, x:x + w], (SIZE, SIZE), interpolation=method)


def lay(rng, picture, stamp):
    """Returns `picture` with `stamp` over it, rotated a little, at a random size and place."""
    wide = SIZE * np.exp(rng.uniform(np.log(0.35), np.log(1.15))) / max(stamp.shape[:2])
    angle = rng.normal(0, 8)
    matrix = cv2.getRotationMatrix2D((stamp.shape[1] / 2, stamp.shape[0] / 2), angle, wide)
    centre = SIZE * np.clip(rng.normal(0.5, 0.13, 2), 0.15, 0.85)
    matrix[:, 2] += centre - np.array(stamp.shape[1::-1]) / 2
    if wide < 0.7:  # warpAffine() does not smooth when it reduces.
        half = 0.5 / wide
        stamp = cv2.GaussianBlur(stamp, (0, 0), half * 0.7)
    alpha = stamp[..., 3:].astype(np.float32) / 255
    layer = np.concatenate([stamp[..., :3] * alpha, alpha], axis=2)
    layer = cv2.warpAffine(layer, matrix, (SIZE, SIZE), flags=cv2.INTER_LINEAR)
    return picture * (1 - layer[..., 3:]) + layer[..., :3]


def shaken(rng, picture):
    """Blurs the picture as if the camera had moved along a line."""
    length, angle = rng.integers(3, 20), rng.uniform(0, np.pi)
    kernel = np.zeros((length, length), np.float32)
    half = (length - 1) / 2
    along = np.linspace(-half, half, 4 * length)
    rows, columns = (np.round(half + along * f(angle)).astype(int) for f in (np.sin, np.cos))
    kernel[rows, columns] = 1
    return cv2.filter2D(picture, -1, kernel / kernel.sum())


def camera(rng, picture, grey=GREY):
    """Varies a picture at random, as cameras do, and returns uint8.

    It may be mirrored, have another light, lose its colours, have noise, be blurred or compressed
    as JPEG. `grey` is the share of pictures without colour.
    """
    picture = picture[:, ::rng.choice([-1, 1])].astype(np.float32)
    if rng.random() < 0.7:
        picture = picture * (rng.uniform(0.75, 1.25) * rng.uniform(0.92, 1.08, 3))
        picture = (picture - 128) * rng.uniform(0.8, 1.2) + 128 + rng.uniform(-12, 12)
    if rng.random() < grey:
        picture = np.repeat(picture.mean(axis=2, keepdims=True), 3, axis=2)
    if rng.random() < 0.1:
        picture = picture + rng.normal(0, rng.uniform(2, 12), picture.shape[:2])[..., None]
    picture = np.ascontiguousarray(np.clip(picture, 0, 255).astype(np.uint8))
    if rng.random() < 0.2:
        picture = cv2.GaussianBlur(picture, (0, 0), rng.uniform(0.4, 1.4))
    elif rng.random() < 0.08:
        picture = shaken(rng, picture)
    if rng.random() < 0.3:
        file = io.BytesIO()
        Image.fromarray(picture).save(file, 'JPEG', quality=int(rng.integers(40, 95)))
        picture = np.asarray(Image.open(file))
    return picture


def draw(rng, photographs, stamps, args):
    """Returns a random training picture.

    `args` has the shares of whole, stamped and grey pictures, and the smallest side of a cut.
    """
    photo = photographs[rng.integers(len(photographs))]
    kind = rng.random()
    if kind < args.whole:
        picture = preprocess(Image.fromarray(photo), SIZE)
    elif kind < args.whole + args.stamped and stamps:
        picture = cut(rng, photo, args.least_cut)
        for _ in range(rng.choice([1, 2], p=[0.85, 0.15])):
            picture = lay(rng, picture, stamps[rng.integers(len(stamps))])
    else:
        picture = cut(rng, photo, args.least_cut)
    return camera(rng, picture, args.grey)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--photographs', nargs='+', required=True)
    parser.add_argument('--stamps', nargs='*', default=[])
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--count', type=int, default=50000)
    parser.add_argument('--whole', type=float, default=WHOLE, help='share of whole photographs')
    parser.add_argument('--stamped', type=float, default=STAMPED, help='share with a stamp')
    parser.add_argument('--grey', type=float, default=GREY, help='share without colour')
    parser.add_argument('--least_cut', type=float, default=LEAST_CUT,
                        help="least side of a cut, as a part of the photograph's")
    parser.add_argument('--part', type=int, default=0)
    parser.add_argument('--parts', type=int, default=1)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    cv2.setNumThreads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    photographs, stamps = load_photographs(args.photographs), load_stamps(args.stamps)
    print(f'{len(photographs)} photographs, {len(stamps)} stamps')
    run = runner(Trunk(), SIZE)
    files = range(args.part, args.count // FILE, args.parts)
    for done, number in enumerate(files, 1):
        path = args.out / f'{number:04}.npy'
        if not path.exists():
            rng = np.random.default_rng((args.seed, number))
            maps = [run(np.stack([draw(rng, photographs, stamps, args) for _ in range(BATCH)]))
                    for _ in range(FILE // BATCH)]
            new = path.with_suffix('.new')
            with open(new, 'wb') as file:
                np.save(file, np.concatenate(maps))
            new.rename(path)
        print(f'\r{done} of {len(files)} files', end='', flush=True)


if __name__ == '__main__':
    main()
