"""SF-Mamba and MambaVision classifiers in plain PyTorch.

They are for training, for exporting weights, and as a slow but readable reference for the C++
server. Sources: MambaVision (arXiv 2407.08083) for the network, Mamba (arXiv 2312.00752) for the
scan, SF-Mamba (arXiv 2603.16423) for the auxiliary tokens. The module names are the checkpoint's
keys.

Letters: N images, S sequences (images x windows), L tokens, C channels, D = C/2 scan
channels, n = 8 states.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

import lite_trunk

try:
    import sfmamba_scan  # kernels/python: the scan several times as fast on a CPU.
except ImportError:
    sfmamba_scan = None

STATES = 8
MLP_RATIO = 4


@dataclasses.dataclass
class Config:
    dim: int                       # Width of stage 1; it doubles from stage to stage.
    in_dim: int                    # Width of the stem's first convolution.
    depths: tuple                  # Blocks per stage, four of them.
    num_heads: tuple               # Attention heads of stages 3 and 4.
    windows: tuple = (14, 7)       # Window sides of stages 3 and 4.
    layer_scale: bool = False      # Learned factors on the residuals of stages 3 and 4.
    num_classes: int = 1000
    tokens: str = 'data'           # Auxiliary tokens: 'none' (MambaVision), 'data', 'learnable'.
    swap: bool = True              # Exchange the two tokens after each Mamba block.
    discard: str = 'after_first_attn'  # Or 'before_attn', 'after_attn'.
    # EfficientNet-Lite0's layers down to this stride. With 16, they replace the stem and stages 1
    # and 2, and dim must be 28. With 32, they replace the stem and stages 1 to 3, and dim must be
    # 24.
    lite_trunk: int = 0
    neck: bool = False  # Whether EfficientNet-Lite0's last convolution comes before the head.
    drop_path: float = 0.0  # Share of training samples for which the last block is left out.

    @property
    def first(self):
        """The first stage that the trunk does not replace, counted from 0."""
        return {0: 0, 16: 2, 32: 3}[self.lite_trunk]

    @property
    def widths(self):
        """The channels of the four stages."""
        wide = tuple(self.dim * 2**i for i in range(4))
        return (*lite_trunk.WIDTHS[:3], wide[3]) if self.lite_trunk else wide


VARIANTS = {
    'T': dict(dim=80, in_dim=32, depths=(1, 3, 8, 4), num_heads=(8, 16)),
    'T2': dict(dim=80, in_dim=32, depths=(1, 3, 11, 4), num_heads=(8, 16)),
    'S': dict(dim=96, in_dim=64, depths=(3, 3, 7, 5), num_heads=(8, 16)),
    'B': dict(dim=128, in_dim=64, depths=(3, 3, 10, 5), num_heads=(8, 16), layer_scale=True),
    'L': dict(dim=196, in_dim=64, depths=(3, 3, 10, 5), num_heads=(16, 32), layer_scale=True),
    'L2': dict(dim=196, in_dim=64, depths=(3, 3, 12, 5), num_heads=(16, 32), layer_scale=True),
    'L3': dict(dim=256, in_dim=64, depths=(3, 3, 20, 10), num_heads=(16, 32),
               windows=(16, 8), layer_scale=True),
}


def make(variant, num_classes=1000, tokens='data', **overrides):
    """Returns a newly initialised model. If `variant` is 'custom', `overrides` has all fields."""
    fields = {**VARIANTS.get(variant, {}), **overrides}
    if variant not in VARIANTS and variant != 'custom':
        raise ValueError(f'unknown variant {variant!r}; known: {", ".join(VARIANTS)}, custom')
    return SFMamba(Config(num_classes=num_classes, tokens=tokens, **fields))


# The scan computes the recurrence h[t] = a[t] * h[t-1] + b[t] along the first axis, with h[-1] = 0.

class LinearRecurrence(torch.autograd.Function):
    """The recurrence and its gradient, which is the same recurrence run backwards.

    The recurrence is a loop over time with one fused multiply-add per step. It stores h for the
    backward pass. This takes less memory than autograd's graph of L nodes.
    """

    @staticmethod
    def forward(ctx, a, b):
        h = b.clone()
        for t in range(1, len(h)):
            h[t].addcmul_(a[t], h[t - 1])
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, grad):
        a, h = ctx.saved_tensors
        g = grad.clone(memory_format=torch.contiguous_format)
        for t in range(len(g) - 2, -1, -1):
            g[t].addcmul_(a[t + 1], g[t + 1])
        grad_a = torch.zeros_like(a)
        torch.mul(g[1:], h[:-1], out=grad_a[1:])
        return grad_a, g


def selective_scan(u, dt, A, B, C, D, bias):
    """Scans u. u, dt are [S,L,D], A [D,n] is negative, B, C are [S,L,n], D, bias are [D]. Returns y
    [S,L,D]."""
    if sfmamba_scan is not None and u.device.type == 'cpu':
        u, dt, B, C = (x.transpose(1, 2) for x in (u, dt, B, C))
        return sfmamba_scan.selective_scan_fn(
            u, dt, A, B, C, D, delta_bias=bias, delta_softplus=True).transpose(1, 2)
    u, dt, B, C = (x.transpose(0, 1) for x in (u, dt, B, C))  # Time first.
    delta = F.softplus(dt + bias)
    a = torch.exp(delta.unsqueeze(-1) * A)                                # [L,S,D,n]
    b = (delta * u).unsqueeze(-1) * B.unsqueeze(2)                        # [L,S,D,n]
    h = LinearRecurrence.apply(a, b)
    y = torch.matmul(h, C.unsqueeze(-1)).squeeze(-1) + D * u
    return y.transpose(0, 1)


def selective_scan_loop(u, dt, A, B, C, D, bias):
    """Computes the scan token by token, as it is defined. Tests compare `selective_scan` with this
    function.
    """
    delta = F.softplus(dt + bias)
    h = u.new_zeros(u.shape[0], u.shape[2], A.shape[1])
    ys = []
    for t in range(u.shape[1]):
        d = delta[:, t, :, None]
        h = torch.exp(d * A) * h + d * B[:, t, None, :] * u[:, t, :, None]
        ys.append((h * C[:, t, None, :]).sum(-1) + D * u[:, t])
    return torch.stack(ys, dim=1)


# Layers.

class Block(nn.Module):
    """A block with residuals and stochastic depth (arXiv 1603.09382). In training, a residual is
    left out for a share of the samples, and is scaled up for all others."""

    left_out = 0.0  # The share; SFMamba sets it.

    def residual(self, y):
        if not self.training or not self.left_out:
            return y
        kept = y.new_empty(len(y), *[1] * (y.ndim - 1)).bernoulli_(1 - self.left_out)
        return y * (kept / (1 - self.left_out))


class ConvBlock(Block):
    """Maps [N,C,H,W] to [N,C,H,W]. GELU is in its tanh form."""

    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.gelu(self.norm1(self.conv1(x)), approximate='tanh')
        return x + self.residual(self.norm2(self.conv2(y)))


class MambaMixer(nn.Module):
    """The MambaVision mixer (section 3.2) of [S,L,C]. One half of the channels is scanned, the
    other is not."""

    def __init__(self, width):
        super().__init__()
        half, self.rank = width // 2, math.ceil(width / 16)
        self.in_proj = nn.Linear(width, width, bias=False)
        self.conv1d_x = nn.Conv1d(half, half, 3, padding=1, groups=half, bias=False)
        self.conv1d_z = nn.Conv1d(half, half, 3, padding=1, groups=half, bias=False)
        self.x_proj = nn.Linear(half, self.rank + 2 * STATES, bias=False)
        self.dt_proj = nn.Linear(self.rank, half)
        self.A_log = nn.Parameter(torch.log(torch.arange(1.0, STATES + 1)).repeat(half, 1))
        self.D = nn.Parameter(torch.ones(half))
        self.out_proj = nn.Linear(width, width, bias=False)

    def forward(self, x):
        u, z = F.silu(self.convolve(self.in_proj(x))).chunk(2, dim=-1)
        dt, B, C = self.x_proj(u).split([self.rank, STATES, STATES], dim=-1)
        # dt_proj adds its bias, and the scan adds it again, because MambaVision was trained that
        # way.
        y = selective_scan(u, self.dt_proj(dt), -torch.exp(self.A_log), B, C, self.D,
                           self.dt_proj.bias)
        return self.out_proj(torch.cat([y, z], dim=-1))

    def convolve(self, x):
        """Applies conv1d_x to the first half of the channels of x [S,L,C], and conv1d_z to the
        second half.

        conv1d() would copy the data to another layout, forward and backward. conv2d() needs no
        copy, because it accepts the layout of x as channels_last.
        """
        weight = torch.cat([self.conv1d_x.weight, self.conv1d_z.weight]).unsqueeze(2)
        x = x.transpose(1, 2).unsqueeze(2)                                 # [S,C,1,L]
        y = F.conv2d(x, weight, padding=(0, 1), groups=len(weight))
        return y.squeeze(2).transpose(1, 2)


class Attention(nn.Module):
    """Softmax attention over the L tokens of a sequence, [S,L,C]."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        S, L, C = x.shape
        qkv = self.qkv(x).view(S, L, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if q.dtype == torch.bfloat16 and q.device.type == 'cpu':
            # PyTorch's gradient of attention takes twice as long in bf16 as in fp32.
            with torch.autocast('cpu', enabled=False):
                y = F.scaled_dot_product_attention(q.float(), k.float(), v.float())
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(S, L, C))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(width, MLP_RATIO * width)
        self.fc2 = nn.Linear(MLP_RATIO * width, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class TokenBlock(Block):
    """A mixer and an MLP. Each reads the residual stream through a LayerNorm and adds its result to
    it."""

    def __init__(self, width, mixer, layer_scale):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.mixer = mixer
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)
        self.gamma_1 = nn.Parameter(torch.full((width,), 1e-5)) if layer_scale else None
        self.gamma_2 = nn.Parameter(torch.full((width,), 1e-5)) if layer_scale else None

    def forward(self, x):
        y = self.mixer(self.norm1(x))
        x = x + self.residual(y if self.gamma_1 is None else self.gamma_1 * y)
        y = self.mlp(self.norm2(x))
        return x + self.residual(y if self.gamma_2 is None else self.gamma_2 * y)


