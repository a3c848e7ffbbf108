r"""Makes the small set of photographs that the tests send through the server.

    python make_held_out_photographs.py --photographs FOLDER \
        --labels ../../models/photographs/1/labels.txt --out ../../tests/e2e/testdata/held_out

FOLDER has the pictures of scikit-image's skimage/data, which no training sees. The program uses
the pictures of the list PICTURES, which are in the public domain or CC0. It writes crops of each
picture to --out/photographs/CLASS/, where CLASS is the answer of the complete EfficientNet-Lite0
for this crop. So `sfmamba eval` measures how often a model agrees with this network.
"""

import argparse
import pathlib

import numpy as np
import torch
from PIL import Image

from configs import MEAN, PHOTOGRAPHS_SIZE as SIZE, STD
from pictures import preprocess
from lite_trunk import LiteTail, LiteTrunk

PICTURES = ('astronaut.png', 'camera.png', 'chelsea.png', 'coffee.png', 'rocket.jpg')
CROPS = 16       # Per picture. The first crop is the picture's centre.
LEAST = 0.45     # Smallest side of a crop, as a fraction of the picture's short side.
QUALITY = 88
SEED = 43


def crops(picture, rng):
    """Yields square parts of the picture, resized to SIZE x SIZE."""
    yield Image.fromarray(preprocess(picture, SIZE))
    for _ in range(CROPS - 1):
        side = round(min(picture.size) * rng.uniform(LEAST, 1))
        x, y = (int(rng.integers(0, whole - side + 1)) for whole in picture.size)
        yield picture.crop((x, y, x + side, y + side)).resize((SIZE, SIZE), Image.LANCZOS)


@torch.inference_mode()
def answer(teacher, path):
    """Returns the number of the class that the teacher gives to the picture in this file."""
    x = torch.from_numpy(np.asarray(Image.open(path))).permute(2, 0, 1)[None] / 255
    x = (x - MEAN.view(-1, 1, 1)) / STD.view(-1, 1, 1)
    trunk, tail = teacher
    return int(tail(trunk(x)[-1])[-1].argmax())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--photographs', type=pathlib.Path, required=True)
    parser.add_argument('--labels', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    args = parser.parse_args()
    labels = args.labels.read_text(encoding='utf-8').splitlines()
    teacher = [part.load_imagenet().eval() for part in (LiteTrunk(32), LiteTail())]
    rng = np.random.default_rng(SEED)
    folder = args.out / 'photographs'
    folder.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        picture = Image.open(args.photographs / name).convert('RGB')
        for number, crop in enumerate(crops(picture, rng)):
            path = folder / f'{pathlib.Path(name).stem}_{number:02}.jpg'
            crop.save(path, quality=QUALITY)
            label = labels[answer(teacher, path)]
            (folder / label).mkdir(exist_ok=True)
            path.rename(folder / label / path.name)


if __name__ == '__main__':
    main()
