"""Boxes as distributions of side distances (D-FINE, arXiv:2410.13842, Section 4.1).

Bin n moves a side by ``W(n)`` times the width or height of the box, divided by the scale.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torchvision.ops import box_convert


def bin_values(bins: int, up: Tensor, scale: Tensor) -> Tensor:
    """``W(n)`` for n = 0 ... bins: dense around 0, and steep outward (Equation 2).

    Args:
        bins: an even number.
        up: ``W`` of the last bin but one, as a fraction of the scale (1,). The last has twice that.
        scale: curvature (1,).

    Returns:
        (bins + 1,).
    """
    bound = (up * scale).abs()
    step = (bound + 1) ** (2 / (bins - 2))
    powers = torch.arange(1, bins // 2, device=up.device)
    right = step**powers - 1
    zero = torch.zeros_like(bound)
    return torch.cat((-2 * bound, -right.flip(0), zero, right, 2 * bound))


def expected_distances(logits: Tensor, values: Tensor) -> Tensor:
    """Logits (..., 4 * (bins + 1)) -> expected distances of the four sides (..., 4)."""
    return logits.unflatten(-1, (4, -1)).softmax(-1) @ values


def decode_boxes(boxes: Tensor, moves: Tensor, scale: Tensor) -> Tensor:
    """Boxes (..., 4) as (x, y, w, h), with left, top, right and bottom sides moved outward.

    ``moves`` (..., 4) are in units of the width or height divided by ``scale``.
    """
    scale = scale.abs()
    reach = (0.5 * scale + moves) * (boxes[..., 2:] / scale).tile(2)
    corners = torch.cat((boxes[..., :2] - reach[..., :2], boxes[..., :2] + reach[..., 2:]), dim=-1)
    return box_convert(corners, 'xyxy', 'cxcywh')


class Bins(NamedTuple):
    """Two neighboring bins for each side, and their shares (N * 4).

    Attributes:
        left: the number of the lower bin.
        left_share, right_share: the weights of both bins.
    """

    left: Tensor
    left_share: Tensor
    right_share: Tensor


@torch.no_grad()
def encode_boxes(boxes: Tensor, target: Tensor, values: Tensor, scale: Tensor) -> Bins:
    """The bins that move the sides of boxes (N, 4) to those of other boxes (N, 4)."""
    scale = scale.abs()
    corners = box_convert(target, 'cxcywh', 'xyxy')
    unit = boxes[:, 2:] / scale + 1e-16
    from_center = torch.cat(
        ((boxes[:, :2] - corners[:, :2]) / unit, (corners[:, 2:] - boxes[:, :2]) / unit), dim=1
    )
    moves = (from_center - 0.5 * scale).flatten()
    last_left = len(values) - 2  # the last bin that has a right neighbor
    below = torch.searchsorted(values, moves, right=True) - 1  # the bin at or below each move
    left = below.clamp(0, last_left)
    to_left, to_right = (moves - values[left]).abs(), (values[left + 1] - moves).abs()
    right_share = to_left / (to_left + to_right)
    right_share = torch.where(below < 0, 0.0, torch.where(below > last_left, 1.0, right_share))
    return Bins(left, 1 - right_share, right_share)
