"""The projection to queries, keys and values, in the forms that differ from one linear layer."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.arguments.encoder_options import QkvBias


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
    """Several heads of queries share a head of keys and values (arXiv:2305.13245).

    Shape: (B, N, C) -> (B, N, 3 * C). The shared keys and values are repeated, group by group.
    """

    def __init__(self, embed_dims: int, num_heads: int, num_kv_heads: int, bias: bool) -> None:
        self.head_dims = embed_dims // num_heads
        self.group_size = num_heads // num_kv_heads
        super().__init__(embed_dims, embed_dims + 2 * num_kv_heads * self.head_dims, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        q, kv = (
            super()
            .forward(x)
            .split((self.in_features, self.out_features - self.in_features), dim=-1)
        )
        # (B, N, 2 kv, group, d).
        kv = kv.unflatten(-1, (-1, 1, self.head_dims)).expand(-1, -1, -1, self.group_size, -1)
        return torch.cat((q, kv.flatten(2)), dim=-1)


def build_qkv(
    embed_dims: int, num_heads: int, bias: QkvBias, num_kv_heads: int | None = None
) -> nn.Linear:
    """The projection with ``num_kv_heads`` key and value heads, by default as many as query heads.

    Its ``weight`` has the rows of the queries, then those of the keys, then those of the values.
    """
    if num_kv_heads not in (None, num_heads):
        return GroupedProjection(embed_dims, num_heads, num_kv_heads, bool(bias))
    return (
        QvBiasProjection(embed_dims)
        if bias == 'qv'
        else nn.Linear(embed_dims, 3 * embed_dims, bias=bias)
    )
