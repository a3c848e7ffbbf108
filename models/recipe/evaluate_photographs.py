"""Compares a distilled classifier with its teacher on photographs that neither learned from.

    python evaluate_photographs.py --model ../../models/photographs/1 --root / [--maps MAPS ...]
        [--set unseen wide]

photographs.tsv lists the photographs of each set. They are in Debian packages below ROOT, or in
installed PyPI packages. The list also has the right ImageNet classes of a picture, if there are
any.

The program prints how often the teacher's best answer is also the student's best answer, and how
often it is among the student's five best. It does so for whole pictures and for random cuts from
them. Then it prints the three best answers for each picture that has right classes.

With --maps (see make_maps.py), it also measures controls, which are changed models:
- no blocks in the token stage
- no blocks, and the linear map after them fitted again
- untrained blocks, and the linear map fitted again
- the trained blocks, but the auxiliary tokens are not swapped
The first three show what the frozen layers achieve without the trained blocks.
"""

import argparse
import copy
import csv
import importlib.util
import pathlib

import numpy as np
import safetensors.torch
import torch
from PIL import Image

import configs
import distill
import least_squares
import sf_mamba
from pictures import preprocess
from lite_trunk import LiteTail, LiteTrunk
from make_maps import cut
from train_classifier import normalise

HERE = pathlib.Path(__file__).parent
# Cuts per picture, and the smallest side of a cut as a fraction of the picture's short side.
CUTS, LEAST_CUT = 20, 0.25
FITTED = 3000  # Number of maps that the controls are fitted to.
MODULES = {'scikit-image': 'skimage'}  # PyPI packages whose modules have other names.


def read_list(sets):
    """Returns (package, path, right names) of each picture in the sets."""
    with open(HERE / 'photographs.tsv', encoding='utf-8', newline='') as file:
        rows = [row for row in csv.DictReader(file, delimiter='\t') if row['set'] in sets]
    return [(row['package'], row['picture'], [n for n in row['names'].split('|') if n])
            for row in rows]


def open_picture(root, package, path):
    """Opens a picture of a Debian package below `root`, or of an installed PyPI package."""
    if not path.startswith('usr/'):
        spec = importlib.util.find_spec(MODULES.get(package, package))
        if spec is None:
            raise ValueError(f'{path}: PyPI\'s {package} is not installed')
        root = pathlib.Path(spec.origin).parent
    with Image.open(root / path) as image:
        return image.convert('RGB')


def depth_of(tensors):
    """Returns the number of blocks in the token stage of these weights."""
    return 1 + max(int(k.split('.')[3]) for k in tensors if k.startswith('levels.3.blocks.'))


def load(folder):
    """Returns the model in a model directory, and its labels."""
    labels = (folder / 'labels.txt').read_text(encoding='utf-8').splitlines()
    weights = safetensors.torch.load_file(folder / 'model.safetensors')
    config = dict(configs.PHOTOGRAPHS, depths=(0, 0, 0, depth_of(weights)))
    model = sf_mamba.make('custom', num_classes=len(labels), **config)
    missing, unexpected = model.load_state_dict(
        {key: value.float() for key, value in weights.items()}, strict=False)
    missing = [key for key in missing if not key.endswith('num_batches_tracked')]
    if missing or unexpected:
        raise ValueError(f'{folder}: missing {missing}, unexpected {unexpected}')
    return model.eval(), labels


def without_blocks(model):
    """Returns a copy of the model whose token stage returns its input."""
    model = copy.deepcopy(model)
    model.levels[3] = torch.nn.Sequential()
    return model


def controls(model, teacher, maps):
    """Returns [(name, model)] of the controls, with which the model is compared."""
    batches = maps.split(250)
    left_out, fitted, untrained = without_blocks(model), without_blocks(model), copy.deepcopy(model)
    torch.manual_seed(0)
    untrained.levels[3].apply(sf_mamba.initialise)
    for control in (fitted, untrained):
        least_squares.fit_neck(control, teacher, batches)
    unswapped = copy.deepcopy(model)
    unswapped.levels[3].config.swap = False
    return [('blocks left out', left_out), ('blocks left out, linear map fitted', fitted),
            ('blocks untrained, linear map fitted', untrained),
            ('tokens not swapped', unswapped)]


