"""Trains a token stage to replace the last blocks of EfficientNet-Lite0, and exports a classifier.

    python distill.py --maps MAPS ... --out RUN --export ../../models/mine/1

The teacher is EfficientNet-Lite0. The classifier, the student, has a token stage (Mamba and
attention blocks) in place of the teacher's blocks 12 to 15. Only the token stage, the BatchNorm
after it and a linear layer from its 192 channels to the teacher's 320 are trained. All other layers
are the teacher's and are frozen. They are the trunk before the token stage, and the last
convolution and the last linear layer after it.

MAPS is a folder that make_maps.py wrote. It has the trunk's results for pictures, called maps. If
there are several folders, each is drawn from equally often, however many maps it has. Some maps are
mixed with others. The targets are the results of the teacher's other layers on the same maps. So no
labels are needed.

RUN gets checkpoint.pt, log.txt and curve.png. See training.py for --passes, --minutes, --resume.
If --initial is given, a new run starts from the checkpoint of another run, or from the weights of a
model directory. It has a schedule of its own.
"""

import argparse
import pathlib

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F

from torchvision.models._meta import _IMAGENET_CATEGORIES

import configs
import export
import least_squares
import sf_mamba
import training
from lite_trunk import FEATURES as FEATURES_WIDTH
from lite_trunk import NECK, WIDTHS, LiteTail

BATCH = 64
PASSES = 150_000
RATE, WEIGHT_DECAY = 1e-3, 0.02
GUIDE, MAP, FEATURES = 0.3, 1.0, 1.0  # Weights of parts of the loss, see Student.losses().
HORIZON = 150                         # Steps over which the weights are averaged.
REFRESHED = 200                       # Steps between searches for new files.
MIXED = 0.5                           # Share of the maps that are mixed with another map.
VALIDATION = 512                      # Validation maps: the end of the first folder's first file.
FITTED = 2560                         # Maps to which the initial weights are fitted.
# The key is the number of blocks of the token stage. The value has, for each of these blocks, the
# index in LiteTail.blocks of the teacher's block whose result it imitates.
GUIDES = {4: (0, 1, 2, 2), 6: (0, 1, 1, 2, 2, 2), 8: (0, 0, 1, 1, 2, 2, 2, 2)}


class Maps:
    """The files that make_maps.py wrote to some folders. refresh() also finds files that were
    written later.
    """

    def __init__(self, folders):
        self.folders, self.files = [pathlib.Path(folder) for folder in folders], {}
        self.refresh()
        for folder, files in zip(self.folders, self.ordered):
            if not files:
                raise ValueError(f'{folder}: no maps; make_maps.py writes them')
        self.validation = torch.from_numpy(self.ordered[0][0][-VALIDATION:]).float()

    def refresh(self):
        self.ordered = []
        for folder in self.folders:
            paths = sorted(folder.glob('[0-9]*.npy'))
            for path in paths:
                if path not in self.files:  # Memory-mapped, so that processes share it.
                    self.files[path] = np.load(path, mmap_mode='c')
            self.ordered.append([self.files[path] for path in paths])

    def draw(self, rng, count):
        """Returns `count` random maps, float [count,192,7,7]. The validation maps are never among
        them.
        """
        rows = []
        for folder in rng.integers(0, len(self.ordered), count):
            files = self.ordered[folder]
            file = files[rng.integers(len(files))]
            kept = VALIDATION if file is self.ordered[0][0] else 0
            rows.append(file[rng.integers(len(file) - kept)])
        return torch.from_numpy(np.stack(rows)).float()


def mix(rng, maps, mixed=MIXED):
    """Mirrors half of the maps [n,C,h,w], at random. Then mixes the share `mixed` of the maps with
    another map. Either a rectangle of the other map is inserted, or the map becomes a weighted mean
    of the two. Changes `maps`, and returns it.
    """
    flipped = torch.from_numpy(rng.random(len(maps)) < 0.5)
    maps[flipped] = maps[flipped].flip(3)
    others = maps[torch.from_numpy(rng.permutation(len(maps)))]
    side = maps.shape[2]
    for i in np.flatnonzero(rng.random(len(maps)) < mixed):
        if rng.random() < 0.5:
            h, w = rng.integers(2, side + 1, 2)
            y, x = rng.integers(0, side - h + 1), rng.integers(0, side - w + 1)
            v, u = rng.integers(0, side - h + 1), rng.integers(0, side - w + 1)
            maps[i, :, y:y + h, x:x + w] = others[i, :, v:v + h, u:u + w]
        else:
            share = rng.uniform(0.1, 0.5)
            maps[i] = (1 - share) * maps[i] + share * others[i]
    return maps


