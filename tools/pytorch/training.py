"""The common part of the training scripts: a run that can be stopped and resumed.

Run draws losses and figures as curve.png (loss_curve.py) and writes checkpoint.pt, from which
restore() resumes. A killed run that is resumed ends with the same weights as a run without a stop.

The schedule depends on passes (pictures seen), so that a busy machine only makes a run last longer.
All randomness of a step follows from the seed and the step's number. The checkpoint holds the rest:
weights, their moving average, optimiser and position.

If torchrun starts several processes, they share a run. Each learns from its own pictures, and the
gradients are averaged.
"""

import datetime
import io
import json
import math
import os
import pathlib
import pickle
import sys
import time

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import loss_curve
from user_errors import UserError, check_writable, number

WARMUP = 0.03
CLIP = 5.0
# Parameters with these suffixes have no weight decay: the parameters of scans, and EfficientViM's
# `alpha`.
KEPT = ('A_log', 'A_logs', 'dt_projs_bias', 'alpha')
PATIENCE = datetime.timedelta(hours=2)  # How long processes wait while one of them validates.


def add_arguments(parser, passes):
    parser.add_argument('--out', type=pathlib.Path, required=True, help='folder of the run')
    parser.add_argument('--passes', type=number(int), default=passes, help='pictures to see')
    parser.add_argument('--minutes', type=number(float), help='stop here if the passes last longer')
    parser.add_argument('--resume', action='store_true', help='go on from OUT/checkpoint.pt')
    parser.add_argument('--threads', type=number(int), default=1)
    parser.add_argument('--seed', type=number(int, 0), default=0)
    parser.add_argument('--report', type=float, default=120, help='seconds between validations')


def device():
    if not torch.cuda.is_available():
        return torch.device('cpu')
    return torch.device('cuda', int(os.environ.get('LOCAL_RANK', 0)))


def join():
    """Returns (this process's rank, the number of processes), or (0, 1) if torchrun did not start
    it."""
    if 'RANK' not in os.environ:
        return 0, 1
    if not torch.distributed.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(device())
        torch.distributed.init_process_group('nccl' if torch.cuda.is_available() else 'gloo',
                                             timeout=PATIENCE)
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def leave():
    """Leaves the group of processes that join() has joined."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def average_over_processes(tensors, processes):
    """Sets the tensors to their means over all processes."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    torch.distributed.all_reduce(flat)
    for tensor, part in zip(tensors, (flat / processes).split([t.numel() for t in tensors])):
        tensor.copy_(part.view_as(tensor))


def precision(bf16=False):
    """Returns an autocast context for bf16. It is always enabled on a GPU. On a CPU, it is enabled
    only if `bf16`.
    """
    kind = device().type
    return torch.autocast(kind, torch.bfloat16, enabled=bf16 or kind == 'cuda')


def parameter_groups(model, rate, weight_decay, rate_of=None):
    """Parameter groups for AdamW. Vectors and KEPT parameters do not decay. rate_of(name) may
    replace `rate`."""
    groups = {}
    for name, parameter in model.named_parameters():
        peak = rate_of(name) if rate_of else rate
        decay = weight_decay if parameter.ndim > 1 and not name.endswith(KEPT) else 0
        groups.setdefault((peak, decay), []).append(parameter)
    return [dict(params=parameters, lr=peak, peak=peak, weight_decay=decay)
            for (peak, decay), parameters in groups.items()]


def share_at(progress):
    """Returns the fraction of the peak learning rate. It rises for a short time, then falls like a
    cosine to nearly 0.
    """
    if progress < WARMUP:
        return progress / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (progress - WARMUP) / (1 - WARMUP))) + 1e-3


def average_weights(horizon):
    """Returns a function that averages weights over about `horizon` steps. At the beginning, it
    averages over fewer steps, so that the first weights are soon forgotten.
    """
    def average(averaged, current, count):
        decay = min(1 - 1 / horizon, (1 + count) / (10 + count))
        get_ema_multi_avg_fn(decay)(averaged, current, count)
    return average


def adamw(groups):
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True)