@torch.inference_mode()
def maps_of(pictures, batch=32):
    """Returns the maps that the frozen trunk makes of uint8 pictures."""
    trunk = LiteTrunk(32).load_imagenet().eval()
    pictures = torch.from_numpy(np.stack(pictures))
    return torch.cat([trunk(normalise(part))[-1] for part in pictures.split(batch)])


@torch.inference_mode()
def answers(model, maps, batch=64):
    """Returns the model's logits for the trunk's maps."""
    return torch.cat([model.head(model.pool(model.levels[3](x))) for x in maps.split(batch)])


def agreement(logits, wanted):
    """Returns two shares of the rows. In the first, the best class of `wanted` is also the best of
    `logits`. In the second, it is among the five best of `logits`."""
    hits = logits.topk(5).indices == wanted.argmax(1, keepdim=True)
    return hits[:, 0].float().mean().item(), hits.any(1).float().mean().item()


def describe(logits, labels, names):
    """Returns the three best answers as text, with the right ones in bold."""
    top = logits.softmax(0).topk(3)
    shown = ((labels[k], p) for p, k in zip(top.values, top.indices))
    return ', '.join(f'**{name} {p:.0%}**' if name in names else f'{name} {p:.0%}'
                     for name, p in shown)


def right(logits, labels, names, count):
    return any(labels[k] in names for k in logits.topk(count).indices)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', type=pathlib.Path, required=True)
    parser.add_argument('--root', type=pathlib.Path, default=pathlib.Path('/'))
    parser.add_argument('--maps', type=pathlib.Path, nargs='+')
    parser.add_argument('--set', nargs='+', default=['held out'], dest='sets')
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, labels = load(args.model)
    teacher = LiteTail().load_imagenet().eval()
    entries = read_list(args.sets)
    for names in (names for _, _, names in entries):
        unknown = set(names) - set(labels)
        if unknown:
            raise ValueError(f'photographs.tsv: no labels: {sorted(unknown)}')
    images = [open_picture(args.root, package, path) for package, path, _ in entries]
    whole = maps_of([preprocess(image, configs.PHOTOGRAPHS_SIZE) for image in images])
    rng = np.random.default_rng(0)
    cuts = maps_of([cut(rng, np.asarray(image), LEAST_CUT)
                    for image in images for _ in range(CUTS)])
    with torch.inference_mode():
        wanted, wanted_cuts = (teacher(maps)[2] for maps in (whole, cuts))
    models = [('the model', model)]
    if args.maps:
        maps = distill.Maps(args.maps).draw(np.random.default_rng(1), FITTED)
        models += controls(model, teacher, maps)
    print(f'| agreement with the teacher, top-1 / top-5 | {len(whole)} whole pictures | '
          f'{len(cuts)} cuts |\n|---|---|---|')
    for title, candidate in models:
        figures = (agreement(answers(candidate, whole), wanted),
                   agreement(answers(candidate, cuts), wanted_cuts))
        print(f'| {title} | ' + ' | '.join(f'{a:.1%} / {b:.1%}' for a, b in figures) + ' |')
    logits = answers(model, whole)
    print('\n| picture | answers | the teacher |\n|---|---|---|')
    named = [i for i, (_, _, names) in enumerate(entries) if names]
    for i in named:
        _, path, names = entries[i]
        print(f'| {pathlib.Path(path).name} | {describe(logits[i], labels, names)} | '
              f'{describe(wanted[i], labels, names)} |')
    for title, given in (('the model', logits), ('the teacher', wanted)):
        one, three = (sum(right(given[i], labels, entries[i][2], n) for i in named) for n in (1, 3))
        print(f'{title}: of {len(named)} pictures with a name {one} right, '
              f'{three} among the first three')


if __name__ == '__main__':
    main()
