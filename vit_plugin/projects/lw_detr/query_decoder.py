"""A layer of LW-DETR's decoder, its attention to the maps, and the options of the decoder."""

from collections.abc import Sequence

from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import Depth, PositiveInt, Rate, Section
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.deformable_attention import PointAttention
from vit_plugin.projects.detr_family.decoder_memory import DecoderMemory


class DecoderCfg(TypedDict, total=False):
    """The decoder of an :class:`~vit_plugin.projects.lw_detr.lw_detr_head.LWDETRHead`.

    Attributes:
        num_layers: number of layers. Default: 3.
        num_heads: heads of the attention between queries. Default: 8.
        num_cross_heads: heads of the deformable attention to the maps. Default: 16.
        num_points: points that a head of this attention samples in each map. Default: 4.
        feedforward_channels: width of the MLPs. Default: 2048.
        drop_rate: dropout after attention and within MLPs. Default: 0.
    """

    num_layers: Depth
    num_heads: PositiveInt
    num_cross_heads: PositiveInt
    num_points: PositiveInt
    feedforward_channels: PositiveInt
    drop_rate: Rate


class QueryTestCfg(TypedDict, total=False):
    """The ``test_cfg`` of an :class:`~vit_plugin.projects.lw_detr.lw_detr_head.LWDETRHead`.

    Fewer queries or layers than in training make predictions faster. No training is needed for it.

    Attributes:
        max_per_img: maximum number of boxes per image. Default: 300.
        num_queries: number of queries. Default: that of the training.
        num_layers: number of decoder layers. Default: all.
    """

    max_per_img: PositiveInt
    num_queries: int
    num_layers: int


def complete_test_cfg(
    test_cfg: QueryTestCfg, num_queries: int, num_layers: int, num_classes: int
) -> Section:
    """Add the defaults to a ``test_cfg``, and limit its boxes to those that the queries can give.

    Raises:
        ConfigError: for more queries or layers than there are.
    """
    maxima = {'num_queries': num_queries, 'num_layers': num_layers}
    cfg: Section = {'max_per_img': 300, **maxima, **test_cfg}
    for name, maximum in maxima.items():
        if not 1 <= cfg[name] <= maximum:
            limit = 'decoder.num_layers' if name == 'num_layers' else name
            raise ConfigError(
                f'LWDETRHead: test_cfg.{name}={cfg[name]} must be from 1 to {limit}={maximum}.'
            )
    cfg['max_per_img'] = min(cfg['max_per_img'], cfg['num_queries'] * num_classes)
    return cfg


class BoxAttention(PointAttention):
    """Attention around the box of each query, with offsets relative to its sides.

    See arXiv:2010.04159, Appendix A.4.
    """

    def forward(
        self, query: Tensor, boxes: Tensor, maps: Tensor, sizes: Sequence[Grid], padding: Tensor
    ) -> Tensor:
        """Queries (B, queries, C) -> (B, queries, C).

        Args:
            query: the queries.
            boxes: the boxes (B, queries, maps, 4), which are (x, y, w, h) as fractions of each map.
            maps, sizes, padding: see :meth:`attend`.
        """
        box = boxes[:, :, None, :, None]  # (B, queries, 1, maps, 1, 4)
        # The initial offsets reach `num_points`, which is half a side of the box from its center.
        locations = box[..., :2] + self.offsets(query) / (2 * self.num_points) * box[..., 2:]
        return self.attend(query, maps, locations, sizes, padding)


class DecoderLayer(nn.Module):
    """A layer of the decoder. Queries of one group attend to that group only.

    Args:
        dims: channels of the queries and of the maps.
        num_levels: number of maps.
        num_heads, num_cross_heads, num_points, feedforward_channels, drop_rate: see
            :class:`DecoderCfg`.

    Raises:
        ConfigError: if a number of heads does not divide ``dims``.
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
        for name, heads in (('num_heads', num_heads), ('num_cross_heads', num_cross_heads)):
            if dims % heads:
                raise ConfigError(
                    f'LWDETRHead: decoder.{name}={heads} must divide embed_dims={dims}.'
                )
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

    def forward(
        self,
        query: Tensor,
        position: Tensor,
        num_groups: int,
        boxes: Tensor,
        memory: DecoderMemory,
    ) -> Tensor:
        """Queries (B, groups * Q, C) -> queries (B, groups * Q, C).

        Args:
            query, position: the queries and their position embeddings (B, groups * Q, C).
            num_groups: number of groups.
            boxes: the boxes (B, groups * Q, levels, 4), see :class:`BoxAttention`.
            memory: the maps.
        """
        x = query.unflatten(1, (num_groups, -1)).flatten(0, 1)  # (B * groups, Q, C)
        positioned = (query + position).unflatten(1, (num_groups, -1)).flatten(0, 1)
        x = self.self_attn(positioned, positioned, x, need_weights=False)[0]
        x = x.unflatten(0, (-1, num_groups)).flatten(1, 2)
        x = self.norms[0](query + self.drop(x))
        maps = memory.features, memory.grids, memory.padding
        x = self.norms[1](x + self.drop(self.cross_attn(x + position, boxes, *maps)))
        return self.norms[2](x + self.drop(self.mlp(x)))
