"""What the training of detectors and the training of segmenters have in common."""

import os
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

import dense_files
import dense_pictures
import export
import training
import user_errors
from checkpoint.tensor import CheckpointError
from dense_pictures import STEP
from map_classes import IGNORE
from train_classifier import name_of, normalise
from user_errors import UserError, read_text

MODELS = pathlib.Path(__file__).absolute().parents[2] / 'models'
BATCH = 4
LEAST_PICTURES = 10
HELD_OUT = 500  # The most pictures that a validation uses.
FIGURES = {'box_ap50': 'box AP50', 'mask_ap50': 'mask AP50', 'miou': 'mean IoU'}
HEAD_RATE, BACKBONE_RATE, WEIGHT_DECAY = 1e-3, 2e-4, 0.05


def rate_of(name):
    """Returns the peak learning rate of a parameter. The rate is lower for the backbone's layers,
    because they start with trained weights.
    """
    return BACKBONE_RATE if '.backbone.' in name and 'outnorm' not in name else HEAD_RATE


def jaccard_loss(logits, class_maps):
    """Returns the Lovasz extension of 1 - IoU, averaged over the classes in the batch.

    logits is [N,C,h,w], and class_maps is [N,h,w]. Source: arXiv 1705.08790, section 3.
    """
    counted = class_maps != IGNORE
    shares, classes = logits.float().softmax(1).movedim(1, 3)[counted], class_maps[counted]
    losses = []
    for k in classes.unique():
        wanted = (classes == k).float()
        errors, order = (wanted - shares[:, k]).abs().sort(descending=True)
        wanted = wanted[order]
        # Element n is 1 - IoU if the first n pixels are wrong. Pixels are sorted by their error.
        kept, strange = wanted.sum() - wanted.cumsum(0), (1 - wanted).cumsum(0)
        steps = 1 - kept / (wanted.sum() + strange)
        losses.append(errors @ torch.cat([steps[:1], steps.diff()]))
    return torch.stack(losses).mean()


class Learner(torch.nn.Module):
    """A detector or segmenter, and the settings of its pictures."""

    def __init__(self, model, start):
        super().__init__()
        self.model = model
        self.mean, self.std = torch.tensor(start.mean), torch.tensor(start.std)
        self.fill = tuple(round(255 * value) for value in start.mean)  # Zero for the network.
        self.sides = start.sides

    def input(self, pictures):
        return normalise(pictures, self.mean, self.std).contiguous(
            memory_format=torch.channels_last)

    def served(self, picture, step=1):
        """Returns (input [1,3,H,W], Placement) of a picture, as the server makes them."""
        place = dense_pictures.as_it_is_served(picture.size, *self.sides)
        pixels = torch.from_numpy(np.array(place.warp(picture, self.fill, smooth=True))[None])
        wide, high = (-side % step for side in place.size)
        return F.pad(self.input(pixels), (0, wide, 0, high)), place

    def draw(self, rng, examples):
        """Draws a random batch. Returns ([(target, size, Placement)] of the pictures, all pixels
        uint8 [N,H,W,3]).
        """
        drawn = examples.draw(rng, BATCH)
        canvas = dense_pictures.padded(dense_pictures.fitted(drawn[0][0].size, *self.sides))
        places = [dense_pictures.by_chance(rng, picture.size, *self.sides, canvas)
                  for picture, _ in drawn]
        pixels = [dense_pictures.other_light(rng, np.asarray(place.warp(p, self.fill, smooth=True)))
                  for place, (p, _) in zip(places, drawn)]
        return ([(target, picture.size, place) for place, (picture, target) in zip(places, drawn)],
                torch.from_numpy(np.stack(pixels)))


def add_arguments(parser, default, passes):
    """Adds the flags that both programs have. `default` is the name of a model in models/."""
    parser.add_argument('--initial', type=pathlib.Path, default=MODELS / default / '1',
                        help='model folder or checkpoint to start from; default: %(default)s')
    parser.add_argument('--export', type=pathlib.Path,
                        help='model folder to write; default: OUT/model')
    parser.add_argument('--sides', type=int, nargs=2, metavar=('SHORT', 'LONG'),
                        help="pixels that a picture's sides may have, in place of the model's: "
                             'more shows smaller things and takes longer')
    training.add_arguments(parser, passes)


