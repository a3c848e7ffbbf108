"""Trains a detector further on photographs without objects of its classes, so that it finds fewer
false objects.

    python tune_box_head.py --models .. --version 1 --cutouts CUTOUTS --root PACKAGES --out RUN \
        --export .. --export_version 2

Only the detector's box head learns. The rest of the network runs once over scenes with objects and
over the photographs of negatives.tsv, which show none. The features of all regions are stored in
RUN. Later runs with the same RUN read them and do not compute them again. PACKAGES has one folder
for each Debian package, unpacked with `dpkg-deb -x`.
"""

import argparse
import csv
import pathlib
import types

import cv2
import numpy as np
import skimage
import torch
import torch.nn.functional as F
import torchvision

import compose
import configs
import credits
import detector
import evaluate_heads
import export
import scenes
from train_classifier import normalise

HERE = pathlib.Path(__file__).parent
MATCH = 0.5                 # A region gets an object's label if their IoU is at least this.
LEAST_CUT = 0.3             # Smallest size of a view, as a fraction of the largest that fits.
RATE, WEIGHT_DECAY, BATCH = 3e-4, 0.05, 128
TOGETHER = 8                # Pictures in one pass through the backbone.
MARGIN = 0.75               # Added to the background's logit after the training.
HARD = 0.05                 # A photograph's region is hard if some class has a higher probability.


def photographs(root):
    """Yields the photographs of negatives.tsv in RGB. The longer side has at most 640 pixels."""
    with open(HERE / 'negatives.tsv', encoding='utf-8', newline='') as file:
        for row in csv.DictReader(file, delimiter='\t'):
            folder = pathlib.Path(skimage.__file__).parent if row['package'] == 'scikit-image' \
                else root / row['package']
            picture = cv2.imread(str(folder / row['picture']), cv2.IMREAD_COLOR)
            if picture is None:
                raise FileNotFoundError(folder / row['picture'])
            scale = min(1, compose.PHOTO_SIDE / max(picture.shape[:2]))
            picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            yield cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)


def view(rng, photo, shape, whole):
    """Returns a random part of a photograph, resized to uint8 of `shape` = (H, W).

    If `whole`, the part is the largest one that has the proportions of `shape`.
    """
    h, w = photo.shape[:2]
    ratio = shape[1] / shape[0]
    high = min(h, w / ratio) * (1 if whole else np.exp(rng.uniform(np.log(LEAST_CUT), 0)))
    sides = min(w, max(int(high * ratio), 2)), max(int(high), 2)
    x, y = rng.integers(0, w - sides[0] + 1), rng.integers(0, h - sides[1] + 1)
    cut = cv2.resize(photo[y:y + sides[1], x:x + sides[0]], shape[::-1],
                     interpolation=cv2.INTER_AREA)
    return compose.camera(rng, cut[:, ::rng.choice([-1, 1])].astype(np.float32))


def label_regions(regions, boxes, labels, classes):
    """Returns the label of each region, and the index of the object that overlaps it most. Regions
    of the background have the label `classes`."""
    if not len(boxes):
        return torch.full((len(regions),), classes), torch.zeros(len(regions), dtype=torch.int64)
    best, of = torchvision.ops.box_iou(regions, boxes).max(dim=1)
    return torch.where(best >= MATCH, labels[of], classes), of


def regions_of(model, examples):
    """Yields (features in fp16, labels, box deltas) of the regions of each example.

    An example is (picture, boxes, labels). All pictures must have one shape. The regions are the
    boxes of the example and the detector's proposals.
    """
    config, shape = model.config, examples[0][0].shape[:2]
    pictures = torch.from_numpy(np.stack([picture for picture, _, _ in examples]))
    levels = model.neck(model.backbone(normalise(pictures)))
    anchors = detector.anchors(config, [x.shape[2:] for x in levels])
    logits, moves = model.rpn_head(levels)
    for image, (_, boxes, labels) in enumerate(examples):
        found, _ = model.rpn_head.propose(image, logits, moves, anchors, shape)
        found = torch.cat([boxes, found])
        classes, of = label_regions(found, boxes, labels, config.classes)
        deltas = torch.zeros(len(found), 4)
        positive = classes < config.classes
        deltas[positive] = detector.encode(found[positive], boxes[of[positive]],
                                           config.box_stds[0])
        rois = F.pad(found, (1, 0), value=image)
        yield model.roi_head.extract(levels, rois, config.box_roi).half(), classes, deltas


def batches(examples):
    """Yields lists of up to TOGETHER examples whose pictures have one shape."""
    waiting = {}
    for example in examples:
        group = waiting.setdefault(example[0].shape, [])
        group.append(example)
        if len(group) == TOGETHER:
            yield waiting.pop(example[0].shape)
    yield from waiting.values()


