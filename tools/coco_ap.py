#!/usr/bin/env python3
"""Scores the detections that `sfmamba eval --predictions FILE` wrote.

usage: tools/coco_ap.py ANNOTATIONS PREDICTIONS

Prints one JSON object: average precision of boxes and, where the annotations
have them, of masks, over IoU 0.50 to 0.95 ("ap") and at 0.50 ("ap50"), as
pycocotools computes them. Needs pycocotools (pip install pycocotools).
"""
import contextlib
import io
import json
import sys


def average_precision(truth, found, kind):
    """{"ap", "ap50"} of `kind`: "bbox" or "segm"."""
    from pycocotools.cocoeval import COCOeval
    evaluation = COCOeval(truth, found, kind)
    with contextlib.redirect_stdout(io.StringIO()):  # Its own tables.
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {"ap": evaluation.stats[0], "ap50": evaluation.stats[1]}


def score(annotations, predictions):
    """The report on the files of these paths."""
    from pycocotools.coco import COCO
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(annotations)
        with open(predictions) as file:
            detections = json.load(file)
        # Asked first: loadRes makes masks of the boxes where there are none.
        found_masks = any("segmentation" in d for d in detections)
        found = truth.loadRes(detections) if detections else None
    report = {
        "images": len(truth.imgs),
        "objects": len(truth.anns),
        "detections": len(detections),
    }
    kinds = [("box", "bbox", True)]
    if any("segmentation" in a for a in truth.anns.values()):
        kinds.append(("mask", "segm", found_masks))
    for name, kind, there in kinds:
        report[name] = (average_precision(truth, found, kind)
                        if found and there else {"ap": 0.0, "ap50": 0.0})
    return report


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    try:
        print(json.dumps(score(*arguments)))
    except ImportError:
        print("coco_ap: pycocotools is missing: pip install pycocotools",
              file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