class Run:
    """The state of a training run, with its files in `args.out`.

        run = Run(args, model, groups, facts, validate)
        for rng in run.steps():
            run.learn(losses(batch(rng)), count)

    A step in parts calls run.accumulate() for each part and run.update() once. `schedule` returns
    the share of the peak rate at a progress in 0..1. `optimise` makes the optimiser for the groups.
    `horizon` is the argument of average_weights().

    `facts` (such as labels) go into every checkpoint. `validate` is called with the averaged model
    every args.report seconds and at the end. It returns a dict of figures for log.txt, whose lines
    are JSON. `figures` has the last ones. Only the process with rank 0 validates and writes.
    """

    def __init__(self, args, model, groups, facts, validate, horizon=300, schedule=share_at,
                 optimise=adamw):
        check_writable(args.out)
        self.rank, self.processes = join()
        self.args, self.facts, self.validate, self.schedule = args, facts, validate, schedule
        self.model = model.to(device())
        self.average = AveragedModel(self.model, multi_avg_fn=average_weights(horizon),
                                     use_buffers=True)
        self.optimiser = optimise(groups)
        self.step = self.passes = 0
        self.seconds, self.losses, self.curves, self.figures = 0.0, [], {}, {}
        self.waiting = []  # Losses of the parts of a step.
        self.saved = args.resume  # Whether OUT/checkpoint.pt is this run's.
        if args.resume:
            self.restore(args.out / 'checkpoint.pt')

    def restore(self, path):
        """Resumes from a checkpoint. Raises UserError if the file is missing, is not a checkpoint,
        or is the checkpoint of another network.
        """
        if not path.exists():
            raise UserError(f'{path}: no such file: nothing to resume')
        try:
            saved = torch.load(path, weights_only=True, map_location=device())
            self.step, self.passes, self.seconds = saved['position']
        except (EOFError, KeyError, RuntimeError, pickle.UnpicklingError) as error:
            raise UserError(f'{path}: not a checkpoint of a run, or damaged') from error
        try:
            self.model.load_state_dict(saved['current'])
            self.average.load_state_dict(saved['average'])
            self.optimiser.load_state_dict(saved['optimiser'])
        except (KeyError, RuntimeError, ValueError) as error:
            raise UserError(f'{path}: a run of another network or other classes') from error
        self.curves = {name: loss_curve.Curve(state=state)
                       for name, state in saved.get('curves', {}).items()}
        self.figures = saved['figures']

    def progress(self):
        done = self.passes / self.args.passes
        return max(done, self.seconds / 60 / self.args.minutes) if self.args.minutes else done

    def steps(self):
        """Yields a random generator for each step until the passes or minutes are used up."""
        try:
            yield from self._steps()
            self.report()
        finally:
            print(file=sys.stderr)  # Ends the progress bar's line.

    def _steps(self):
        last = reported = time.monotonic()
        shown = 0
        self.model.train()
        while self.progress() < 1:
            for group in self.optimiser.param_groups:
                group['lr'] = group['peak'] * self.schedule(self.progress())
            torch.manual_seed(self.args.seed * 1_000_003 + self.step)
            yield np.random.default_rng((self.args.seed, self.step, self.rank))
            now = time.monotonic()
            self.seconds += min(now - last, 60)  # A stopped process does not count.
            last = now
            if self.processes > 1:
                self.share_time()
            if now - shown > 1 or self.progress() >= 1:
                self.show()
                shown = now
            if now - reported > self.args.report:
                self.report()
                last = reported = time.monotonic()

    def learn(self, losses, count):
        """Makes one step of the optimiser, on a dict of losses of `count` pictures per process."""
        self.accumulate(losses)
        self.update(count)

    def accumulate(self, losses, parts=1):
        """Adds the gradients of one of `parts` equal parts of a step."""
        (sum(losses.values()) / parts).backward()
        self.waiting.append({name: loss.detach() for name, loss in losses.items()})

    def update(self, count):
        """Makes the optimiser's step, on gradients of `count` pictures per process."""
        if self.processes > 1:
            self.share_gradients()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.average.update_parameters(self.model)
        self.passes += count * self.processes
        self.step += 1
        self.losses.append({name: float(np.mean([part[name].item() for part in self.waiting]))
                            for name in self.waiting[0]})
        self.waiting = []
        for name, value in self.losses[-1].items():
            self.mark(name if name.startswith('loss') else f'loss {name}', value)

    def mark(self, name, value):
        """Adds a point to a curve."""
        self.curves.setdefault(name, loss_curve.Curve()).add(self.step, value)

    def share_gradients(self):
        gradients = []
        for parameter in self.model.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        average_over_processes(gradients, self.processes)

    def share_time(self):
        """Sets the elapsed time, `seconds`, to the smallest of all processes. So all processes have
        the same learning rate and stop at the same step.

        The process that validates does not count the time of a validation. So the time that the
        others wait for it does not count.
        """
        seconds = torch.tensor([self.seconds], dtype=torch.float64, device=device())
        torch.distributed.all_reduce(seconds, torch.distributed.ReduceOp.MIN)
        self.seconds = seconds.item()

    def show(self):
        """Prints the progress bar."""
        if self.rank:
            return
        done = min(self.progress(), 1)
        left = self.seconds / max(done, 1e-9) * (1 - done) / 60
        print(f'\r[{"#" * int(done * 30):30}] {done:4.0%}  {self.passes} pictures, '
              f'{self.passes / max(self.seconds, 1e-9):.1f}/s, {left:.0f} min left, '
              f'loss {sum(self.losses[-1].values()):.3f} ', end='', file=sys.stderr, flush=True)

    def report(self):
        """Validates the averaged weights. Writes checkpoint.pt, curve.png and a line of log.txt."""
        if self.rank:
            self.losses = self.losses[-1:]
            return
        rows, self.losses = self.losses or [{}], self.losses[-1:]
        means = {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}
        validated = self.validate(self.average.module)
        for name, value in validated.items():
            self.mark(name, value)
        self.figures = dict(passes=self.passes, minutes=round(self.seconds / 60, 1), **means,
                            **validated)
        self.model.train()
        self.save()
        with open(self.args.out / 'log.txt', 'a', encoding='utf-8') as log:
            print(json.dumps(self.figures), file=log)
        loss_curve.draw(self.args.out / 'curve.png',
                        {name: curve.points for name, curve in self.curves.items()})

    def save(self):
        """Writes checkpoint.pt completely or not at all. An earlier run's checkpoint is kept beside
        it."""
        path, new = self.args.out / 'checkpoint.pt', self.args.out / 'checkpoint.new'
        content = io.BytesIO()  # torch.save() does not say why a file cannot be written.
        torch.save(dict(state_dict=self.average.module.state_dict(), facts=self.facts,
                        figures=self.figures, current=self.model.state_dict(),
                        average=self.average.state_dict(), optimiser=self.optimiser.state_dict(),
                        curves={name: curve.state for name, curve in self.curves.items()},
                        position=(self.step, self.passes, self.seconds)), content)
        try:
            new.write_bytes(content.getbuffer())
        except OSError as error:
            new.unlink(missing_ok=True)
            raise UserError(f'{new}: {error.strerror}') from error
        if not self.saved and path.exists():
            kept = path.replace(path.with_name('checkpoint.earlier.pt'))
            print(f'\n{path}: that of an earlier run is kept as {kept.name}', file=sys.stderr)
        new.replace(path)
        self.saved = True
