"""Stochastic depth (drop path)."""

import torch
from torch import Tensor, nn


class DropPath(nn.Module):
    """Drop a residual branch for some samples of a batch (stochastic depth, arXiv:1603.09382).

    It is equivalent to timm's, but the probability of keeping a branch is a tensor.
    ``torch.compile`` would specialize its graph on a Python float, and compile every block of an
    encoder again, since each has a different rate.

    Args:
        drop_prob: probability of dropping the branch. Kept branches are divided by
            ``1 - drop_prob``.

    Shape: (B, ...) -> the same.
    """

    keep_prob: Tensor

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob
        self.register_buffer('keep_prob', torch.tensor(1 - drop_prob), persistent=False)

    def reset_parameters(self) -> None:
        """Set the rate again, since ``to_empty`` leaves a buffer without a value."""
        self.keep_prob.fill_(1 - self.drop_prob)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = torch.rand(x.shape[:1] + (1,) * (x.ndim - 1), device=x.device) < self.keep_prob
        return x * (kept / self.keep_prob).to(x.dtype)

    def extra_repr(self) -> str:
        return f'drop_prob={self.drop_prob:.3f}'


def build_drop_path(drop_prob: float) -> nn.Module:
    """:class:`DropPath`, or the identity for the rate 0."""
    return DropPath(drop_prob) if drop_prob else nn.Identity()
