"""Loads the operators. Registers their gradients and, for torch.compile, their shapes."""

import importlib.machinery
import pathlib

import torch


def _library():
    folder = pathlib.Path(__file__).parent
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f'_kernels{suffix}'
        if path.exists():
            return str(path)
    raise ImportError(f'no compiled kernels in {folder}: pip install ./kernels/python makes them')


try:
    torch.ops.load_library(_library())
except OSError as error:
    raise ImportError('the kernels were compiled for another PyTorch than '
                      f'{torch.__version__}: install the package again ({error})') from error
if _error := torch.ops.sfmamba_scan.cpu_isa_error():
    raise ValueError(_error)
selective_scan = torch.ops.sfmamba_scan.selective_scan
causal_conv1d = torch.ops.sfmamba_scan.causal_conv1d
_scan_backward = torch.ops.sfmamba_scan.selective_scan_backward
_conv_backward = torch.ops.sfmamba_scan.causal_conv1d_backward


def _like(tensor, other):
    """Returns an uninitialised tensor with the shape and type of `tensor`.

    If `tensor` is None, returns a tensor with 0 elements and the type of `other`.
    """
    return other.new_empty(0) if tensor is None else torch.empty_like(tensor)


@torch.library.register_fake('sfmamba_scan::selective_scan')
def _(u, delta, A, B, C, D, z, delta_bias, delta_softplus, period):
    return torch.empty_like(u), A.new_empty(u.shape[0], *A.shape)


@torch.library.register_fake('sfmamba_scan::selective_scan_backward')
def _(grad_out, grad_last, u, delta, A, B, C, D, z, delta_bias, delta_softplus, period):
    rows = [tensor.new_empty(tensor.shape) for tensor in (A, B, C)]
    return [torch.empty_like(u), torch.empty_like(delta), *rows, _like(D, A), _like(z, A),
            _like(delta_bias, A)]


@torch.library.register_fake('sfmamba_scan::causal_conv1d')
def _(x, weight, bias, seq_idx, initial_states, silu, period):
    return torch.empty_like(x)


@torch.library.register_fake('sfmamba_scan::causal_conv1d_backward')
def _(grad_out, x, weight, bias, seq_idx, initial_states, silu, period):
    return [torch.empty_like(x), weight.new_empty(weight.shape), _like(bias, weight),
            _like(initial_states, weight)]


def _save(ctx, inputs, output):
    """Saves only the inputs. The gradient computes the states again."""
    ctx.save_for_backward(*(x for x in inputs if isinstance(x, torch.Tensor)))
    ctx.set_materialize_grads(False)
    # Contains (x,) for each input x that is not a tensor, and False for each tensor. Tensors are
    # saved above.
    ctx.others = [not isinstance(x, torch.Tensor) and (x,) for x in inputs]


def _saved(ctx):
    tensors = iter(ctx.saved_tensors)
    return [other[0] if other else next(tensors) for other in ctx.others]


def _given(gradients, inputs):
    """Returns the gradients of the inputs that are tensors, and None for other inputs."""
    return [gradient if isinstance(x, torch.Tensor) else None
            for gradient, x in zip(gradients, inputs)]


def _scan_gradient(ctx, grad_out, grad_last):
    inputs = _saved(ctx)
    if grad_out is None and grad_last is None:
        return (None,) * len(inputs)
    if grad_out is None:
        grad_out = torch.zeros_like(inputs[0])
    gradients = _scan_backward(grad_out, grad_last, *inputs)
    return (*_given(gradients, inputs), None, None)


def _conv_gradient(ctx, grad_out):
    inputs = _saved(ctx)
    if grad_out is None:
        return (None,) * len(inputs)
    _, _, bias, _, initial_states, _, _ = inputs
    dx, dweight, dbias, dinitial = _conv_backward(grad_out, *inputs)
    return (dx, dweight, dbias if bias is not None else None, None,
            dinitial if initial_states is not None else None, None, None)


torch.library.register_autograd('sfmamba_scan::selective_scan', _scan_gradient,
                                setup_context=_save)
torch.library.register_autograd('sfmamba_scan::causal_conv1d', _conv_gradient,
                                setup_context=_save)


def _refuse(ctx, *gradients):
    raise NotImplementedError('sfmamba_scan: gradients of gradients are not supported')


torch.library.register_autograd('sfmamba_scan::selective_scan_backward', _refuse)
torch.library.register_autograd('sfmamba_scan::causal_conv1d_backward', _refuse)