def open_examples(entries, held_out):
    """Returns (Examples to learn from, Examples held out). Raises an error if there are too few."""
    learnt, kept = dense_pictures.split(entries, held_out)
    if len(learnt) + len(kept) < LEAST_PICTURES or not (len(learnt) and len(kept)):
        raise UserError(f'{len(learnt) + len(kept)} pictures that can be decoded, expected '
                        f'{LEAST_PICTURES} or more')
    return learnt, kept


def open_start(args, task):
    try:
        return dense_files.open_start(args.initial, task, args.sides)
    except CheckpointError as error:
        raise CheckpointError(f'{args.initial}: {error}') from error


def check_resumed(args, labels):
    """Raises an error if the checkpoint to resume has other classes."""
    path = args.out / 'checkpoint.pt'
    if not args.resume or not path.exists():
        return  # training.Run reports a missing checkpoint.
    saved = torch.load(path, weights_only=True, mmap=True)['facts']['labels']
    if saved != labels:
        raise UserError(f'{path} has {len(saved)} classes, {", ".join(saved[:3])}, ...; the data '
                        f'have {len(labels)}, {", ".join(labels[:3])}, ...')


def load(model, start, labels):
    """Sets the model to the start's weights, and prints what is new in it."""
    print(f'found: {start.evidence}')
    new = dense_files.load(model, start, labels)
    if not start.labels:
        print(f'new heads: {len(labels)} classes')
    elif new:
        print(f'classes that it does not know yet: {len(new)} of {len(labels)}')


def credits_of(args, start):
    """Returns the text of CREDITS.md, for the pictures and for the weights that training began
    with.
    """
    def own(folder):
        path = folder / 'CREDITS.md'
        return read_text(path) if path.exists() else ''
    initial = args.initial.absolute()
    text = (own(args.data) or export.HEADING) + export.INITIAL_CREDIT.format(
        name=initial.relative_to(initial.parents[1]), variant=f'{start.variant} network')
    of_weights = own(initial if initial.is_dir() else initial.parent)
    return text + of_weights.replace(export.HEADING, '\nOf these weights:\n', 1)


def summary(args, figures, held_out, notes):
    """Returns the text of the result. It has the scores on the held-out pictures, the notes, and
    the number of ignored pictures. `figures` has the scores, by their names in FIGURES.
    """
    found = [f'{text} {figures[name]:.1%}' for name, text in FIGURES.items() if name in figures]
    lines = [f'{", ".join(found) or "nothing to measure"} of {min(len(held_out), HELD_OUT)} '
             'held-out pictures', *notes]
    if held_out.passed_over.count:
        lines.append(f'{held_out.passed_over}, named above')
    return '\n'.join([*lines, f'run: {args.out} (curve.png, log.txt, checkpoint.pt)'])


def folder_of(args):
    return args.export or args.out / 'model'


def finish(args, run, start, task, labels, settings, held_out, notes):
    """Writes the folder. Prints how good the model is, where it is and what to do next. `notes` are
    lines about the data."""
    if run.rank:
        return
    folder = folder_of(args)
    tensors = run.average.module.model.float().cpu().state_dict()
    export.write(folder, task, start.backbone, tensors, labels,
                 f'{export.input_text(start.sides, start.mean, start.std)}\n{settings}',
                 credits_of(args, start))
    name = name_of(args.out)
    tree, verb = os.path.relpath(MODELS.parent), 'detect' if task == 'DETECTION' else 'segment'
    print(f'{summary(args, run.figures, held_out, notes)}\nmodel: {folder}\nnow:\n'
          f'  {tree}/bazel-bin/server/sfmamba_server --model={name}={folder} &\n'
          f'  {tree}/bazel-bin/client/sfmamba {verb} --model={name} PICTURE...')


def run(train, args):
    """Checks the flags and runs train(args). The programs call this in their main(), so that
    user_errors.run() reports errors that a user can correct.
    """
    torch.set_num_threads(args.threads)
    if args.sides and not STEP <= args.sides[0] <= args.sides[1]:
        raise UserError(f'--sides: expected SHORT, {STEP} or more, and LONG, which is no less')
    user_errors.check_writable(folder_of(args))
    train(args)
    training.leave()
