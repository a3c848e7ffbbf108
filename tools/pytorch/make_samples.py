"""Makes client/samples: three photographs and eight renders of models held out for testing.

    python make_samples.py --out client/samples

The models are drawn by a seeded generator, one from each of eight classes, whatever the
classifier answers on them. Backgrounds are drawn by compose.py, so that the pictures owe
nothing to anyone but the models' creators.
"""

import argparse
import pathlib

import numpy as np
import skimage
from PIL import Image

import compose
import export
import furniture
import render

SEED, COUNT, SIDE = 20, 8, 400
PHOTOS = {'coffee.jpg': 'coffee.png', 'astronaut.jpg': 'astronaut.png', 'chelsea.jpg': 'chelsea.png'}
PHOTO_CREDITS = '''
Photographs, as shipped with scikit-image, recompressed:

| file | source |
|---|---|
| coffee.jpg | a cup of coffee; Rachel Michetti, CC0 |
| astronaut.jpg | Eileen Collins; NASA, public domain |
| chelsea.jpg | a cat, which is no class of ours; Stefan van der Walt, CC0 |
'''


def draw_exemplars(rng):
    """One test exemplar from each of COUNT classes."""
    held_out = [e for e in render.read_exemplars() if e['split'] == 'test']
    labels = rng.choice(sorted({e['class'] for e in held_out}), COUNT, replace=False)
    for label in labels:
        group = [e for e in held_out if e['class'] == label]
        yield group[rng.integers(len(group))]


def render_sample(rasterize, exemplar, rng):
    mesh = furniture.read_mesh(furniture.read_catalogue()[exemplar['id']])
    cutout = render.render(rasterize, mesh, rng, exemplar['class'], size=int(SIDE * 0.8))
    return compose.test_picture(rng, cutout, [], SIDE)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for target, source in PHOTOS.items():
        image = Image.open(pathlib.Path(skimage.__file__).parent / 'data' / source)
        image.convert('RGB').save(args.out / target, quality=92)
    rasterize, rng, rows = render.build_rasterizer(), np.random.default_rng(SEED), []
    exemplars = list(draw_exemplars(rng))
    for number, exemplar in enumerate(exemplars, 1):
        name = f'render_{number:02}.jpg'
        picture = render_sample(rasterize, exemplar, rng)
        Image.fromarray(picture).save(args.out / name, quality=92)
        rows.append(f'{name}\t{exemplar["class"]}\t{exemplar["id"]}\n')
    (args.out / 'samples.tsv').write_text('file\tclass\tmodel\n' + ''.join(rows), encoding='utf-8')
    intro = 'The files render_*.jpg are pictures of these 3D models; see samples.tsv.'
    text = export.credits(exemplars, intro) + PHOTO_CREDITS
    (args.out / 'CREDITS.md').write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
