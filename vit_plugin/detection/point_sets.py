"""Points and quadrilaterals, for detectors that describe an object by points."""

import math

import torch
from torch import Tensor

from vit_plugin.detection.polygons import corners_of

CORNERS = 8  # of two boxes; in the list of vertices, the places where edges meet come after them
MOST_VERTICES = 9  # of the part that two boxes have in common, with the first once more


def points_in_polygons_forward(points: Tensor, polygons: Tensor, output: Tensor) -> None:
    """Fill ``output`` (N, M) with 1 where a point (N, 2) lies in a polygon (M, 8), and with 0 elsewhere and on edges.

    A ray from a point within a polygon to the right meets its edges an odd number of times.
    """
    starts = corners_of(polygons)  # (M, 4, 2)
    ends = starts.roll(-1, dims=-2)
    (x, y), (x1, y1), (x2, y2) = (part.unbind(-1) for part in (points.double()[:, None, None], starts, ends))
    passes = (y1 > y) != (y2 > y)
    at = x1 + (y - y1) * (x2 - x1) / torch.where(y1 == y2, 1, y2 - y1)  # no ray passes a level edge
    level = (y == y1) & (y == y2) & (torch.minimum(x1, x2) <= x) & (x <= torch.maximum(x1, x2))
    on_edge = (level | (passes & (x == at)) | ((x == x1) & (y == y1))).any(-1)
    output.copy_((passes & (x < at)).sum(-1) % 2 * ~on_edge)


def min_area_polygons(point_sets: Tensor, polygons: Tensor) -> None:
    """Fill ``polygons`` (N, 8) with the smallest rectangle around each set of points (N, 2 x points).

    A side of the smallest rectangle lies on two of the points (Freeman and Shapira, 1975), so the sides between all
    pairs of points are tried. With u and v for the directions of the sides, where u points right and down in an image,
    the corners are (most u, least v), (least u, least v), (least u, most v) and (most u, most v).
    """
    points = point_sets.double().unflatten(1, (-1, 2))  # (N, P, 2)
    first, second = torch.triu_indices(points.shape[1], points.shape[1], 1, device=points.device)
    x, y = (points[:, second] - points[:, first]).unbind(-1)  # (N, pairs)
    angle = torch.atan2(y, x).remainder(math.pi / 2)  # of no direction, where two points are one, it is 0
    u = torch.stack([angle.cos(), angle.sin()], dim=-1)
    axes = torch.stack([u, torch.stack([-u[..., 1], u[..., 0]], dim=-1)], dim=-2)  # (N, pairs, 2, 2)
    places = torch.einsum('npc,nkac->nkap', points, axes)  # along both axes
    low, high = places.amin(-1), places.amax(-1)
    best = (high - low).prod(-1).argmin(dim=1)
    rows = torch.arange(len(points), device=points.device)
    axes, (u1, v1), (u2, v2) = axes[rows, best], low[rows, best].unbind(-1), high[rows, best].unbind(-1)
    corners = torch.stack([u2, v1, u1, v1, u1, v2, u2, v2], dim=-1).unflatten(1, (4, 2))
    polygons.copy_((corners @ axes).flatten(1))


def diff_iou_rotated_sort_vertices_forward(vertices: Tensor, mask: Tensor, num_valid: Tensor) -> Tensor:
    """The order of vertices around their middle, for mmcv's differentiable IoU of rotated boxes.

    Args:
        vertices: (B, N, 24, 2), relative to their middle: the corners of two boxes, then where their edges meet.
        mask: which of them are vertices of the part in common (B, N, 24). The others are at the origin.
        num_valid: how many these are (B, N), at most 8.

    Returns:
        Indices (B, N, 9): the vertices in their order, the first once more, then places at the origin. If there are
        less than 3 vertices, all are places at the origin.
    """
    x, y = vertices.unbind(-1)
    order = torch.atan2(y, x).masked_fill(~mask, math.inf).argsort(dim=-1)[..., :MOST_VERTICES]
    origin = CORNERS + (~mask[..., CORNERS:]).to(torch.uint8).argmax(dim=-1, keepdim=True)
    count, place = num_valid[..., None], torch.arange(MOST_VERTICES, device=vertices.device)
    index = torch.where(place < count, order, torch.where(place == count, order[..., :1], origin))
    return torch.where(count < 3, origin, index).int()
