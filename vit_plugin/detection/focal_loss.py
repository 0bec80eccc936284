"""Focal loss (arXiv:1708.02002, Eq. 5): -alpha_t (1 - p_t)^gamma log p_t, of a sigmoid per class or of a softmax."""

import torch
import torch.nn.functional as F
from torch import Tensor


def sigmoid_focal_loss_forward(input: Tensor, target: Tensor, weight: Tensor, output: Tensor, gamma: float,
                               alpha: float) -> None:
    """Fill ``output`` (N, C) with the loss.

    Args:
        input: logits (N, C).
        target: class of each box (N,). C means background.
        weight: weight of each class (C,), or empty. It applies to all terms of a box of this class. Background has the
            weight 1.
        output: the buffer to fill.
        gamma, alpha: see the formula above.
    """
    logit, _, scale = _terms(input, target, weight, alpha)
    output.copy_(-scale * torch.sigmoid(-logit)**gamma * F.logsigmoid(logit))


def sigmoid_focal_loss_backward(input: Tensor, target: Tensor, weight: Tensor, grad_input: Tensor, gamma: float,
                                alpha: float) -> None:
    """Fill ``grad_input`` (N, C) with the derivative of each term with respect to its logit."""
    logit, sign, scale = _terms(input, target, weight, alpha)
    wrong = torch.sigmoid(-logit)  # 1 - p_t
    inner = wrong - gamma * torch.sigmoid(logit) * F.logsigmoid(logit)
    grad_input.copy_(-scale * sign * wrong**gamma * inner)


def _terms(input: Tensor, target: Tensor, weight: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
    """The logit of p_t, its sign relative to the input, and alpha_t times the weight, each (N, C)."""
    hit = (target[:, None] == torch.arange(input.shape[1], device=input.device)).to(input.dtype)
    sign, scale = 2 * hit - 1, alpha * hit + (1 - alpha) * (1 - hit)
    if weight.numel():
        scale = scale * F.pad(weight, (0, 1), value=1)[target][:, None]
    return input * sign, sign, scale


def softmax_focal_loss_forward(input: Tensor, target: Tensor, weight: Tensor, output: Tensor, gamma: float,
                               alpha: float) -> None:
    """Fill ``output`` (N,) with -alpha (1 - p)^gamma log p, for the probability p of each box's class.

    Args:
        input: the softmax (N, C).
        target: class of each box (N,). Of a negative one, the loss is 0.
        weight: weight of each class (C,), or empty.
        output: the buffer to fill.
        gamma, alpha: see the formula above. mmcv gives all classes the same alpha.
    """
    p, scale = _chosen(input, target, weight, alpha)
    output.copy_(-scale * (1 - p)**gamma * _log(p))


def softmax_focal_loss_backward(input: Tensor, target: Tensor, weight: Tensor, buff: Tensor, grad_input: Tensor,
                                gamma: float, alpha: float) -> None:
    """Fill ``grad_input`` (N, C) with the derivatives with respect to the logits before the softmax.

    ``buff`` (N,) gets p times the derivative with respect to p.
    """
    p, scale = _chosen(input, target, weight, alpha)
    # (1 - p)^(gamma - 1) log p, which for p = 1 is -(1 - p)^gamma
    inner = torch.where(p < 1, (1 - p)**(gamma - 1) * _log(p), -(1 - p)**gamma)
    buff.copy_(scale * (gamma * p * inner - (1 - p)**gamma))
    hit = (target[:, None] == torch.arange(input.shape[1], device=input.device)).to(input.dtype)
    grad_input.copy_(buff[:, None] * (hit - input))


def _chosen(input: Tensor, target: Tensor, weight: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """The probability of each box's class, and alpha times its weight, each (N,)."""
    known = target.clamp(min=0)
    scale = alpha * (target >= 0).to(input.dtype)
    return input.gather(1, known[:, None])[:, 0], scale * weight[known] if weight.numel() else scale


def _log(p: Tensor) -> Tensor:
    return p.clamp(min=torch.finfo(p.dtype).tiny).log()
