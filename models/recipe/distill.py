"""Teaches a token stage what the rest of EfficientNet-Lite0 does; exports a classifier.

    python distill.py --maps MAPS ... --out RUN --export ../../models/mine/1

MAPS is what make_maps.py wrote; of several folders each is drawn from equally often, however
many maps it has. The student's layers below (the trunk) and above (the last convolution
and the classes) are the teacher's own and stay as they are; its token stage is all that
learns, with a linear map of 192 channels to the teacher's 320. The teacher's blocks 12 to
15, run on the same maps, say what is wanted, of mixed maps as well: no labels are needed.
RUN receives checkpoint.pt and log.txt; see training.py for --passes, --minutes, --resume.
With --initial a new run, with a schedule of its own, starts from another's checkpoint or
from the weights of a model directory.
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
GUIDE, MAP, FEATURES = 0.3, 1.0, 1.0  # What the parts of the loss count.
HORIZON = 150                         # Steps that the weights are averaged over.
REFRESHED = 200                       # Steps between looks for new files.
MIXED = 0.5                           # Share of maps that are mixed with another.
VALIDATION = 512                      # Maps, of the first file's end.
FITTED = 2560                         # Maps that the start is fitted to.
# Of token stages with so many blocks: the teacher's block that each is to stand for.
GUIDES = {4: (0, 1, 2, 2), 6: (0, 1, 1, 2, 2, 2), 8: (0, 0, 1, 1, 2, 2, 2, 2)}


class Maps:
    """The files of make_maps.py in some folders; refresh() finds those that came since."""

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
                if path not in self.files:  # Mapped, so that processes share the memory.
                    self.files[path] = np.load(path, mmap_mode='c')
            self.ordered.append([self.files[path] for path in paths])

    def draw(self, rng, count):
        """Maps float [n,192,7,7] from folders at random, without those of the validation."""
        rows = []
        for folder in rng.integers(0, len(self.ordered), count):
            files = self.ordered[folder]
            file = files[rng.integers(len(files))]
            kept = VALIDATION if file is self.ordered[0][0] else 0
            rows.append(file[rng.integers(len(file) - kept)])
        return torch.from_numpy(np.stack(rows)).float()


def mix(rng, maps, mixed=MIXED):
    """Mirror images; rectangles of others, or a sum with another, in a share of them."""
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
    """The classifier with the teacher's layers in it; all but its token stage is frozen."""
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
    """The model, and what its losses need: guides[j] is the teacher's block whose map block j
    learns to give, unless a later one does."""

    def __init__(self, model, guides, bf16, answers=1.0):
        super().__init__()
        self.model, self.guides, self.bf16, self.answers = model, guides, bf16, answers
        # Of the teacher's four maps, per channel; of its features.
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
        """Sets the deviations by which errors are divided."""
        maps, features, _ = teacher(x)
        for i in range(3):
            self.spread[i] = maps[i].std(dim=(0, 2, 3))
        self.spread_map.copy_(maps[3].std(dim=(0, 2, 3)))
        self.spread_features.copy_(features.std(dim=0))

    def losses(self, teacher, x):
        """Of maps x [n,192,h,w]: how far the answers, the 320 and 1280 channels and the
        guided blocks are from the teacher's."""
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
    """Shares of the maps whose best answer is the teacher's, or among the student's five best;
    and the mean divergence of its answers from the teacher's."""
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
    """Measures the errors' scale; sets the student to what least squares find."""
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
    """Sets the student to a model directory's weights; or, with the errors' scale, to the
    averaged ones of a checkpoint."""
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
