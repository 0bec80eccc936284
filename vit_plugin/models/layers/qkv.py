"""Projections to queries, keys and values that differ from a single linear layer."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .block_cfg import BlockCfg


class QvBiasProjection(nn.Linear):
    """Queries and values have a bias, keys have none, as in BEiT and EVA (arXiv:2106.08254).

    The same bias on every key would not change attention. With rotary positions it would.

    Shape: (B, N, C) -> (B, N, 3 * C), the queries first, then the keys and the values.
    """

    def __init__(self, embed_dims: int) -> None:
        super().__init__(embed_dims, 3 * embed_dims, bias=False)
        self.q_bias, self.v_bias = (nn.Parameter(torch.zeros(embed_dims)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(
            x, self.weight, torch.cat((self.q_bias, torch.zeros_like(self.q_bias), self.v_bias))
        )


class GroupedProjection(nn.Linear):
    """Grouped-query attention: groups of queries share keys and values (arXiv:2305.13245).

    Shape: (B, N, C) -> (B, N, 3 * C). The shared keys and values are repeated, group by group.
    """

    def __init__(self, embed_dims: int, num_heads: int, num_kv_heads: int, bias: bool) -> None:
        self.head_dims = embed_dims // num_heads
        self.group_size = num_heads // num_kv_heads
        super().__init__(embed_dims, embed_dims + 2 * num_kv_heads * self.head_dims, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        sizes = self.in_features, self.out_features - self.in_features
        q, kv = super().forward(x).split(sizes, dim=-1)
        # (B, N, 2 * num_kv_heads, group_size, head_dims).
        kv = kv.unflatten(-1, (-1, 1, self.head_dims)).expand(-1, -1, -1, self.group_size, -1)
        return torch.cat((q, kv.flatten(2)), dim=-1)


def build_qkv(cfg: BlockCfg) -> nn.Linear:
    """The projection of a block's attention.

    The rows of its ``weight`` are those of the queries, then the keys, then the values.
    """
    width, num_kv_heads = cfg.embed_dims, cfg.num_kv_heads
    if num_kv_heads not in (None, cfg.num_heads):
        return GroupedProjection(width, cfg.num_heads, num_kv_heads, bool(cfg.qkv_bias))
    if cfg.qkv_bias == 'qv':
        return QvBiasProjection(width)
    return nn.Linear(width, 3 * width, bias=cfg.qkv_bias)
