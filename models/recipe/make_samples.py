"""Makes client/samples: three photographs, eight renders of 3D models held out for testing, and
four scenes that show several such models.

    python make_samples.py --out client/samples

A seeded generator chooses the models for the renders, one from each of eight classes. It does not
depend on the classifier's answers. compose.py paints the backgrounds, so that only the creators of
the models must be credited. There is one exception: the background of a scene may be a held-out
photograph, which CREDITS.md names.
"""

import argparse
import pathlib

import numpy as np
import skimage
from PIL import Image

import compose
import credits
import furniture
import render
import scenes

SEED, COUNT, SIDE = 20, 8, 400
SCENE_SEED, SCENES, OBJECTS, SHAPE = 9, 4, 4, (420, 560)  # OBJECTS per scene, SHAPE in pixels.
PHOTOS = {'coffee.jpg': 'coffee.png', 'astronaut.jpg': 'astronaut.png', 'chelsea.jpg': 'chelsea.png'}
PHOTO_CREDITS = '''
Photographs, as shipped with scikit-image, recompressed:

| file | source |
|---|---|
| coffee.jpg | a cup of coffee; Rachel Michetti, CC0 |
| astronaut.jpg | Eileen Collins; NASA, public domain |
| chelsea.jpg | a cat, which is no class of ours; Stefan van der Walt, CC0 |
'''
BACKGROUND_CREDIT = '''
Behind some pictures, cut out and resized: "sunset" by Aitzol Berasategi, CC-BY 4.0
(https://creativecommons.org/licenses/by/4.0/), from Debian's lomiri-wallpapers-16.04.
'''


def draw_exemplars(rng):
    """Yields one test exemplar from each of COUNT classes, all chosen at random."""
    held_out = [e for e in render.read_exemplars() if e['split'] == 'test']
    labels = rng.choice(sorted({e['class'] for e in held_out}), COUNT, replace=False)
    for label in labels:
        group = [e for e in held_out if e['class'] == label]
        yield group[rng.integers(len(group))]


def cut_out(rasterize, exemplar, rng):
    mesh = furniture.read_mesh(furniture.read_catalogue()[exemplar['id']])
    return render.render(rasterize, mesh, rng, exemplar['class'], size=int(SIDE * 0.8))


def make_scene(rasterize, rng, photos):
    """Returns a picture and the exemplars in it. Each is a test exemplar of another class."""
    held_out = [e for e in render.read_exemplars() if e['split'] == 'test']
    chosen, objects = [], []
    for label in rng.choice(sorted({e['class'] for e in held_out}), OBJECTS, replace=False):
        group = [e for e in held_out if e['class'] == label]
        chosen.append(group[rng.integers(len(group))])
        longest = min(SHAPE) * rng.uniform(0.35, 0.7)
        objects.append((0, cut_out(rasterize, chosen[-1], rng), longest))
    return scenes.compose_scene(rng, objects, photos, SHAPE).picture, chosen


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

    def save(name, picture, shown):
        Image.fromarray(picture).save(args.out / name, quality=92)
        rows.extend(f'{name}\t{e["class"]}\t{e["id"]}\n' for e in shown)

    for number, exemplar in enumerate(exemplars, 1):
        picture = compose.test_picture(rng, cut_out(rasterize, exemplar, rng), [], SIDE)
        save(f'render_{number:02}.jpg', picture, [exemplar])
    rng, photos = np.random.default_rng(SCENE_SEED), compose.load_photos('test', ['CC-BY-4.0'])
    for number in range(1, SCENES + 1):
        picture, shown = make_scene(rasterize, rng, photos)
        save(f'scene_{number:02}.jpg', picture, shown)
        exemplars += shown
    (args.out / 'samples.tsv').write_text('file\tclass\tmodel\n' + ''.join(rows), encoding='utf-8')
    intro = 'The files render_*.jpg and scene_*.jpg are pictures of these 3D models; see samples.tsv.'
    once = {e['id']: e for e in exemplars}.values()
    text = credits.of(once, intro) + PHOTO_CREDITS + BACKGROUND_CREDIT
    (args.out / 'CREDITS.md').write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
