"""Records how the sahi package merges detections and divides pictures into tiles. See README.md."""

import json
import random
import sys

from sahi.postprocess.combine import GreedyNMMPostprocess, NMSPostprocess
from sahi.prediction import ObjectPrediction
from sahi.slicing import get_slice_bboxes

MERGES = {'NMS': NMSPostprocess, 'GREEDY_NMM': GreedyNMMPostprocess}


def detections(rng, objects, copies):
    """Returns boxes [x1, y1, x2, y2, score, class], in multiples of an eighth of a pixel.

    The boxes are copies of random objects, shifted and cut as tiles shift and cut them.
    """
    boxes = []
    for _ in range(objects):
        x, y = rng.randrange(0, 700 * 8) / 8, rng.randrange(0, 500 * 8) / 8
        width, height = rng.randrange(80, 1600) / 8, rng.randrange(80, 1600) / 8
        class_id = rng.randrange(3)
        for _ in range(rng.randrange(1, copies + 1)):
            left, top = rng.randrange(-100, 100) / 8, rng.randrange(-100, 100) / 8
            part = rng.choice([1, 1, 1, 0.5, 0.25])
            boxes.append([x + left, y + top, x + left + width * part, y + top + height,
                          rng.randrange(5, 100) / 100,
                          class_id if rng.random() < 0.9 else rng.randrange(3)])
    return boxes


def merged(boxes, merge, match, threshold, agnostic):
    rule = MERGES[merge](match_threshold=threshold, match_metric=match, class_agnostic=agnostic)
    found = rule([ObjectPrediction(bbox=list(box[:4]), score=box[4], category_id=int(box[5]),
                                   category_name=str(int(box[5]))) for box in boxes])
    return [[float(side) for side in one.bbox.to_xyxy()] + [float(one.score.value),
                                                            one.category.id] for one in found]


def main():
    rng = random.Random(41)
    scenes = []
    for objects, copies in [(1, 1), (1, 8), (6, 4), (20, 4), (12, 10)]:
        boxes = detections(rng, objects, copies)
        scenes.append({'detections': boxes, 'merges': [
            {'merge': merge, 'match': match, 'threshold': threshold, 'agnostic': agnostic,
             'objects': merged(boxes, merge, match, threshold, agnostic)}
            for merge in MERGES for match in ('IOU', 'IOS') for threshold in (0.25, 0.5, 0.75)
            for agnostic in (False, True)]})
    slices = []
    for width, height, tile_width, tile_height, overlap in [
            (4000, 3000, 800, 800, 0.2), (1000, 700, 640, 640, 0.2), (640, 640, 640, 640, 0.2),
            (641, 640, 640, 640, 0.5), (300, 200, 640, 640, 0.2), (7, 5, 1, 2, 0.0),
            (20, 9, 10, 3, 0.9), (1920, 1080, 512, 256, 0.25), (999, 1001, 333, 100, 0.3)]:
        slices.append({'picture': [width, height], 'tile': [tile_width, tile_height],
                       'overlap': overlap,
                       'tiles': get_slice_bboxes(height, width, tile_height, tile_width, False,
                                                 overlap, overlap)})
    json.dump({'scenes': scenes, 'slices': slices}, sys.stdout, separators=(',', ':'))


main()
