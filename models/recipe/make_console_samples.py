"""Draws the console's sample scenes from 3D models of the test split, each at a fixed place.

    python make_console_samples.py --out ../../client/console

Nothing is random here, unlike in make_samples.py. The samples show what the detector and the
segmenter can do on objects that neither was trained on. The program also crops two photographs of
client/samples.
"""

import argparse
import pathlib

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

import furniture
import render

WIDTH, HEIGHT = 960, 720
ELEVATION, FIELD = 14, 30  # The camera's elevation and field of view, in degrees.
QUALITY = 70  # Of the WebP files.
# A scene has the horizon's row, two background colours above the horizon, two below it, and the
# objects. The first of two colours is at the top, and changes gradually to the second. The furthest
# object comes first. An object has an id, its rotation in degrees, its longest side in pixels, the
# column of its centre and the row of its lower edge.
SCENES = {
    'room': (400, ((222, 216, 205), (203, 196, 184)), ((158, 126, 96), (186, 154, 122)), [
        ('Scopia#kids_shelves', 20, 330, 140, 440),
        ('Blend Swap CC-BY#mediumIndoorPlant', 20, 270, 480, 450),
        ('Blend Swap CC-0#winchesterArmchair', -28, 310, 792, 520),
        ('Scopia#saloon_table', 28, 340, 270, 660),
        ('Blend Swap CC-BY#chairWithCushion', -35, 300, 640, 690),
    ]),
    'street': (360, ((150, 190, 226), (221, 233, 241)), ((118, 120, 124), (142, 143, 146)), [
        ('Scopia#poplar', 0, 330, 130, 400),
        ('Scopia#truck', -30, 400, 500, 450),
        ('Scopia#palm', 0, 400, 850, 420),
        ('Scopia#chevrolet', 40, 430, 290, 660),
        ('Blend Swap CC-BY#bike', 60, 270, 740, 660),
    ]),
}
PHOTOGRAPHS_FROM = render.HERE.parents[1] / 'client/samples'
PHOTOGRAPHS = {'photographer': ('camera.jpg', (0, 128, 512, 512)), 'cat': ('chelsea.jpg', None)}


def light(view):
    """Returns the light, which comes from the upper left. It is the same for all objects."""
    result = np.zeros(1, render.LIGHT)
    result['key'] = np.array([-0.5, 0.8, 0.9]) / np.linalg.norm([-0.5, 0.8, 0.9])
    result['up'] = view @ [0, 1, 0]
    result['ambient'], result['strength'] = 0.62, 0.55
    return result


def cut_out(rasterize, mesh, turned, size):
    """Renders the object as an RGBA picture, cropped to the object. Its longest side has about
    `size` pixels."""
    view = render.rotation(*np.radians((turned, ELEVATION, 0)))
    drawn = render.draw(rasterize, mesh, render.pack_materials(mesh, None, False), view,
                        np.radians(FIELD), light(view), size).astype(float)
    drawn[..., :3] *= 255 / np.maximum(drawn[..., 3:], 1)  # Undoes the premultiplication by alpha.
    picture = Image.fromarray(np.clip(drawn, 0, 255).astype(np.uint8), 'RGBA')
    return picture.crop(picture.getchannel('A').getbbox())


def backdrop(horizon, above, below):
    """Returns a background with a colour gradient above the row `horizon` and one below it."""
    def band(height, colours):
        first, last = (np.array(colour, float) for colour in colours)
        return first + (last - first) * np.linspace(0, 1, height)[:, None]
    column = np.concatenate([band(horizon, above), band(HEIGHT - horizon, below)])
    return Image.fromarray(np.tile(column[:, None], (1, WIDTH, 1)).astype(np.uint8))


def set_down(scene, thing, centre, foot):
    """Pastes the picture `thing` into the scene, over a soft shadow. `centre` is the column of its
    centre, and `foot` is the row of its lower edge."""
    width, height = thing.size
    shadow = Image.new('L', scene.size)
    ImageDraw.Draw(shadow).ellipse(
        (centre - 0.5 * width, foot - 0.13 * width, centre + 0.5 * width, foot + 0.03 * width),
        fill=110)
    scene.paste((30, 30, 35), mask=shadow.filter(ImageFilter.GaussianBlur(0.04 * width)))
    scene.paste(thing, (centre - width // 2, foot - height), thing)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    args = parser.parse_args()
    rasterize, catalogue = render.build_rasterizer(), furniture.read_catalogue()
    pictures = {}
    for name, (horizon, above, below, things) in SCENES.items():
        pictures[name] = scene = backdrop(horizon, above, below)
        for ident, turned, size, centre, foot in things:
            mesh = furniture.read_mesh(catalogue[ident])
            set_down(scene, cut_out(rasterize, mesh, turned, size), centre, foot)
    for name, (source, part) in PHOTOGRAPHS.items():
        pictures[name] = Image.open(PHOTOGRAPHS_FROM / source).convert('RGB').crop(part)
    for name, picture in pictures.items():
        picture.save(args.out / f'{name}.webp', quality=QUALITY, method=6)


if __name__ == '__main__':
    main()
