"""Makes the small held-out sets that the tests send through the server.

    python make_held_out.py --cutouts CUTOUTS --out tests/e2e/testdata/held_out

Writes three datasets that `sfmamba eval` can read. things/ has a folder of pictures for each class.
scenes/ has images with two kinds of labels: annotations.json (COCO) and class maps in maps/. All
objects are from the test split. A background is synthetic, or a part of a photograph whose licence
allows redistribution.
"""

import argparse
import json
import pathlib

import cv2
import numpy as np
from PIL import Image
from pycocotools import mask as rle

import compose
import configs
import credits
import make_samples
import render
import scenes

VIEWS = 2    # Pictures of each exemplar (3D model).
SCENES = 48
SEED = 41
QUALITY = 92


def write_things(out, cutouts, labels, photos):
    pictures, classes = compose.test_set(cutouts, labels, photos, configs.SIZE, VIEWS,
                                         SEED)
    for number, (picture, k) in enumerate(zip(pictures, classes)):
        folder = out / 'things' / labels[k]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f'{number:03}.jpg', quality=QUALITY)


def annotation(box, label, mask):
    counts = rle.encode(np.asfortranarray(mask, dtype=np.uint8))
    return dict(category_id=int(label), iscrowd=0, area=int(mask.sum()),
                bbox=[float(box[0]), float(box[1]), float(box[2] - box[0]),
                      float(box[3] - box[1])],
                segmentation=dict(size=[int(side) for side in counts['size']],
                                  counts=counts['counts'].decode('ascii')))


def write_scenes(out, cutouts, labels, photos):
    held_out = scenes.test_set(cutouts, labels, photos, configs.SHORT, SCENES, SEED)
    images, annotations = [], []
    for folder in ('images', 'maps'):
        (out / 'scenes' / folder).mkdir(parents=True, exist_ok=True)
    for number, scene in enumerate(held_out, 1):
        name = f'{number:03}'
        Image.fromarray(scene.picture).save(out / 'scenes/images' / f'{name}.jpg',
                                            quality=QUALITY)
        cv2.imwrite(str(out / 'scenes/maps' / f'{name}.png'), scene.class_map,
                    [cv2.IMWRITE_PNG_COMPRESSION, 9])
        height, width = scene.class_map.shape
        images.append(dict(id=number, file_name=f'{name}.jpg', height=height, width=width))
        for row in zip(scene.boxes, scene.labels, scene.masks):
            annotations.append(dict(id=len(annotations) + 1, image_id=number, **annotation(*row)))
    dataset = dict(images=images, annotations=annotations,
                   categories=[dict(id=k, name=name) for k, name in enumerate(labels)])
    (out / 'scenes/annotations.json').write_text(json.dumps(dataset) + '\n', encoding='utf-8')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cutouts', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    args = parser.parse_args()
    exemplars = [e for e in render.read_exemplars() if e['split'] == 'test']
    labels = sorted({e['class'] for e in exemplars})
    cutouts = compose.load_cutouts(args.cutouts, 'test')
    photos = compose.load_photos('test', ['CC-BY-4.0'])
    write_things(args.out, cutouts, labels, photos)
    write_scenes(args.out, cutouts, labels, photos)
    intro = 'All pictures here are of these 3D models.'
    (args.out / 'CREDITS.md').write_text(
        credits.of(exemplars, intro) + make_samples.BACKGROUND_CREDIT, encoding='utf-8')


if __name__ == '__main__':
    main()
