"""Sigmoid focal loss per class (arXiv:1708.02002, Eq. 5): -alpha_t (1 - p_t)^gamma log p_t.

Names and arguments are those of mmcv's compiled ops, see :mod:`.ext`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def sigmoid_focal_loss_forward(
    input: Tensor, target: Tensor, weight: Tensor, output: Tensor, gamma: float, alpha: float
) -> None:
    """Fill ``output`` (N, C) with the loss.

    Args:
        input: logits (N, C).
        target: class of each box (N,). C means background.
        weight: weight of each class (C,), or empty. It applies to all terms of a box of this class.
            Background has the weight 1.
        output: the buffer to fill.
        gamma, alpha: see the formula above.
    """
    logit, _, scale = _terms(input, target, weight, alpha)
    output.copy_(-scale * torch.sigmoid(-logit) ** gamma * F.logsigmoid(logit))


def sigmoid_focal_loss_backward(
    input: Tensor, target: Tensor, weight: Tensor, grad_input: Tensor, gamma: float, alpha: float
) -> None:
    """Fill ``grad_input`` (N, C) with the derivative of each term with respect to its logit."""
    logit, sign, scale = _terms(input, target, weight, alpha)
    wrong = torch.sigmoid(-logit)  # 1 - p_t
    inner = wrong - gamma * torch.sigmoid(logit) * F.logsigmoid(logit)
    grad_input.copy_(-scale * sign * wrong**gamma * inner)


def _terms(
    input: Tensor, target: Tensor, weight: Tensor, alpha: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The logit of p_t, its sign relative to the input, and alpha_t times weight, each (N, C)."""
    hit = (target[:, None] == torch.arange(input.shape[1], device=input.device)).to(input.dtype)
    sign, scale = 2 * hit - 1, alpha * hit + (1 - alpha) * (1 - hit)
    if weight.numel():
        scale = scale * F.pad(weight, (0, 1), value=1)[target][:, None]
    return input * sign, sign, scale
