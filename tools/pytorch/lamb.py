"""LAMB (arXiv 1904.00962, algorithm 2): Adam, with each step scaled to the norm of its matrix."""

import torch


class Lamb(torch.optim.Optimizer):
    """Used like AdamW. If the norm of all gradients together is above 1, they are first scaled to
    norm 1. Steps are scaled to the norm of their parameter only for parameters with weight decay.
    This is timm's Lamb, with which MambaVision was trained.
    """

    def __init__(self, groups, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(groups, dict(lr=1e-3, betas=betas, eps=eps, weight_decay=0.0))

    @torch.no_grad()
    def step(self):
        gradients = [p.grad for group in self.param_groups for p in group['params']
                     if p.grad is not None]
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm().clamp(min=1)
        for group in self.param_groups:
            for parameter in group['params']:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad / norm, group)

    def _move(self, parameter, gradient, group):
        state, (beta1, beta2) = self.state[parameter], group['betas']
        if not state:
            state.update(step=0, mean=torch.zeros_like(parameter),
                         square=torch.zeros_like(parameter))
        state['step'] += 1
        mean = state['mean'].lerp_(gradient, 1 - beta1)
        square = state['square'].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        deviation = (square / (1 - beta2**state['step'])).sqrt_().add_(group['eps'])
        move = (mean / (1 - beta1**state['step'])).div_(deviation)
        if group['weight_decay']:
            move.add_(parameter, alpha=group['weight_decay'])
            size, length = parameter.norm(), move.norm()
            move *= torch.where((size > 0) & (length > 0), size / length, 1.0)
        parameter.sub_(move, alpha=group['lr'])
