"""Boxes as distributions over the positions of their edges (D-FINE, arXiv:2410.13842, Section 4.1).

D-FINE predicts a probability for each of several bins per edge, instead of a number. Bin n moves
the edge outward by ``W(n)`` times the width or height of the box, divided by the scale. The
distance of the edge is the mean of ``W(n)`` over the distribution.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torchvision.ops import box_convert


def bin_values(bins: int, up: Tensor, scale: Tensor) -> Tensor:
    """``W(n)`` for n = 0 ... bins: dense around 0, and steep outward (Equation 2).

    Args:
        bins: an even number, the number of bins minus one.
        up: ``W`` of the last bin but one, as a fraction of the scale (1,). The last has twice that.
        scale: the curvature of ``W``, ``reg_scale`` in D-FINE's code (1,).

    Returns:
        (bins + 1,).
    """
    bound = (up * scale).abs()
    step = (bound + 1) ** (2 / (bins - 2))
    powers = torch.arange(1, bins // 2, device=up.device)
    positive = step**powers - 1
    zero = torch.zeros_like(bound)
    return torch.cat((-2 * bound, -positive.flip(0), zero, positive, 2 * bound))


def expected_distances(edge_logits: Tensor, values: Tensor) -> Tensor:
    """Logits (..., 4 * (bins + 1)), ``W`` (bins + 1,) -> mean distances of the edges (..., 4)."""
    return edge_logits.unflatten(-1, (4, -1)).softmax(-1) @ values


def decode_boxes(boxes: Tensor, distances: Tensor, scale: Tensor) -> Tensor:
    """Boxes (..., 4) as (x, y, w, h), with left, top, right and bottom edges moved outward.

    ``distances`` (..., 4) are in units of the width or height divided by ``scale``.
    """
    scale = scale.abs()
    # From the center: half the width or height, and the distance that the edge moves.
    reach = (0.5 * scale + distances) * (boxes[..., 2:] / scale).tile(2)
    corners = torch.cat((boxes[..., :2] - reach[..., :2], boxes[..., :2] + reach[..., 2:]), dim=-1)
    return box_convert(corners, 'xyxy', 'cxcywh')


class Bins(NamedTuple):
    """The target of each edge (N * 4): two neighboring bins, whose weights add up to 1.

    Attributes:
        lower: index of the lower bin; the upper one is the next.
        lower_weight, upper_weight: the weights of both bins.
    """

    lower: Tensor
    lower_weight: Tensor
    upper_weight: Tensor


@torch.no_grad()
def encode_boxes(boxes: Tensor, targets: Tensor, values: Tensor, scale: Tensor) -> Bins:
    """The bins that move the edges of boxes to those of their targets.

    Args:
        boxes, targets: boxes (N, 4) as (x, y, w, h), fractions of the image.
        values, scale: see :func:`bin_values`, and its result.
    """
    scale = scale.abs()
    corners = box_convert(targets, 'cxcywh', 'xyxy')
    unit = boxes[:, 2:] / scale + 1e-16  # not 0 for an empty box
    from_center = torch.cat(
        ((boxes[:, :2] - corners[:, :2]) / unit, (corners[:, 2:] - boxes[:, :2]) / unit), dim=1
    )
    distances = (from_center - 0.5 * scale).flatten()
    last_lower = len(values) - 2  # the last bin with an upper neighbor
    below = torch.searchsorted(values, distances, right=True) - 1  # the bin at or below a distance
    lower = below.clamp(0, last_lower)
    to_lower, to_upper = (distances - values[lower]).abs(), (values[lower + 1] - distances).abs()
    upper_weight = to_lower / (to_lower + to_upper)
    # Distances beyond the first or last bin get that bin alone.
    upper_weight = torch.where(below < 0, 0.0, torch.where(below > last_lower, 1.0, upper_weight))
    return Bins(lower, 1 - upper_weight, upper_weight)
