"""A layer of LW-DETR's decoder, and its options."""

from typing import Any

from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import Depth, PositiveInt, Rate

from .deformable_attention import BoxAttention


class DecoderCfg(TypedDict, total=False):
    """The decoder of an :class:`~vit_plugin.models.heads.lw_detr_head.LWDETRHead`.

    Attributes:
        num_layers: number of layers. Default: 3.
        num_heads: heads of the attention between queries. Default: 8.
        num_cross_heads: heads of the attention to the maps. Default: 16.
        num_points: number of points of each of the latter in each map. Default: 4.
        feedforward_channels: width of the MLPs. Default: 2048.
        drop_rate: dropout after attention and within MLPs. Default: 0.
    """

    num_layers: Depth
    num_heads: PositiveInt
    num_cross_heads: PositiveInt
    num_points: PositiveInt
    feedforward_channels: PositiveInt
    drop_rate: Rate


class DecoderLayer(nn.Module):
    """A layer of the decoder. Queries of one group attend to that group only.

    Args:
        dims: channels of the queries and of the maps.
        num_levels: number of maps.
        num_heads, num_cross_heads, num_points, feedforward_channels, drop_rate: see
            :class:`DecoderCfg`.
    """

    def __init__(
        self,
        dims: int,
        num_levels: int,
        num_heads: int = 8,
        num_cross_heads: int = 16,
        num_points: int = 4,
        feedforward_channels: int = 2048,
        drop_rate: float = 0.0,
    ) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(dims, num_heads, batch_first=True)
        self.cross_attn = BoxAttention(dims, num_cross_heads, num_levels, num_points)
        self.mlp = nn.Sequential(
            nn.Linear(dims, feedforward_channels),
            nn.ReLU(),
            nn.Dropout(drop_rate),
            nn.Linear(feedforward_channels, dims),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dims) for _ in range(3))
        self.drop = nn.Dropout(drop_rate)

    def forward(self, query: Tensor, position: Tensor, num_groups: int, *maps: Any) -> Tensor:
        """Queries and positions (B, groups * Q, C) -> queries. ``maps`` go to cross-attention."""
        x, placed = (
            part.unflatten(1, (num_groups, -1)).flatten(0, 1) for part in (query, query + position)
        )
        x = (
            self.self_attn(placed, placed, x, need_weights=False)[0]
            .unflatten(0, (-1, num_groups))
            .flatten(1, 2)
        )
        x = self.norms[0](query + self.drop(x))
        x = self.norms[1](x + self.drop(self.cross_attn(x + position, *maps)))
        return self.norms[2](x + self.drop(self.mlp(x)))
