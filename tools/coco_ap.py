#!/usr/bin/env python3
"""Scores the detections that `sfmamba eval --predictions FILE` wrote.

usage: tools/coco_ap.py ANNOTATIONS PREDICTIONS

Prints one JSON object: average precision of boxes and, where the annotations
have them, of masks, over IoU 0.50 to 0.95 ("ap") and at 0.50 ("ap50"), as
pycocotools computes them, and "ap" of each class that the annotations have. Needs pycocotools (pip install pycocotools).
"""
import contextlib
import io
import json
import sys


def by_class(evaluation, truth):
    """The average precision of each class, over IoU 0.50 to 0.95."""
    classes = {}
    for k, category in enumerate(evaluation.params.catIds):
        # All sizes, 100 detections a picture; -1 where there is nothing to find.
        precision = evaluation.eval["precision"][:, :, k, 0, -1]
        if (precision > -1).any():
            name = truth.cats[category]["name"]
            classes[name] = round(float(precision[precision > -1].mean()), 4)
    return classes


def average_precision(truth, found, kind):
    """{"ap", "ap50", "classes"} of `kind`: "bbox" or "segm"."""
    from pycocotools.cocoeval import COCOeval
    evaluation = COCOeval(truth, found, kind)
    with contextlib.redirect_stdout(io.StringIO()):  # Its own tables.
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {"ap": evaluation.stats[0], "ap50": evaluation.stats[1],
            "classes": by_class(evaluation, truth)}


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
                        if found and there
                        else {"ap": 0.0, "ap50": 0.0, "classes": {}})
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
