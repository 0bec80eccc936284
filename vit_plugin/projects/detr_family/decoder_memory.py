"""The memory of a DETR decoder: flattened maps, with an anchor box at each position.

The heads of LW-DETR, RT-DETR, D-FINE and their relatives build it from the maps of the neck. Each
position proposes a box relative to its anchor, see :func:`apply_deltas`, and the queries attend to
the maps.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.deformable_attention import MapLevel

# The coordinates of an anchor (x, y, w, h) are fractions of the image. An anchor is invalid if one
# of them is this close to 0 or 1, as in Deformable DETR.
ANCHOR_MARGIN = 0.01
FINEST_ANCHOR = 0.05  # sides of the anchors of the first map, as fractions of the image
# In pixels: height and width of each image (B, 2), and of the batch that they are padded to.
ImageSizes = tuple[Tensor, tuple[int, int]]


class DecoderMemory(NamedTuple):
    """All maps, flattened in raster order and concatenated: N positions.

    Attributes:
        features: the features (B, N, C).
        anchors: a square box at each position (B, N, 4): its center and size (x, y, w, h) as
            fractions of the image. The size doubles from one map to the next.
        padding: True for positions outside of the image (B, N).
        ratios: DETR's valid ratios (B, levels, 2): the fractions of each map's width and height
            that the image covers. The rest is padding.
        grids: rows and columns of each map.
    """

    features: Tensor
    anchors: Tensor
    padding: Tensor
    ratios: Tensor
    grids: list[Grid]

    @classmethod
    def from_maps(cls, maps: Sequence[Tensor], sizes: ImageSizes | None) -> 'DecoderMemory':
        """Flatten maps.

        Args:
            maps: maps (B, C, h, w), finest first.
            sizes: sizes of the images and of the padded batch. None: nothing is padded.
        """
        levels = [_flatten(level, FINEST_ANCHOR * 2**k, sizes) for k, level in enumerate(maps)]
        grids = [(level.shape[-2], level.shape[-1]) for level in maps]
        return cls._make([*(torch.cat(parts, dim=1) for parts in zip(*levels, strict=True)), grids])


def _flatten(level: Tensor, side: float, sizes: ImageSizes | None) -> tuple[Tensor, ...]:
    """The fields of a :class:`DecoderMemory` for one map (B, C, h, w), all but ``grids``.

    Args:
        level: the map.
        side: side of its anchors, as a fraction of the image.
        sizes: see :meth:`DecoderMemory.from_maps`.
    """
    rows, columns = level.shape[-2:]
    dtype = torch.promote_types(level.dtype, torch.float32)
    # `covered` has the columns and rows that the image covers, at least in part.
    if sizes is None:
        covered = level.new_tensor([[columns, rows]], dtype=dtype).expand(level.shape[0], -1)
    else:
        (height, width), (outer_height, outer_width) = sizes[0].unbind(1), sizes[1]
        rounded_up = -(-width * columns // outer_width), -(-height * rows // outer_height)
        covered = torch.stack(rounded_up, 1).to(dtype)
    covered = covered[:, None]  # (B, 1, 2)
    points = MapLevel((rows, columns), 1).centers(like=covered)  # (h*w, 2)
    centers = points / covered  # (B, h*w, 2)
    anchors = torch.cat((centers, torch.full_like(centers, side)), dim=-1)
    # A position is padding if its center lies outside of what the image covers.
    padding = (points > covered).any(-1)
    ratio = torch.stack((covered[..., 0] / columns, covered[..., 1] / rows), dim=-1)
    return level.flatten(2).mT, anchors, padding, ratio


def apply_deltas(boxes: Tensor, deltas: Tensor) -> Tensor:
    """Refine boxes (..., 4) of (x, y, w, h) by predicted deltas (..., 4).

    The first two deltas move the center, in units of the box's sides. The exponentials of the other
    two scale the sides.
    """
    centers, sides = boxes.split(2, dim=-1)
    return torch.cat((centers + deltas[..., :2] * sides, sides * deltas[..., 2:].exp()), dim=-1)
