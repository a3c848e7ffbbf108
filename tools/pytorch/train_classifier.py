"""Trains a classifier, and exports it as a model directory.

    python train_classifier.py --data DATA --out RUN --export ../../models/mine/1

DATA is a folder with one sub-folder of pictures per class, of which every fifth picture
is kept for validation; or what models/recipe/make_pictures.py wrote: what the trunk, which
is not trained, makes of pictures, and perhaps a teacher's features, which the student then
learns along with the classes. A file CREDITS.md in DATA begins that of the model. RUN receives checkpoint.pt and log.txt. See training.py for
--passes, --minutes, --resume.
"""

import argparse
import pathlib

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F

import export
import sf_mamba
import training
from configs import CLASSIFIER, MEAN, SIZE, STD
from dataset import open_data

BATCH = 64
PASSES = 90_000
RATE, WEIGHT_DECAY = 1e-3, 0.05
SMOOTHING = 0.1
# Of the teacher: how soft its answers are made, and how much each part of the loss counts.
TEMPERATURE, HARD, SOFT, FEATURES = 2.0, 0.5, 0.5, 1.0
TEACHER_DECAY = 0.03


def normalise(pictures):
    """uint8 [n,S,S,3] to the model's float input [n,3,S,S]."""
    return ((pictures.float() / 255 - MEAN.to(pictures.device)) /
            STD.to(pictures.device)).permute(0, 3, 1, 2)


def predict(model, pictures, batch=64):
    """Logits [n,classes] of uint8 pictures [n,S,S,3]."""
    model.eval()
    place = next(model.parameters()).device
    with torch.inference_mode():
        return torch.cat([model(normalise(torch.from_numpy(pictures[i:i + batch]).to(place))).cpu()
                          for i in range(0, len(pictures), batch)])


def accuracy(logits, classes):
    """Top-1, top-5 and the mean over classes of top-1, in 0..1."""
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
        """Standardised features and logits."""
        with torch.no_grad():
            x = (features - self.mean) / self.std
            return x, self.linear(x)


class Student(torch.nn.Module):
    """The classifier, and the map from its features to the teacher's, which is dropped later.

    The trunk is frozen.
    """

    def __init__(self, model, teacher_features):
        super().__init__()
        self.model = model
        model.trunk.requires_grad_(False)
        self.guess = torch.nn.Linear(model.norm.num_features, teacher_features) \
            if teacher_features else None

    def train(self, mode=True):
        super().train(mode)
        self.model.trunk.eval()
        return self

    def losses(self, x, classes, answers):
        """`x`: pictures, or the trunk's last maps; `answers`: the teacher's features and
        logits, or None."""
        with training.precision():
            if x.dtype == torch.uint8:
                x = normalise(x).contiguous(memory_format=torch.channels_last)
                x = self.model.trunk(x)[-1]
            x = self.model.pool(self.model.run_stages(x.float(), 2)[-1])
            logits = self.model.head(x)
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
    """uint8 [n,T,T,3] to [n,size,size,3]: crops, mirror images, other light."""
    room = pictures.shape[1] - size
    out = np.empty((len(pictures), size, size, 3), np.uint8)
    for i, picture in enumerate(pictures):
        y, x = rng.integers(0, room + 1, 2)
        crop = picture[y:y + size, x:x + size, :]
        crop = crop[:, ::rng.choice([-1, 1])] * rng.uniform(0.85, 1.15, 3) + rng.uniform(-12, 12)
        out[i] = np.clip(crop, 0, 255)
    return torch.from_numpy(out)


def start_from(model, path):
    """Loads model.safetensors or a checkpoint.pt; of other classes all but the last layer."""
    if path.suffix == '.safetensors':
        tensors = {k: v.float() for k, v in safetensors.torch.load_file(path).items()}
    else:
        saved = torch.load(path, weights_only=True)['state_dict']
        tensors = {k.removeprefix('model.'): v for k, v in saved.items() if k.startswith('model.')}
    if len(tensors['head.bias']) != model.head.out_features:
        del tensors['head.weight'], tensors['head.bias']
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    missing = [k for k in missing if not k.startswith('head.')
               and not k.endswith('num_batches_tracked')]
    if missing or unexpected:
        raise ValueError(f'{path}: missing {missing}, unexpected {unexpected}')


def train(args):
    torch.manual_seed(args.seed)
    data = open_data(args.data, SIZE)
    teacher = Teacher(*data.taught(10_000), len(data.labels)) if data.has_teacher else None
    model = sf_mamba.make('custom', num_classes=len(data.labels), swap=not args.no_swap,
                          **CLASSIFIER)
    if args.initial:
        start_from(model, args.initial)
    else:
        model.trunk.load_imagenet()
    student = Student(model, len(teacher.mean) if teacher else 0)
    student = student.to(memory_format=torch.channels_last)

    def validate(averaged):
        top1, top5, class_mean = accuracy(predict(averaged.model, data.validation[0]),
                                          data.validation[1])
        data.refresh()
        return dict(validation_top1=round(top1, 4), validation_top5=round(top5, 4),
                    class_mean=round(class_mean, 4))

    run = training.Run(args, student, training.parameter_groups(student, RATE, WEIGHT_DECAY),
                       dict(labels=data.labels), validate)
    place = training.device()
    for rng in run.steps():
        inputs, classes, features = data.draw(rng, BATCH)
        if inputs.dtype == np.uint8:
            inputs = augment(rng, inputs, SIZE)
        answers = tuple(x.to(place) for x in teacher(features)) if teacher else None
        run.learn(student.losses(torch.as_tensor(inputs).to(place), classes.to(place), answers),
                  len(inputs))
    if args.export and run.rank == 0:
        export.write_classifier(args.export, run.average.module.model.float().cpu(), data.labels,
                                data.credits or export.HEADING)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--data', type=pathlib.Path, required=True)
    parser.add_argument('--initial', type=pathlib.Path,
                        help='model.safetensors or checkpoint.pt to start from')
    parser.add_argument('--export', type=pathlib.Path, help='model directory to write')
    parser.add_argument('--no_swap', action='store_true', help='without token swap, to compare')
    training.add_arguments(parser, PASSES)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    train(args)


if __name__ == '__main__':
    main()
