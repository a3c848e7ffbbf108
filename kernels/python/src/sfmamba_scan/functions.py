"""mamba-ssm's selective_scan_fn and causal-conv1d's causal_conv1d_fn on CPUs.

Both functions also take CUDA tensors if the package was built with nvcc (see README.md).

In shapes, the letters stand for N images, D channels, L tokens, S states, G groups and W taps.
Tensors may be float32, bfloat16, float64 or float16, which is converted to float32. If types
differ, tensors are converted to the type to which PyTorch promotes them. The arithmetic is
float64 for float64 tensors and float32 for all others. Results have the type of the first
argument. Tensors may have any layout. The functions are fastest if channels or tokens are
contiguous. Wrong shapes and types raise ValueError, which names the argument. Gradients of
gradients are not supported.
"""

import torch
import torch.nn.functional as F

from sfmamba_scan import _operators

_KERNELS = (torch.float32, torch.bfloat16, torch.float64)


def _common_type(**tensors):
    """Returns the type to which the tensors, which may be None, must be converted."""
    common = None
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f'{name}: expected a tensor, got {type(tensor).__name__}')
        if not tensor.is_floating_point():
            raise ValueError(f'{name}: expected real floating-point numbers, got {tensor.dtype}')
        common = tensor.dtype if common is None else torch.promote_types(common, tensor.dtype)
    return common if common in _KERNELS else torch.float32


def _to(dtype, *tensors):
    return [None if tensor is None else tensor.to(dtype) for tensor in tensors]


