"""Depth losses: for depth in meters, and for disparities with unknown scale and shift."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import Count, Fraction, NotNegative
from vit_plugin.registry import MODELS

EPSILON = 1e-6  # lower bound of arguments of logarithms and roots, and of spreads
# MMEngine trains only what has `loss` in its name.
LossName = Annotated[str, Field(pattern='^loss_')]


class DepthLoss(nn.Module):
    """The mean of :meth:`image_loss` over a batch, times ``loss_weight``.

    Args:
        loss_weight: factor of the loss.
        loss_name: name of the loss in the logs. It must begin with ``loss_``.
    """

    def __init__(self, loss_weight: NotNegative, loss_name: str) -> None:
        super().__init__()
        self.loss_weight, self.loss_name = loss_weight, loss_name

    def image_loss(self, pred: Tensor, target: Tensor, known: Tensor) -> Tensor:
        """The loss of an image with known pixels, from its maps (H, W)."""
        raise NotImplementedError

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        """Predictions and truth (B, 1, H, W), 0 where it is not known, -> the loss in float32.

        An image without a known pixel has the loss 0.
        """
        total = 0 * pred.float().sum()  # keeps a gradient even without known pixels
        for pred_map, target_map in zip(pred[:, 0].float(), target[:, 0].float(), strict=True):
            known = target_map > 0
            if known.any():
                total = total + self.image_loss(pred_map, target_map, known)
        return self.loss_weight * total / len(pred)


@MODELS.register_module()
class SiLogLoss(DepthLoss):
    r"""The scale-invariant logarithmic error (arXiv:1406.2283, Equation 3), and its root.

    It is ``sqrt(mean(d^2) - variance_focus * mean(d)^2)`` with d = log(prediction) - log(truth)
    over known pixels. The gradient of MMSegmentation's ``SiLogLoss`` is NaN if an image has none,
    such as a crop of the sky, and its factor is always 0.5.

    Args:
        variance_focus: 1 ignores the scale, 0 is the plain error of logarithms. BTS
            (arXiv:1907.10326), AdaBins and Depth Anything use 0.85.
        loss_weight, loss_name: see :class:`DepthLoss`.
    """

    def __init__(
        self,
        variance_focus: Fraction = 0.85,
        loss_weight: NotNegative = 1.0,
        loss_name: LossName = 'loss_silog',
    ) -> None:
        super().__init__(loss_weight, loss_name)
        self.variance_focus = variance_focus

    def image_loss(self, pred: Tensor, target: Tensor, known: Tensor) -> Tensor:
        d = pred[known].clamp(min=EPSILON).log() - target[known].log()
        error = d.square().mean() - self.variance_focus * d.mean().square()
        return error.clamp(min=EPSILON).sqrt()


@MODELS.register_module()
class ScaleShiftInvariantLoss(DepthLoss):
    r"""MiDaS' loss of disparities with unknown scale and shift (arXiv:1907.01341, Section 5).

    Prediction and truth are each normalized by median and mean absolute deviation (Equation 5). The
    loss is the trimmed mean of their absolute difference (Equation 7, 'ssitrim'), plus
    ``gradient_weight`` times the gradient of this difference at several scales (Equation 11).

    Args:
        trim: fraction of the known pixels, with the largest differences, to ignore.
        gradient_weight: factor of the gradient term.
        scales: number of scales, each with every second pixel of the previous one.
        loss_weight, loss_name: see :class:`DepthLoss`.
    """

    def __init__(
        self,
        trim: Fraction = 0.2,
        gradient_weight: NotNegative = 0.5,
        scales: Count = 4,
        loss_weight: NotNegative = 1.0,
        loss_name: LossName = 'loss_ssi',
    ) -> None:
        super().__init__(loss_weight, loss_name)
        self.trim, self.gradient_weight, self.scales = trim, gradient_weight, scales

    def image_loss(self, pred: Tensor, target: Tensor, known: Tensor) -> Tensor:
        difference = normalize_values(pred, known) - normalize_values(target, known)
        number = known.sum()
        kept = max(int((1 - self.trim) * number), 1)
        loss = difference[known].abs().sort().values[:kept].sum() / (2 * number)  # Equation 7
        for scale in range(self.scales):
            coarse, is_known = (x[:: 2**scale, :: 2**scale] for x in (difference, known))
            gradients = [  # between neighbors that are both known
                coarse.diff(dim=axis).abs()
                * (is_known & is_known.roll(-1, axis)).narrow(axis, 0, is_known.shape[axis] - 1)
                for axis in (0, 1)
            ]
            total = sum(gradient.sum() for gradient in gradients)
            loss = loss + self.gradient_weight * total / is_known.sum().clamp(min=1)
        return loss


def normalize_values(values: Tensor, known: Tensor) -> Tensor:
    """Normalize values (H, W) by median and mean absolute deviation of known pixels."""
    shifted = values - values[known].median()
    return shifted / shifted[known].abs().mean().clamp(min=EPSILON)


def fit_scale_and_shift(pred: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The scale and shift that fit values (N,) to a target (N,), by least squares.

    arXiv:1907.01341, Equation 4.
    """
    columns = torch.stack([pred, torch.ones_like(pred)], dim=1)
    # The solver for GPUs assumes independent columns, and a constant prediction would give NaN.
    solution = torch.linalg.lstsq(columns.cpu(), target[:, None].cpu()).solution
    scale, shift = solution[:, 0].to(pred.device)
    return scale, shift
