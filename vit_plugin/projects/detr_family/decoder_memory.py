"""The maps that the queries of a detector attend to, and the boxes at their positions."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.deformable_attention import MapLevel

EDGE = 0.01  # fraction of the image: anchors closer to its border are not valid
FINEST_ANCHOR = 0.05  # sides of the anchors of the first map, as fractions of the image
Sizes = tuple[Tensor, Grid]  # height and width of each image (B, 2), and of the padded batch


class DecoderMemory(NamedTuple):
    """Maps in raster order, one after the other: N elements.

    Attributes:
        elements: their channels (B, N, C).
        anchors: a box at each element (B, N, 4), which is (x, y, w, h) as fractions of the image.
            The sides double from one map to the next.
        padding: the elements outside of the image (B, N).
        ratios: width and height (B, levels, 2) of the image over those of each map.
        grids: rows and columns of each map.
    """

    elements: Tensor
    anchors: Tensor
    padding: Tensor
    ratios: Tensor
    grids: list[Grid]

    @classmethod
    def of(cls, maps: Sequence[Tensor], sizes: Sizes | None) -> 'DecoderMemory':
        """Maps (B, C, h, w) in order of their strides; without ``sizes``, nothing is padded."""
        levels = [_flatten(level, FINEST_ANCHOR * 2**k, sizes) for k, level in enumerate(maps)]
        grids = [(level.shape[-2], level.shape[-1]) for level in maps]
        return cls._make([*(torch.cat(parts, dim=1) for parts in zip(*levels, strict=True)), grids])


def _flatten(level: Tensor, side: float, sizes: Sizes | None) -> tuple[Tensor, ...]:
    """Elements (B, h*w, C), anchors, padding and ratio of a map (B, C, h, w)."""
    rows, columns = level.shape[-2:]
    dtype = torch.promote_types(level.dtype, torch.float32)
    if sizes is None:
        end = level.new_tensor([[columns, rows]], dtype=dtype).expand(level.shape[0], -1)
    else:  # the columns and rows with pixels of the image, at least in part
        (height, width), (outer_height, outer_width) = sizes[0].unbind(1), sizes[1]
        ends = -(-width * columns // outer_width), -(-height * rows // outer_height)
        end = torch.stack(ends, 1).to(dtype)
    end = end[:, None]  # (B, 1, 2)
    points = MapLevel((rows, columns), 1).centers(end)  # (h*w, 2)
    centers = points / end  # (B, h*w, 2)
    anchors = torch.cat((centers, torch.full_like(centers, side)), dim=-1)
    ratio = torch.stack((end[..., 0] / columns, end[..., 1] / rows), dim=-1)
    return level.flatten(2).mT, anchors, (points > end).any(-1), ratio


def apply_deltas(boxes: Tensor, deltas: Tensor) -> Tensor:
    """Boxes (..., 4), moved by fractions of their sides, which are scaled by exponentials."""
    centers, sides = boxes.split(2, dim=-1)
    return torch.cat((centers + deltas[..., :2] * sides, sides * deltas[..., 2:].exp()), dim=-1)