def make_student(depth, swap=True):
    """Returns (model, teacher). `model` is the classifier. Its trunk, last convolution and last
    linear layer have the teacher's weights and are frozen. `teacher` is a LiteTail.
    """
    config = dict(configs.PHOTOGRAPHS, depths=(0, 0, 0, depth))
    model = sf_mamba.make('custom', swap=swap, **config)
    model.trunk.load_imagenet()
    teacher = LiteTail().load_imagenet().eval()
    model.neck.expand.load_state_dict(teacher.expand.state_dict())
    model.head.load_state_dict(teacher.head.state_dict())
    for part in (model.trunk, model.neck.expand, model.head, teacher):
        part.requires_grad_(False)
    return model, teacher


class Student(torch.nn.Module):
    """The model, and the settings and scales of its losses.

    guides[j] is the teacher's block that the token stage's block j imitates, as in GUIDES. If
    several blocks have the same guide, only the last of them has a loss. `answers` is the weight of
    the logits' loss.
    """

    def __init__(self, model, guides, bf16, answers=1.0):
        super().__init__()
        self.model, self.guides, self.bf16, self.answers = model, guides, bf16, answers
        # Standard deviations of the teacher's results per channel: of the maps of its first three
        # blocks, of its last block's map, and of its features.
        self.register_buffer('spread', torch.ones(3, WIDTHS[-1]))
        self.register_buffer('spread_map', torch.ones(NECK))
        self.register_buffer('spread_features', torch.ones(FEATURES_WIDTH))
        self.seen = []
        last = {guide: j for j, guide in enumerate(guides)}
        self.guided = {j: guide for guide, j in last.items()}
        for j in self.guided:
            model.levels[3].blocks[j].register_forward_hook(
                lambda module, args, out, j=j: self.seen.append((j, out)))

    def train(self, mode=True):
        super().train(mode)
        self.model.trunk.eval()
        self.model.neck.expand.eval()
        return self

    def measure(self, teacher, x):
        """Sets the standard deviations of the teacher's results on maps x. The losses divide errors
        by them.
        """
        maps, features, _ = teacher(x)
        for i in range(3):
            self.spread[i] = maps[i].std(dim=(0, 2, 3))
        self.spread_map.copy_(maps[3].std(dim=(0, 2, 3)))
        self.spread_features.copy_(features.std(dim=0))

    def losses(self, teacher, x):
        """Returns a dict of losses on maps x [n,192,h,w]. Each is a distance between student and
        teacher: `soft` of the logits, `map` of the 320 channels before the last convolution,
        `features` of the 1280 features after it, and `guides` of the results of blocks.
        """
        self.seen.clear()
        with training.precision(self.bf16):
            with torch.no_grad():
                maps, features, wanted = teacher(x)
            z = self.model.norm(self.model.levels[3](x))
            z = self.model.neck.project(z)
            guess = self.model.neck.expand(z).mean(dim=(2, 3))
            logits = self.model.head(guess)
        guides = 0
        for j, out in self.seen:
            target = maps[self.guided[j]].flatten(2).transpose(1, 2)
            if out.shape[1] > target.shape[1]:  # The auxiliary tokens have no target.
                out = out[:, 1:-1]
            guides = guides + (((out - target) / self.spread[self.guided[j]]) ** 2).mean()
        errors = (z.float() - maps[3].float()) / self.spread_map.view(-1, 1, 1)
        other = (guess.float() - features.float()) / self.spread_features
        soft = F.kl_div(logits.float().log_softmax(1), wanted.float().log_softmax(1),
                        reduction='batchmean', log_target=True)
        return dict(soft=self.answers * soft, map=MAP * errors.square().mean(),
                    features=FEATURES * other.square().mean(), guides=GUIDE * guides)


@torch.no_grad()
def agreement(model, teacher, maps, batch=64):
    """Returns (top-1, top-5, mean KL divergence) of the student's answers and the teacher's. Top-1
    is the share of maps for which the teacher's best class is the student's best class. Top-5 is
    the share for which it is among the student's five best classes.
    """
    model.eval()
    hits, divergence = [], 0
    for x in maps.split(batch):
        wanted = teacher(x)[2]
        logits = model.head(model.pool(model.levels[3](x)))
        hits.append(logits.topk(5).indices == wanted.argmax(1, keepdim=True))
        divergence += F.kl_div(logits.log_softmax(1), wanted.log_softmax(1), reduction='sum',
                               log_target=True).item()
    hits = torch.cat(hits)
    return (hits[:, 0].float().mean().item(), hits.any(1).float().mean().item(),
            divergence / len(maps))


