"""Initialises a token stage so that it imitates a teacher's blocks, layer by layer.

A token block adds two outputs to its input: the output of its mixer (or attention) and the output
of its MLP. The last layer of each is linear. If all other layers are fixed, least squares finds the
best weights of this last layer in closed form. The other layers keep their initial weights, except
the first layer of each MLP. It receives weights of the teacher's expanding convolution.

Blocks are fitted in their order. Each layer is fitted to the error that remains after the layers
before it. A minute of this is worth an hour of gradient descent.
"""

import torch
import torch.nn.functional as F

RIDGE = 1e-3


class Moments:
    """Collects sums over tokens, from which solve() finds the W that minimises |[x 1] W - y|^2."""

    def __init__(self):
        self.xx = self.xy = 0
        self.count = 0

    def add(self, x, y):
        x = torch.cat([x, x.new_ones(len(x), 1)], dim=1)
        self.xx = self.xx + x.T @ x
        self.xy = self.xy + x.T @ y
        self.count += len(x)

    def solve(self, bias):
        """Returns (weight [out,in], bias [out]). If `bias` is false, fits no bias and returns None
        in its place."""
        xx, xy = self.xx.double() / self.count, self.xy.double() / self.count
        if not bias:
            xx, xy = xx[:-1, :-1], xy[:-1]
        ridge = RIDGE * xx.diagonal().mean()
        solution = torch.linalg.solve(xx + ridge * torch.eye(len(xx)), xy).float()
        return (solution[:-1].T, solution[-1]) if bias else (solution.T, None)


def layer_input(module, layer, *args):
    """Returns the input that `layer`, a part of `module`, gets in module(*args)."""
    seen = []
    hook = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    module(*args)
    hook.remove()
    return seen[0]


def fit_layer(layer, inputs, streams, targets, inner):
    """Fits `layer` so that streams + layer(inputs) comes near the targets. Returns these sums.

    `inputs`, `streams` and `targets` are lists with one tensor per batch. `inner` removes the
    tokens without a target, which are the auxiliary tokens.
    """
    moments = Moments()
    for x, stream, target in zip(inputs, streams, targets):
        moments.add(inner(x).flatten(0, 1), (target - inner(stream)).flatten(0, 1))
    weight, bias = moments.solve(layer.bias is not None)
    layer.weight.copy_(weight)
    if bias is not None:
        layer.bias.copy_(bias)
    return [stream + layer(x) for x, stream in zip(inputs, streams)]


def start_mlp(block, expand, spread):
    """Sets the MLP's first layer to a teacher's expansion, with its BatchNorm folded in.

    The expansion has more channels. The layer takes those with the largest weights. `spread` is
    the standard deviation within a token. The LayerNorm before the MLP divides by it, so the
    weights are multiplied by it.
    """
    width = block.mlp.fc1.out_features
    scale = expand.bn.weight / (expand.bn.running_var + expand.bn.eps).sqrt()
    weight = expand.conv.weight[:, :, 0, 0] * scale[:, None]
    bias = expand.bn.bias - expand.bn.running_mean * scale
    strongest = weight.norm(dim=1).argsort(descending=True)[:width]
    block.mlp.fc1.weight.copy_(weight[strongest] * spread)
    block.mlp.fc1.bias.copy_(bias[strongest])


def explained(streams, targets):
    """Returns the share of the targets' variance that the streams explain, averaged over the
    channels."""
    got, target = torch.cat(streams).flatten(0, 1), torch.cat(targets).flatten(0, 1)
    error = (got - target).square().sum(0) / (target - target.mean(0)).square().sum(0)
    return 1 - error.mean().item()


@torch.no_grad()
def fit(stage, teacher, guides, batches):
    """Fits a token stage to LiteTail's residual blocks.

    Block j of the stage imitates block guides[j] of the teacher. A batch is [n,192,7,7], and each
    map is one window. After each block, yields explained() of its target map before and after the
    block was fitted.
    """
    wanted = [[m.flatten(2).transpose(1, 2) for m in teacher(x)[0][:3]] for x in batches]
    streams = [stage.attach(x.flatten(2).transpose(1, 2)) for x in batches]
    attached = True
    for j, block in enumerate(stage.blocks):
        is_mamba = j < stage.mamba_blocks
        targets = [maps[guides[j]] for maps in wanted]
        inner = (lambda x: x[:, 1:-1]) if attached else (lambda x: x)
        before = explained([inner(x) for x in streams], targets)
        layer = block.mixer.out_proj if is_mamba else block.mixer.proj
        inputs = [layer_input(block.mixer, layer, block.norm1(x)) for x in streams]
        streams = fit_layer(layer, inputs, streams, targets, inner)
        spread = streams[0].std(dim=2).mean()
        start_mlp(block, teacher.blocks[guides[j]].expand, spread)
        inputs = [F.gelu(block.mlp.fc1(block.norm2(x))) for x in streams]
        streams = fit_layer(block.mlp.fc2, inputs, streams, targets, inner)
        yield before, explained([inner(x) for x in streams], targets)
        if is_mamba and stage.config.swap:
            streams = [torch.cat([x[:, -1:], x[:, 1:-1], x[:, :1]], dim=1) for x in streams]
        if j == stage.mamba_blocks:
            streams, attached = [x[:, 1:-1] for x in streams], False


@torch.no_grad()
def fit_neck(model, teacher, batches):
    """Fits the neck's linear layer (192 -> 320 channels), which is followed by frozen layers. Also
    sets the statistics of the BatchNorm before this layer."""
    moments, count = Moments(), 0
    stage = model.levels[3]
    outputs = [stage(x) for x in batches]
    tokens = torch.cat([x.transpose(0, 1).flatten(1) for x in outputs], dim=1)
    model.norm.running_mean.copy_(tokens.mean(1))
    model.norm.running_var.copy_(tokens.var(1))
    for x, z in zip(batches, outputs):
        z = model.norm(z).permute(0, 2, 3, 1).flatten(0, 2)
        moments.add(z, teacher(x)[0][3].permute(0, 2, 3, 1).flatten(0, 2))
    weight, bias = moments.solve(True)
    model.neck.project.weight.copy_(weight[:, :, None, None])
    model.neck.project.bias.copy_(bias)
