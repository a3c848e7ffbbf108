"""Trains a classifier, and exports it as a model directory.

    python train_classifier.py --data DATA --out RUN --export ../../models/mine/1

DATA is a folder with one sub-folder of pictures per class. Every fifth picture is kept for
validation, unless DATA has train/ and val/. If DATA has CREDITS.md, the model's CREDITS.md begins
with its text. RUN gets checkpoint.pt, log.txt and curve.png. See training.py for --passes,
--minutes, --resume.

DATA may also be a folder that models/recipe/make_pictures.py wrote. Instead of training pictures,
such a folder has the results of the trunk for them. The trunk is EfficientNet-Lite0's first layers,
which are not trained. The folder may also have the features of a larger network, the teacher. Then
the classifier, the student, also learns to predict these features.

If --initial is given, the network comes from a checkpoint: MambaVision's or SF-Mamba's T, S, B, L,
..., MambaOut's, EfficientViM's or VMamba's, as timm, Hugging Face, Lightning, the authors, the
server or this program write them. Training changes all of its layers except a trunk.
"""

import argparse
import pathlib
import os
import re

import numpy as np
import torch
import torch.nn.functional as F

import classifier_files
import export
import open_networks
import sf_mamba
import training
import user_errors
from classifier_files import VARIANTS, CheckpointError
from configs import CLASSIFIER, MEAN, PHOTOGRAPHS, SIZE, STD
from dataset import open_data

BATCH, WHOLE_BATCH = 64, 16  # The second is used if no layers are frozen.
PASSES = 90_000
RATE, WEIGHT_DECAY = 1e-3, 0.05
FINE_RATE = 1e-4  # For layers that are trained already, if no layers are frozen.
SMOOTHING = 0.1
# For distillation: the temperature of the logits of teacher and student, and the weights of the
# three parts of the loss.
TEMPERATURE, HARD, SOFT, FEATURES = 2.0, 0.5, 0.5, 1.0
TEACHER_DECAY = 0.03


def normalise(pictures, mean=MEAN, std=STD):
    """Converts uint8 [n,S,S,3] to the model's float input [n,3,S,S]."""
    return ((pictures.float() / 255 - mean.to(pictures.device)) /
            std.to(pictures.device)).permute(0, 3, 1, 2)


def predict(model, pictures, batch=64, mean=MEAN, std=STD):
    """Returns the logits [n,classes] of uint8 pictures [n,S,S,3]."""
    model.eval()
    place = next(model.parameters()).device
    with torch.inference_mode():
        parts = (torch.from_numpy(pictures[i:i + batch]).to(place)
                 for i in range(0, len(pictures), batch))
        return torch.cat([model(normalise(part, mean, std)).cpu() for part in parts])


def accuracy(logits, classes):
    """Returns (top-1, top-5, the mean over classes of top-1), in 0..1."""
    classes = torch.as_tensor(classes)
    top = logits.topk(min(5, logits.shape[1])).indices == classes[:, None]
    hit = top[:, 0].float()
    per_class = [hit[classes == k].mean().item() for k in classes.unique()]
    return hit.mean().item(), top.any(1).float().mean().item(), float(np.mean(per_class))


class Teacher:
    """A linear classifier on the teacher's features, fitted to the training pictures."""

    def __init__(self, features, classes, count):
        x, self.mean, self.std = features, features.mean(0), features.std(0) + 1e-3
        x = (x - self.mean) / self.std
        self.linear = torch.nn.Linear(x.shape[1], count)
        optimiser = torch.optim.LBFGS(self.linear.parameters(), max_iter=60,
                                      line_search_fn='strong_wolfe')

        def loss():
            optimiser.zero_grad()
            decay = self.linear.weight.square().sum() * TEACHER_DECAY / 2
            value = F.cross_entropy(self.linear(x), classes) + decay
            value.backward()
            return value

        optimiser.step(loss)

    def __call__(self, features):
        """Returns (standardised features, logits)."""
        with torch.no_grad():
            x = (features - self.mean) / self.std
            return x, self.linear(x)