def _wide(dtype):
    """Returns the type of parameters such as A and D if activations have type `dtype`."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _period(period):
    if period is None:
        return 0
    if isinstance(period, bool) or not isinstance(period, (int, torch.SymInt)) or period < 1:
        raise ValueError(f'period: expected at least 1, got {period!r}')
    return period


def _shared(name, tensor, u, A):
    """Returns B or C. Expands a constant [D,S] to [N,D,S,L], with a group for each channel."""
    if tensor.dim() == 2:
        if tensor.shape != A.shape:
            raise ValueError(f'{name}: expected shape {list(A.shape)} of a constant, got '
                             f'{list(tensor.shape)}')
        return tensor[None, :, :, None].expand(u.shape[0], -1, -1, u.shape[2])
    if tensor.dim() not in (3, 4):
        raise ValueError(f'{name}: expected [batch, states, tokens], [batch, groups, states, '
                         f'tokens] or [channels, states], got shape {list(tensor.shape)}')
    return tensor


def _with_groups(B, C, channels):
    """Returns B and C with the same number of groups.

    If the numbers differ, one must be 1 or the number of channels. The groups of the tensor
    with fewer groups are then repeated.
    """
    groups = [x.shape[1] if x.dim() == 4 else 1 for x in (B, C)]
    if groups[0] == groups[1]:
        return B, C
    if channels not in groups and 1 not in groups:
        raise ValueError(f'C: expected {groups[0]} groups as B has, got {groups[1]}')
    B, C = (x if x.dim() == 4 else x.unsqueeze(1) for x in (B, C))
    most = max(groups)
    return [x if x.shape[1] == most else
            x.repeat_interleave(most // x.shape[1], dim=1) for x in (B, C)]


def selective_scan_fn(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False,
                      return_last_state=False, *, period=None):
    """Computes the selective scan. The state h [N,D,S] is 0 before the first token:

        step = delta + delta_bias, or softplus(delta + delta_bias) if delta_softplus
        h    = exp(step * A) * h + step * B * u
        out  = sum over S of C * h, plus D * u, times silu(z)

    u, delta, z: [N,D,L]. A: [D,S], real. D, delta_bias: [D]. B, C: [N,S,L] or [N,G,S,L], where
    D/G channels use each group. B and C may also be constants [D,S], which are slow.
    Returns out [N,D,L]. If return_last_state is true, returns (out, h), with h after the last
    token. mamba-ssm has no `period`. If it is given, h is reset to 0 before each multiple of
    `period` tokens, so that several sequences can be folded into one.
    """
    if isinstance(A, torch.Tensor) and A.is_complex():
        raise ValueError('A: complex numbers are not supported, expected real ones')
    dtype = _common_type(u=u, delta=delta, B=B, C=C, z=z)
    _common_type(A=A, D=D, delta_bias=delta_bias)
    if u.dim() != 3:
        raise ValueError(f'u: expected [batch, channels, tokens], got shape {list(u.shape)}')
    B, C = _with_groups(_shared('B', B, u, A), _shared('C', C, u, A), u.shape[1])
    out, last = _operators.selective_scan(
        *_to(dtype, u, delta), *_to(_wide(dtype), A), *_to(dtype, B, C), *_to(_wide(dtype), D),
        *_to(dtype, z), *_to(_wide(dtype), delta_bias), delta_softplus, _period(period))
    out = out.to(u.dtype)
    return (out, last) if return_last_state else out


def selective_scan_ref(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False,
                       return_last_state=False, *, period=None):
    """Computes selective_scan_fn by its definition, token by token in plain PyTorch. Slow."""
    dtype, wide = u.dtype, _wide(u.dtype)
    u, delta, A, B, C = (x.to(wide) for x in (u, delta, A, B, C))
    groups = {2: u.shape[1], 3: 1}.get(B.dim()) or B.shape[1]
    B, C = _with_groups(_shared('B', B, u, A), _shared('C', C, u, A), u.shape[1])
    groups = B.shape[1] if B.dim() == 4 else 1
    B, C = (x.reshape(len(u), groups, -1, u.shape[2]).repeat_interleave(
        u.shape[1] // groups, dim=1) for x in (B, C))                         # [N,D,S,L]
    step = delta if delta_bias is None else delta + delta_bias.to(wide)[:, None]
    step = F.softplus(step) if delta_softplus else step
    h = u.new_zeros(len(u), *A.shape)
    ys = []
    for i in range(u.shape[2]):
        if period is not None and i % period == 0:
            h = torch.zeros_like(h)
        x = step[:, :, i, None]
        h = torch.exp(x * A) * h + x * B[..., i] * u[:, :, i, None]
        ys.append((C[..., i] * h).sum(-1))
    y = torch.stack(ys, dim=2) if ys else torch.zeros_like(u)
    y = y if D is None else y + D.to(wide)[:, None] * u
    y = (y if z is None else y * F.silu(z.to(wide))).to(dtype)
    return (y, h) if return_last_state else y


def causal_conv1d_fn(x, weight, bias=None, seq_idx=None, initial_states=None,
                     return_final_states=False, final_states_out=None, activation=None, *,
                     period=None):
    """Computes a depthwise causal convolution of each token with the W-1 tokens before it.

    x: [N,D,L]. weight: [D,W], W from 1 to 8. bias: [D]. initial_states: [N,D,W-1], the tokens
    before the first token, which are 0 if not given. activation: None, 'silu' or 'swish'.
    seq_idx: int32 [N,L]. Taps do not reach tokens before the last change of seq_idx. Where
    seq_idx is negative, the result is 0.
    Returns out [N,D,L]. If return_final_states is true, returns (out, final), where final is
    the last W-1 tokens [N,D,W-1]. final is also written to final_states_out if this is given.
    causal-conv1d has no `period`. If it is given, taps do not reach tokens before the last
    multiple of `period` either.
    """
    if activation not in (None, 'silu', 'swish'):
        raise ValueError(f"activation: expected None, 'silu' or 'swish', got {activation!r}")
    if seq_idx is not None and (initial_states is not None or return_final_states):
        raise ValueError('seq_idx: expected None with initial_states or return_final_states')
    if final_states_out is not None and not return_final_states:
        raise ValueError('final_states_out: expected None without return_final_states')
    dtype = _common_type(x=x, initial_states=initial_states)
    _common_type(weight=weight, bias=bias)
    out = _operators.causal_conv1d(
        *_to(dtype, x), *_to(_wide(dtype), weight, bias), seq_idx, *_to(dtype, initial_states),
        activation is not None, _period(period)).to(x.dtype)
    if not return_final_states:
        return out
    before = x.new_zeros(*x.shape[:2], weight.shape[1] - 1) \
        if initial_states is None else initial_states.to(x.dtype)
    final = torch.cat([before, x], dim=2)[..., x.shape[2]:]
    if final_states_out is not None:
        final = final_states_out.copy_(final)
    return out, final.contiguous()