def gather(path, model, examples):
    """Returns the results of regions_of() for all examples, each concatenated.

    If the file `path` exists, reads them from it. Otherwise, computes them and writes the file.
    """
    if not path.exists():
        with torch.inference_mode():
            parts = zip(*(part for batch in batches(examples) for part in regions_of(model, batch)))
            torch.save([torch.cat(part) for part in parts], path)
    return torch.load(path, weights_only=True)


def draw_scenes(rng, data, count):
    options, weights = zip(*scenes.shapes(configs.SHORT))
    for _ in range(count):
        scene = data.draw(rng, options[rng.choice(len(options), p=weights)])
        yield scene.picture, torch.from_numpy(scene.boxes), torch.from_numpy(scene.labels)


def draw_views(rng, photos, count):
    """Yields `count` views of each photograph, as examples without objects. The first one is the
    largest view that fits."""
    options, weights = zip(*scenes.shapes(configs.SHORT))
    for photo in photos:
        for k in range(count):
            shape = options[rng.choice(len(options), p=weights)]
            yield view(rng, photo, shape, k == 0), torch.empty(0, 4), \
                torch.empty(0, dtype=torch.int64)


def hardest(head, features, classes):
    """Returns the indices of the regions to which `head` gives a probability above HARD for some
    class."""
    with torch.inference_mode():
        scores = torch.cat([head(part.float())[0].softmax(1)[:, :classes].amax(1)
                            for part in features.split(4096)])
    return (scores > HARD).nonzero().squeeze(1)


def tune(head, scene_regions, photo_regions, classes, args):
    """Trains the head. Each batch has regions of scenes and hard regions of photographs."""
    features, labels, deltas = scene_regions
    with torch.inference_mode():
        before = torch.cat([head(part.float())[0] for part in features.split(4096)])
    before = before.clone().log_softmax(1)
    objects = (labels < classes).nonzero().squeeze(1)
    hard = hardest(head, photo_regions[0], classes)
    print(f'{len(labels)} regions of scenes, '
          f'{len(hard)} hard ones of {len(photo_regions[1])} regions of photographs')
    optimizer = torch.optim.AdamW(head.parameters(), RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, args.passes)
    for step in range(args.passes):
        rows = torch.cat([torch.randint(len(labels), (BATCH * 5 // 8,)),
                          objects[torch.randint(len(objects), (BATCH // 8,))]])
        others = hard[torch.randint(len(hard), (BATCH // 4,))]
        logits, moves = head(torch.cat([features[rows], photo_regions[0][others]]).float())
        seen, photo = logits[:len(rows)], logits[len(rows):]
        positive = labels[rows] < classes
        chosen = moves[:len(rows)].view(len(rows), classes, 4)[positive]
        chosen = chosen[torch.arange(len(chosen)), labels[rows][positive]]
        losses = (F.cross_entropy(seen, labels[rows]),
                  F.kl_div(seen.log_softmax(1), before[rows], log_target=True,
                           reduction='batchmean'),
                  F.smooth_l1_loss(chosen, deltas[rows][positive], reduction='sum') / len(rows),
                  args.weight * F.cross_entropy(photo, torch.full((len(photo),), classes)))
        optimizer.zero_grad()
        sum(losses).backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(step, [round(loss.item(), 4) for loss in losses], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--models', type=pathlib.Path, required=True)
    parser.add_argument('--version', type=int, default=1)
    parser.add_argument('--cutouts', type=pathlib.Path, required=True)
    parser.add_argument('--root', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--export', type=pathlib.Path, required=True)
    parser.add_argument('--export_version', type=int, default=2)
    parser.add_argument('--scenes', type=int, default=232)
    parser.add_argument('--views', type=int, default=2, help='of each photograph')
    parser.add_argument('--passes', type=int, default=400)
    parser.add_argument('--weight', type=float, default=2.0, help="of the photographs' loss")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    args.out.mkdir(parents=True, exist_ok=True)
    model, _, labels = evaluate_heads.load_models(args.models, args.version)
    data = scenes.Scenes(compose.load_cutouts(args.cutouts, 'train'), labels,
                         compose.load_photos('train'), None, 1, 0)
    regions = gather(args.out / 'scenes.pt', model,
                     draw_scenes(np.random.default_rng(1), data, args.scenes))
    negatives = gather(args.out / 'photographs.pt', model,
                       draw_views(np.random.default_rng(2), photographs(args.root), args.views))
    head = model.roi_head.bbox_head
    tune(head, regions, negatives, len(labels), args)
    with torch.no_grad():
        head.fc_cls.bias[-1] += MARGIN
    heads = types.SimpleNamespace(backbone=model.backbone, detector=model)
    export.write_heads(args.export, args.export_version, heads, labels, ['detect'],
                       credits.of_training())


if __name__ == '__main__':
    main()