class Student(torch.nn.Module):
    """The classifier, and a linear layer that predicts the teacher's features from the classifier's
    features. The linear layer is dropped after training.

    If the classifier has a trunk, the trunk is frozen.
    """

    def __init__(self, model, teacher_features, mean=MEAN, std=STD, bf16=False):
        super().__init__()
        self.model, self.mean, self.std, self.bf16 = model, mean, std, bf16
        if self.trunk:
            self.trunk.requires_grad_(False)
        self.guess = torch.nn.Linear(model.norm.num_features, teacher_features) \
            if teacher_features else None

    @property
    def trunk(self):
        """The layers that are not trained, or None."""
        return getattr(self.model, 'trunk', None)

    def train(self, mode=True):
        super().train(mode)
        if self.trunk:
            self.trunk.eval()
        return self

    def images(self, pictures):
        return normalise(pictures, self.mean, self.std).contiguous(
            memory_format=torch.channels_last)

    def features(self, x):
        """Returns the features that the head classifies, from uint8 pictures or from the trunk's
        last maps.
        """
        if x.dtype == torch.uint8:
            x = self.trunk(self.images(x))[-1]
        return self.model.pool(self.model.run_stages(x.float(), self.model.config.first)[-1])

    def losses(self, x, classes, answers):
        """Returns a dict of losses. `x` is pictures, or the trunk's last maps. `answers` is the
        teacher's (features, logits), or None.
        """
        with training.precision(self.bf16):
            if self.trunk:
                x = self.features(x)
                logits = self.model.head(x)
            else:
                logits = self.model(self.images(x))
            guess = self.guess(x) if self.guess else None
        hard = F.cross_entropy(logits.float(), classes, label_smoothing=SMOOTHING)
        if answers is None:
            return dict(loss=hard)
        features, wanted = answers
        soft = F.kl_div((logits.float() / TEMPERATURE).log_softmax(1),
                        (wanted / TEMPERATURE).softmax(1), reduction='batchmean')
        return dict(loss=HARD * hard, soft=SOFT * TEMPERATURE**2 * soft,
                    features=FEATURES * F.mse_loss(guess.float(), features))


def augment(rng, pictures, size):
    """Crops, mirrors and recolours pictures at random. uint8 [n,T,T,3] becomes [n,size,size,3]."""
    room = pictures.shape[1] - size
    out = np.empty((len(pictures), size, size, 3), np.uint8)
    for i, picture in enumerate(pictures):
        y, x = rng.integers(0, room + 1, 2)
        crop = picture[y:y + size, x:x + size, :]
        crop = crop[:, ::rng.choice([-1, 1])] * rng.uniform(0.85, 1.15, 3) + rng.uniform(-12, 12)
        out[i] = np.clip(crop, 0, 255)
    return torch.from_numpy(out)


def load_weights(model, start, classes):
    """Loads the weights of a Start. If the number of classes differs, the last layer is not
    loaded."""
    tensors = {name: torch.from_numpy(array) for name, array in start.arrays().items()}
    if start.classes != classes:
        tensors = {name: tensor for name, tensor in tensors.items()
                   if not name.startswith(model.LAST)}
        print(f'a new head: {classes} classes in place of {start.classes}')
    try:
        missing, unexpected = model.load_state_dict(tensors, strict=False)
    except RuntimeError as error:  # Shapes.
        raise CheckpointError(str(error).split('\n')[-1].strip()) from error
    new = model.LAST if start.classes != classes else ()
    missing = [name for name in missing
               if not name.startswith(new) and not name.endswith('num_batches_tracked')]
    if missing or unexpected:
        raise CheckpointError(f'missing {missing[:5]}, unexpected {unexpected[:5]}')


def make_model(start, classes, no_swap=False):
    """Returns the network to train, with the weights that it begins with."""
    family = start.family if start else ''
    if family and no_swap:
        raise CheckpointError('--no_swap: its network has no tokens to swap')
    if family:
        model = open_networks.NETWORKS[family](classes, **start.fields)
    else:
        fields = {**(start.fields if start else CLASSIFIER), **({'swap': False} if no_swap else {})}
        model = sf_mamba.make('custom', num_classes=classes, **fields)
    if start:
        load_weights(model, start, classes)
    else:
        model.trunk.load_imagenet()
    return model


def rate_of(model):
    """Returns a function from a parameter's name to its peak rate, for a Student without a
    trunk."""
    last = tuple(f'model.{layer}' for layer in model.LAST)
    return lambda name: RATE if name.startswith(last) else FINE_RATE


def name_of(out):
    """Returns a name for the model of the run in this folder."""
    return re.sub(r'[^a-z0-9_]+', '_', out.absolute().name.lower())


