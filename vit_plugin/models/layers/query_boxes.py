"""Boxes of the positions of maps, from which the queries of a detector begin."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .block_cfg import Grid


def position_boxes(
    x: Sequence[Tensor], sizes: tuple[Tensor, Grid] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The box and padding flag of each position, and the part of each map that is the image.

    Args:
        x: maps (B, C, h, w), whose boxes double their sides from one to the next.
        sizes: heights and widths of the images (B, 2), and those of the padded batch; None without
            padding.

    Returns:
        Boxes (B, N, 4), which are (x, y, w, h) as fractions of the image; padding (B, N);
        widths and heights (B, levels, 2) of the image over those of the map.
    """
    boxes, paddings, ratios = [], [], []
    for k, level in enumerate(x):
        rows, columns = level.shape[-2:]
        dtype = torch.promote_types(level.dtype, torch.float32)
        if sizes is None:
            end = level.new_tensor([[columns, rows]], dtype=dtype)
        else:  # the columns and rows with pixels of the image, at least in part
            (height, width), (outer_height, outer_width) = sizes[0].unbind(1), sizes[1]
            end = torch.stack(
                (-(-width * columns // outer_width), -(-height * rows // outer_height)), 1
            ).to(dtype)
        end = end[:, None]  # (B, 1, 2)
        at = torch.stack(
            torch.meshgrid(
                torch.arange(columns, device=level.device),
                torch.arange(rows, device=level.device),
                indexing='xy',
            ),
            dim=-1,
        ).flatten(0, 1)  # (N, 2)
        centres = (at + 0.5) / end
        boxes.append(torch.cat((centres, torch.full_like(centres, 0.05 * 2**k)), dim=-1))
        paddings.append((at >= end).any(-1))
        ratios.append(torch.stack((end[..., 0] / columns, end[..., 1] / rows), dim=-1))
    return torch.cat(boxes, 1), torch.cat(paddings, 1), torch.cat(ratios, 1)


def moved(boxes: Tensor, deltas: Tensor) -> Tensor:
    """Boxes (..., 4), moved by fractions of their sides, which are scaled by exponentials."""
    return torch.cat(
        (boxes[..., :2] + deltas[..., :2] * boxes[..., 2:], boxes[..., 2:] * deltas[..., 2:].exp()),
        -1,
    )
