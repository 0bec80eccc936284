"""Attention as the difference of two attentions."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import Attention, Grid


class DifferentialAttention(Attention):
    """The attention of the first halves of queries and keys, minus that of the second halves (arXiv:2410.05258).

    The second attention has a learned factor, the same for all heads. It begins at 0.2 in the first block and tends to
    0.8 in later ones.

    Args:
        *args, **kwargs: see :class:`Attention`.
        depth: index of the block.
    """

    def __init__(self, *args: Any, depth: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial_factor = 0.8 - 0.6 * math.exp(-0.3 * depth)
        self.lambda_q1, self.lambda_k1, self.lambda_q2, self.lambda_k2 = (
            nn.Parameter(torch.empty(self.head_dims // 2)) for _ in range(4))
        self.sub_norm = nn.RMSNorm(self.head_dims, eps=1e-5)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for vector in self.parameters(recurse=False):  # none when the parent's constructor calls this
            nn.init.normal_(vector, std=0.1)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, grid: Grid, drop_rate: float) -> Tensor:
        """See :meth:`Attention.attend`."""
        first, second = (F.scaled_dot_product_attention(*half, v, dropout_p=drop_rate)
                         for half in zip(q.chunk(2, dim=-1), k.chunk(2, dim=-1), strict=True))
        factor = (self.lambda_q1 * self.lambda_k1).sum().exp() - (self.lambda_q2 * self.lambda_k2).sum().exp()
        return first - (factor + self.initial_factor).to(first.dtype) * second

    def output(self, x: Tensor) -> Tensor:
        """See :meth:`Attention.output`. Each head is normed first."""
        return super().output(self.sub_norm(x) * (1 - self.initial_factor))