def next_command(args):
    """Returns the commands that are proposed at the end of a run. If a model was exported, they
    serve it and classify a picture. Otherwise, the command converts the checkpoint to a model.
    """
    tree = os.path.relpath(pathlib.Path(__file__).parents[2])
    if not args.export:
        return (f'a model of it: {tree}/tools/convert_checkpoint.py {args.out}/checkpoint.pt '
                '--out models/mine/1')
    model = args.export if len(args.export.parts) > 2 else args.export.absolute()
    if model.name.isdigit():
        name, place = model.parent.name, f'--model_repository={model.parents[1]}'
    else:
        name = name_of(args.out)
        place = f'--model={name}={args.export}'
    return (f'model: {args.export}\nnow:\n'
            f'  {tree}/bazel-bin/server/sfmamba_server {place} &\n'
            f'  {tree}/bazel-bin/client/sfmamba classify --model={name} PICTURE...')


def summary(args, figures, held_out, passed_over):
    """Returns the last lines of a run. `held_out` is the number of held-out pictures."""
    lines = [f'accuracy {figures["validation_top1"]:.1%} of {held_out} held-out '
             f'pictures (mean over classes {figures["class_mean"]:.1%})']
    if passed_over.count:
        lines.append(f'{passed_over}, named above')
    return '\n'.join([*lines, f'run: {args.out} (curve.png, log.txt, checkpoint.pt)',
                      next_command(args)])


def train(args, start=None):
    torch.manual_seed(args.seed)
    if args.export:
        user_errors.check_writable(args.export)
    size = start.size if start else SIZE
    data = open_data(args.data, size)
    model = make_model(start, len(data.labels), args.no_swap)
    config = getattr(model, 'config', None)  # Only networks of sf_mamba.py have one.
    if data.has_maps and (not config or config.lite_trunk != CLASSIFIER['lite_trunk']):
        raise CheckpointError(f'its network does not take the maps in {args.data}, expected '
                              'folders of pictures')
    teacher = Teacher(*data.taught(10_000), len(data.labels)) if data.has_teacher else None
    network = classifier_files.facts_of(config, start, size)
    mean, std = torch.tensor(network['mean']), torch.tensor(network['std'])
    student = Student(model, len(teacher.mean) if teacher else 0, mean, std, args.bf16)
    student = student.to(memory_format=torch.channels_last)
    whole = not student.trunk
    batch = WHOLE_BATCH if whole else BATCH

    def validate(averaged):
        logits = predict(averaged.model, data.validation[0], batch, mean, std)
        top1, top5, class_mean = accuracy(logits, data.validation[1])
        data.refresh()
        return dict(validation_top1=round(top1, 4), validation_top5=round(top5, 4),
                    class_mean=round(class_mean, 4))

    groups = training.parameter_groups(student, RATE, WEIGHT_DECAY,
                                       rate_of(model) if whole else None)
    run = training.Run(args, student, groups, dict(labels=data.labels, network=network), validate)
    place = training.device()
    for rng in run.steps():
        inputs, classes, features = data.draw(rng, batch)
        if inputs.dtype == np.uint8:
            inputs = augment(rng, inputs, size)
        answers = tuple(x.to(place) for x in teacher(features)) if teacher else None
        run.learn(student.losses(torch.as_tensor(inputs).to(place), classes.to(place), answers),
                  len(inputs))
    if run.rank:
        return
    if args.export:
        export.write_classifier(args.export, run.average.module.model.float().cpu(), data.labels,
                                network, data.credits or export.HEADING, args.initial)
    print(summary(args, run.figures, len(data.validation[1]), data.passed_over))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--data', type=pathlib.Path, required=True)
    parser.add_argument('--initial', type=pathlib.Path,
                        help='checkpoint, or folder of one, to start from')
    parser.add_argument('--variant', choices=VARIANTS, metavar='NAME',
                        help='what --initial is where nothing in it tells: mamba_vision_t, '
                             'sf_mamba_b, mambaout_tiny, ...')
    parser.add_argument('--export', type=pathlib.Path,
                        help='model directory to write; default: none, of MambaOut, '
                             'EfficientViM and VMamba OUT/model')
    parser.add_argument('--no_swap', action='store_true', help='without token swap, to compare')
    parser.add_argument('--bf16', action='store_true', help='matrices in bf16 on a CPU too')
    training.add_arguments(parser, PASSES)
    args = parser.parse_args()
    if args.variant and not args.initial:
        parser.error('--variant says what --initial is: give that too')
    torch.set_num_threads(args.threads)
    start = None
    if args.initial:
        try:
            start = classifier_files.open_start(args.initial, args.variant,
                                                (CLASSIFIER, PHOTOGRAPHS))
        except CheckpointError as error:
            raise CheckpointError(f'{args.initial}: {error}') from error
        print(f'found: {start.evidence}')
        if start.family and not args.export:
            args.export = args.out / 'model'
    train(args, start)
    training.leave()


if __name__ == '__main__':
    user_errors.run('train_classifier', main)