def start(student, teacher, batches, fitted=True):
    """Measures the scale of the losses' errors. If `fitted`, also sets weights of the token stage
    and of the linear layer after it by least squares (least_squares.py). Otherwise, the student
    keeps its weights.
    """
    student.eval()
    with torch.no_grad():
        student.measure(teacher, torch.cat(batches[:4]))
    if fitted:
        stage = student.model.levels[3]
        for shares in least_squares.fit(stage, teacher, student.guides, batches):
            print('explained by the input and by the block: {:.1%}, {:.1%}'.format(*shares),
                  flush=True)
        least_squares.fit_neck(student.model, teacher, batches)


def take_weights(student, path):
    """Loads the student's weights from a model directory or from a run's checkpoint. A checkpoint
    supplies its averaged weights, and also the scale of the losses' errors.
    """
    wanted = len(student.guides)
    if path.is_dir():
        weights = safetensors.torch.load_file(path / 'model.safetensors')
        depth = len({key.split('.')[3] for key in weights if key.startswith('levels.3.blocks.')})
    else:
        saved = torch.load(path, weights_only=True)
        depth = saved['facts']['depth']
    if depth != wanted:
        raise ValueError(f'{path}: a token stage of {depth} blocks, expected --depth {wanted}')
    if path.is_dir():
        student.model.load_state_dict(weights, strict=False)
    else:
        student.load_state_dict(saved['state_dict'])


def train(args):
    torch.manual_seed(args.seed)
    data = Maps(args.maps)
    kept = Maps([args.validation]).validation if args.validation else data.validation
    model, teacher = make_student(args.depth, not args.no_swap)
    student = Student(model, GUIDES[args.depth], args.bf16, args.answers)
    if not args.resume:
        start(student, teacher, data.draw(np.random.default_rng(args.seed), FITTED).split(256),
              fitted=not (args.no_fit or args.initial))
    if args.initial:
        take_weights(student, args.initial)

    def validate(averaged):
        top1, top5, divergence = agreement(averaged.model, teacher, kept)
        return dict(files=sum(map(len, data.ordered)), agreement_top1=round(top1, 4),
                    agreement_top5=round(top5, 4), divergence=round(divergence, 4))

    groups = training.parameter_groups(student, args.rate, WEIGHT_DECAY)
    run = training.Run(args, student, groups,
                       dict(depth=args.depth, swap=not args.no_swap), validate, HORIZON)
    place = training.device()
    teacher = teacher.to(place, memory_format=torch.channels_last)
    for rng in run.steps():
        x = mix(rng, data.draw(rng, args.batch), args.mixed).to(place, memory_format=torch.channels_last)
        run.learn(student.losses(teacher, x), len(x))
        if run.step % REFRESHED == 0:
            data.refresh()
    if args.export and run.rank == 0:
        export.write_photographs(args.export, run.average.module.model.float().cpu(), args.depth,
                                 _IMAGENET_CATEGORIES)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--maps', type=pathlib.Path, nargs='+', required=True)
    parser.add_argument('--validation', type=pathlib.Path,
                        help='maps of photographs that no other folder has')
    parser.add_argument('--export', type=pathlib.Path, help='model directory to write')
    parser.add_argument('--initial', type=pathlib.Path, help='checkpoint or model directory to begin with')
    parser.add_argument('--depth', type=int, default=6, choices=GUIDES)
    parser.add_argument('--batch', type=int, default=BATCH)
    parser.add_argument('--rate', type=float, default=RATE)
    parser.add_argument('--bf16', action='store_true', help='matrices in bf16 on a CPU too')
    parser.add_argument('--mixed', type=float, default=MIXED, help='share of mixed maps')
    parser.add_argument('--answers', type=float, default=1.0,
                        help="what the answers' loss counts beside the maps' and features'")
    parser.add_argument('--no_swap', action='store_true', help='without token swap, to compare')
    parser.add_argument('--no_fit', action='store_true', help='start from random layers')
    training.add_arguments(parser, PASSES)
    args = parser.parse_args()
    if args.initial and args.resume:
        parser.error('--initial and --resume: one of the two')
    torch.set_num_threads(args.threads)
    train(args)


if __name__ == '__main__':
    main()
