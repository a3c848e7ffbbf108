"""A token stage that begins as a teacher's blocks, fitted layer by layer in closed form.

Each token block adds two linear maps of what it computed to its input: the mixer's or the
attention's last layer, and the MLP's. With the other layers as they were initialised (of an
MLP's first: as the teacher's expanding convolution), the best last layer for a wanted
output is a problem of least squares. Blocks are fitted in their order, each to what the
ones before it leave to be explained. A minute of this is worth an hour of descent.
"""

import torch
import torch.nn.functional as F

RIDGE = 1e-3


class Moments:
    """Sums over tokens from which min |[x 1] W - y|^2 is solved."""

    def __init__(self):
        self.xx = self.xy = 0
        self.count = 0

    def add(self, x, y):
        x = torch.cat([x, x.new_ones(len(x), 1)], dim=1)
        self.xx = self.xx + x.T @ x
        self.xy = self.xy + x.T @ y
        self.count += len(x)

    def solve(self, bias):
        """weight [out,in] and bias [out]; without `bias` zeros."""
        xx, xy = self.xx.double() / self.count, self.xy.double() / self.count
        if not bias:
            xx, xy = xx[:-1, :-1], xy[:-1]
        ridge = RIDGE * xx.diagonal().mean()
        solution = torch.linalg.solve(xx + ridge * torch.eye(len(xx)), xy).float()
        return (solution[:-1].T, solution[-1]) if bias else (solution.T, None)


def layer_input(module, layer, *args):
    """What `layer`, a part of `module`, is given when the module is called."""
    seen = []
    hook = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    module(*args)
    hook.remove()
    return seen[0]


def fit_layer(layer, inputs, streams, targets, inner):
    """Fits `layer` so that, added to the streams, it gives the targets; adds it to them.

    Lists of a tensor a batch; `inner` takes what has a target out of a sequence.
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
    """The MLP's first layer as a teacher's expansion, of which it takes every so many channels.

    `spread`: the deviation that the layer norm in front took out of the tokens.
    """
    width = block.mlp.fc1.out_features
    scale = expand.bn.weight / (expand.bn.running_var + expand.bn.eps).sqrt()
    weight = expand.conv.weight[:, :, 0, 0] * scale[:, None]
    bias = expand.bn.bias - expand.bn.running_mean * scale
    strongest = weight.norm(dim=1).argsort(descending=True)[:width]
    block.mlp.fc1.weight.copy_(weight[strongest] * spread)
    block.mlp.fc1.bias.copy_(bias[strongest])


def explained(streams, targets):
    """Share of the targets' variance, a mean over channels."""
    got, target = torch.cat(streams).flatten(0, 1), torch.cat(targets).flatten(0, 1)
    error = (got - target).square().sum(0) / (target - target.mean(0)).square().sum(0)
    return 1 - error.mean().item()


@torch.no_grad()
def fit(stage, teacher, guides, batches):
    """Fits a stage on `batches` [n,192,7,7], a window each, to LiteTail's residual blocks.

    guides[j] is the teacher's block whose map block j is to give. Yields, after each block,
    the share of the map's variance that is explained, before and after.
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
    """The map 192 -> 320 in front of the neck's frozen layers, and the BatchNorm before it."""
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
