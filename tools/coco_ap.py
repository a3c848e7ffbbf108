#!/usr/bin/env python3
"""Scores the detections that `sfmamba eval --predictions FILE` wrote.

usage: tools/coco_ap.py ANNOTATIONS PREDICTIONS

Prints one JSON object. Its member "box" has values for boxes: "ap", "ap50" and
"classes". "ap" is the average precision over IoU 0.50 to 0.95. "ap50" is the
average precision at IoU 0.50. "classes" has the "ap" of each class that the
annotations have. If all annotated objects have masks, "mask" has the same
values for masks. pycocotools computes these values (pip install pycocotools).
The annotations are read as for training. Standard error says what was left out.
"""
import contextlib
import io
import json
import math
import pathlib
import sys

from coco import annotations, layouts
from coco.annotations import CocoError

sys.path.append(str(pathlib.Path(__file__).absolute().parent / "pytorch"))


def by_class(evaluation, truth):
    """Returns the average precision of each class, over IoU 0.50 to 0.95."""
    classes = {}
    for k, category in enumerate(evaluation.params.catIds):
        # These are the precisions for all sizes and 100 detections per picture. The value -1 means
        # that the pictures contain no object of the class.
        precision = evaluation.eval["precision"][:, :, k, 0, -1]
        if (precision > -1).any():
            name = truth.cats[category]["name"]
            classes[name] = round(float(precision[precision > -1].mean()), 4)
    return classes


def average_precision(truth, found, kind):
    """Computes "ap", "ap50" and "classes" for `kind`, which is "bbox" or "segm". Returns them as a
    dictionary.
    """
    from pycocotools.cocoeval import COCOeval
    evaluation = COCOeval(truth, found, kind)
    with contextlib.redirect_stdout(io.StringIO()):  # It prints tables.
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {"ap": evaluation.stats[0], "ap50": evaluation.stats[1],
            "classes": by_class(evaluation, truth)}


def size_in_header(image, path):
    """Returns (width, height) of a picture in the JSON file's folder, or None if it cannot be read.
    """
    try:
        from pictures import shown_size
    except ImportError:  # No Pillow.
        return None
    root = path.parent.parent if path.parent.name == "annotations" else path.parent
    try:
        file = annotations.File(path, {image.id: image}, {}, [])
        return shown_size(layouts.pictures(file, root)[image.id])
    except ValueError:
        return None


def read_annotations(path):
    """Reads the dataset for pycocotools."""
    [file], notes = annotations.read([path])
    sizes = {number: image.size or size_in_header(image, file.path)
             for number, image in file.images.items()}
    objects = annotations.objects(file, lambda image: sizes[image.id], crowds=True)
    for note in filter(None, [*notes, objects.note(path)]):
        print(f"coco_ap: {note}", file=sys.stderr)
    if all(o.crowd for o in objects.found):
        raise CocoError(f"{path}: no annotation is left to score")
    rows = []
    for number, o in enumerate(objects.found, 1):  # Annotations may share an id.
        x0, y0, x1, y1 = o.box
        if sizes[o.image_id] is None and isinstance(o.outline, dict):
            sizes[o.image_id] = o.outline["size"][::-1]
        box = [x0, y0, x1, y0, x1, y1, x0, y1]
        rows.append({"id": number, "image_id": o.image_id, "category_id": o.category_id,
                     "bbox": [x0, y0, x1 - x0, y1 - y0], "area": o.area, "iscrowd": int(o.crowd),
                     "segmentation": o.outline or ([box] if o.crowd else None)})
    images = [{"id": number, **({} if size is None else {"width": size[0], "height": size[1]})}
              for number, size in sizes.items()]
    return {"images": images, "annotations": rows,
            "categories": [{"id": c.id, "name": c.name} for c in file.categories.values()]}


def is_detection(row, images):
    """Returns whether pycocotools accepts `row` as a detection in one of the images."""
    def numbers(values):
        return all(isinstance(v, (int, float)) and math.isfinite(v) for v in values)
    return (isinstance(row, dict) and row.get("image_id") in images
            and isinstance(row.get("category_id"), int) and numbers([row.get("score")])
            and isinstance(row.get("bbox"), list) and len(row["bbox"]) == 4
            and numbers(row["bbox"]))


def read_detections(path, images):
    """Returns the list in a file of predictions. Raises CocoError that names the first wrong entry.
    """
    try:
        with open(path, "rb") as file:
            rows = json.load(file)
    except (ValueError, RecursionError) as error:
        raise CocoError(f"{path}: not JSON: {error}") from error
    if not isinstance(rows, list):
        raise CocoError(f"{path}: expected a list of detections")
    for number, row in enumerate(rows):
        if not is_detection(row, images):
            raise CocoError(
                f"{path}: [{number}] is {json.dumps(row)[:80]}, expected image_id of an image of "
                "the annotations, category_id, bbox of four numbers, and score")
    return rows


def has_masks(truth):
    """Returns whether masks can be scored. If some are missing, prints a line to standard error."""
    objects = [o for o in truth.anns.values() if not o["iscrowd"]]
    missing = sum(not o["segmentation"] for o in objects)
    if missing == len(objects):
        return False
    unknown = [i["id"] for i in truth.imgs.values() if "width" not in i]
    if missing or unknown:
        print(f"coco_ap: boxes alone: {missing} of {len(objects)} objects have no mask"
              if missing else f"coco_ap: boxes alone: image {unknown[0]} has no width and height",
              file=sys.stderr)
    return not (missing or unknown)


def score(truth_path, found_path):
    """Returns the report on the files of these paths."""
    from pycocotools.coco import COCO
    truth = COCO()
    truth.dataset = read_annotations(truth_path)
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        detections = read_detections(found_path, truth.imgs)
        # loadRes() adds masks, made from the boxes, to detections without masks. So the detections'
        # own masks are looked for before this call.
        found_masks = any("segmentation" in d for d in detections)
        found = truth.loadRes(detections) if detections else None
    report = {
        "images": len(truth.imgs),
        "objects": len(truth.anns),
        "detections": len(detections),
    }
    kinds = [("box", "bbox", True)]
    if has_masks(truth):
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
    except CocoError as error:
        print(f"coco_ap: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"coco_ap: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