class Downsample(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.reduction = nn.Sequential(nn.Conv2d(width, 2 * width, 3, 2, 1, bias=False))

    def forward(self, x):
        return self.reduction(x)


# Stages. A stage's forward() does not apply its `downsample`. SFMamba.run_stages() applies it.

class ConvStage(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList(ConvBlock(width) for _ in range(depth))
        self.downsample = Downsample(width)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class TokenStage(nn.Module):
    """Mamba blocks, then attention blocks, on the windows of the map, which is padded with
    zeros."""

    def __init__(self, width, depth, heads, window, last, config):
        super().__init__()
        self.window, self.config = window, config
        self.mamba_blocks = math.ceil(depth / 2)
        self.blocks = nn.ModuleList(
            TokenBlock(width, MambaMixer(width) if j < self.mamba_blocks
                       else Attention(width, heads), config.layer_scale)
            for j in range(depth))
        self.downsample = None if last else Downsample(width)
        learnable = config.tokens == 'learnable'
        self.aux_head = nn.Parameter(torch.zeros(1, 1, width)) if learnable else None
        self.aux_tail = nn.Parameter(torch.zeros(1, 1, width)) if learnable else None

    def forward(self, x):
        N, C, H, W = x.shape
        w = self.window
        x = F.pad(x, (0, -W % w, 0, -H % w))
        rows, cols = x.shape[2] // w, x.shape[3] // w
        x = x.view(N, C, rows, w, cols, w).permute(0, 2, 4, 3, 5, 1).reshape(-1, w * w, C)
        x = self.run_blocks(x)
        x = x.view(N, rows, cols, w, w, C).permute(0, 5, 1, 3, 2, 4)
        return x.reshape(N, C, rows * w, cols * w)[:, :, :H, :W]

    def run_blocks(self, x):
        """Runs the blocks on [S,L,C] with auxiliary token swapping (SF-Mamba, section 3.2)."""
        attached = self.config.tokens != 'none'
        if attached:
            x = self.attach(x)
        drop_after = {'before_attn': self.mamba_blocks - 1,
                      'after_first_attn': self.mamba_blocks,
                      'after_attn': len(self.blocks) - 1}[self.config.discard]
        drop_after = min(drop_after, len(self.blocks) - 1)
        for j, block in enumerate(self.blocks):
            x = block(x)
            if attached and self.config.swap and j < self.mamba_blocks:
                head, inner, tail = x.split([1, x.shape[1] - 2, 1], dim=1)
                x = torch.cat([tail, inner, head], dim=1)
            if attached and j == drop_after:
                x, attached = x[:, 1:-1], False
        return x

    def attach(self, x):
        if self.aux_head is None:
            head = tail = x.mean(dim=1, keepdim=True)
        else:
            head, tail = (p.expand(len(x), -1, -1) for p in (self.aux_head, self.aux_tail))
        return torch.cat([head, x, tail], dim=1)


class PatchEmbed(nn.Module):
    """Maps images [N,3,H,W] to [N,dim,H/4,W/4]. Its BatchNorms have their own epsilon."""

    def __init__(self, in_dim, dim):
        super().__init__()
        self.conv_down = nn.Sequential(
            nn.Conv2d(3, in_dim, 3, 2, 1, bias=False), nn.BatchNorm2d(in_dim, eps=1e-4),
            nn.ReLU(),
            nn.Conv2d(in_dim, dim, 3, 2, 1, bias=False), nn.BatchNorm2d(dim, eps=1e-4),
            nn.ReLU())

    def forward(self, x):
        return self.conv_down(x)


class SFMamba(nn.Module):
    LAST = ('head.',)  # The layers that tell the classes apart.

    def __init__(self, config):
        super().__init__()
        self.config = config
        widths = config.widths
        if config.lite_trunk:
            self.trunk = lite_trunk.LiteTrunk(config.lite_trunk)
        else:
            self.patch_embed = PatchEmbed(config.in_dim, config.dim)
        # A stage that the trunk replaces becomes an Identity, so that the other stages keep their
        # names.
        self.levels = nn.ModuleList(
            nn.Identity() if i < config.first else
            ConvStage(widths[i], config.depths[i]) if i < 2 else
            TokenStage(widths[i], config.depths[i], config.num_heads[i - 2],
                       config.windows[i - 2], i == 3, config)
            for i in range(4))
        self.norm = nn.BatchNorm2d(widths[3])
        self.neck = lite_trunk.Neck(widths[3]) if config.neck else None
        self.head = nn.Linear(lite_trunk.FEATURES if config.neck else widths[3],
                              config.num_classes)
        blocks = [module for module in self.modules() if isinstance(module, Block)]
        for i, block in enumerate(blocks):  # The share grows from block to block.
            block.left_out = config.drop_path * i / max(1, len(blocks) - 1)
        self.apply(initialise)

    def features(self, images):
        """Maps images [N,3,H,W] to the four stage maps at strides 4, 8, 16 and 32."""
        if self.config.lite_trunk:
            *maps, x = self.trunk(images)
            return maps + self.run_stages(x, self.config.first)
        return self.run_stages(self.patch_embed(images), 0)

    def run_stages(self, x, first):
        """Returns the maps of the stages from `first` on. x is the input of stage `first`."""
        maps = []
        for level in self.levels[first:]:
            maps.append(level(x))
            if level.downsample is not None:
                x = level.downsample(maps[-1])
        return maps

    def pool(self, last_map):
        """Maps the last stage's map to the features that the head classifies: [N,C], or [N,1280]
        with a neck."""
        x = self.norm(last_map)
        return (x if self.neck is None else self.neck(x)).mean(dim=(2, 3))

    def forward(self, images):
        """Maps normalised images [N,3,H,W] to logits [N,num_classes]."""
        return self.head(self.pool(self.features(images)[-1]))


def initialise(module):
    """Our initialisation for training from scratch. The time steps delta begin in [0.001, 0.1]."""
    if isinstance(module, nn.Linear):
        std = min(0.02 * math.sqrt(320 / module.in_features), 0.08)
        nn.init.trunc_normal_(module.weight, std=std)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    if isinstance(module, MambaMixer):
        delta = torch.exp(torch.empty_like(module.D).uniform_(math.log(1e-3), math.log(1e-1)))
        module.dt_proj.bias.data = torch.log(torch.expm1(delta)) / 2  # It is added twice.
        nn.init.uniform_(module.dt_proj.weight, -module.rank**-0.5, module.rank**-0.5)
