"""Rotated boxes (x, y, w, h, angle in radians) and quadrilaterals (x1, y1, ..., x4, y4) as convex polygons.

A polygon is a tensor (..., corners, 2). Everything is computed in float64, since areas are differences of products of
coordinates, which may be thousands of pixels.
"""

import torch
from torch import Tensor

IOU = 0  # mmcv's number for the mode; the other one is the covered share of the first polygon
PAIRS_AT_ONCE = 1 << 16  # of polygons whose intersections are in memory together


def corners_of(boxes: Tensor) -> Tensor:
    """The corners (..., 4, 2) of rotated boxes (..., 5), or of quadrilaterals (..., 8).

    Positive angles turn the x-axis towards the y-axis, which is clockwise in an image.
    """
    boxes = boxes.double()
    if boxes.shape[-1] == 8:
        return boxes.unflatten(-1, (4, 2))
    center, (w, h, angle) = boxes[..., None, :2], boxes[..., 2:].unbind(-1)
    along = torch.stack([angle.cos(), angle.sin()], dim=-1) * w[..., None] / 2
    across = torch.stack([-angle.sin(), angle.cos()], dim=-1) * h[..., None] / 2
    return center + torch.stack([along + across, across - along, -along - across, along - across], dim=-2)


def signed_area(polygons: Tensor) -> Tensor:
    """Areas (...) by the shoelace formula, positive where the corners turn from the x-axis to the y-axis."""
    return cross(polygons, polygons.roll(-1, dims=-2)).sum(-1) / 2


def cross(a: Tensor, b: Tensor) -> Tensor:
    """The third component of the cross product of vectors (..., 2)."""
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def clip(polygons: Tensor, heights: Tensor) -> Tensor:
    """Cut convex polygons (..., K, 2) at a line. Returns what is left as polygons (..., K + 1, 2).

    Args:
        polygons: the polygons.
        heights: how far each corner lies within the line (..., K). Negative corners are cut off.

    Corners that are not needed repeat the first one. Of a polygon that is cut off whole, nothing but the origin is
    left.
    """
    following, next_heights = polygons.roll(-1, dims=-2), heights.roll(-1, dims=-1)
    crosses = (heights < 0) != (next_heights < 0)
    share = torch.where(crosses, heights / (heights - next_heights), 0)
    cut = polygons + share[..., None] * (following - polygons)
    points = torch.stack([polygons, cut], dim=-2).flatten(-3, -2)  # each corner, and the cut after it
    kept = torch.stack([heights >= 0, crosses], dim=-1).flatten(-2)
    order = kept.logical_not().to(torch.uint8).sort(dim=-1, stable=True).indices[..., :heights.shape[-1] + 1]
    kept, points = kept.gather(-1, order), points.gather(-2, order[..., None].expand(*order.shape, 2))
    return torch.where(kept[..., None], points, points[..., :1, :] * kept[..., :1, None])


def common_area(first: Tensor, second: Tensor) -> Tensor:
    """Areas (N,) that pairs of convex polygons (N, K, 2) have in common (Sutherland and Hodgman, 1974)."""
    origin = (first.mean(-2) + second.mean(-2))[..., None, :] / 2  # near the polygons, so that little cancels
    polygons, second = first - origin, second - origin
    turn = signed_area(second).sign()[..., None]
    for start, end in zip(second.unbind(-2), second.roll(-1, dims=-2).unbind(-2), strict=True):
        heights = turn * cross((end - start)[..., None, :], polygons - start[..., None, :])
        polygons = clip(polygons, heights)
    return signed_area(polygons).abs()


def overlaps(first: Tensor, second: Tensor, mode: int = IOU) -> Tensor:
    """IoU (N,) of pairs of convex polygons (N, K, 2). Polygons without an area overlap with nothing."""
    parts = [common_area(*pair) for pair in zip(first.split(PAIRS_AT_ONCE), second.split(PAIRS_AT_ONCE), strict=True)]
    common = torch.cat(parts) if parts else first.new_zeros(0)
    area1, area2 = signed_area(first).abs(), signed_area(second).abs()
    whole = area1 + area2 - common if mode == IOU else area1
    return torch.where((area1 > 0) & (area2 > 0), common / whole, 0)


def near_pairs(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of the pairs of polygons (N, K, 2) and (M, K, 2) whose surrounding circles meet, first by first."""
    (middle1, radius1), (middle2, radius2) = (
        (polygons.mean(-2), (polygons - polygons.mean(-2, keepdim=True)).norm(dim=-1).amax(-1))
        for polygons in (first, second))
    rows = max(16 * PAIRS_AT_ONCE // max(len(second), 1), 1)
    found = []
    for start in range(0, max(len(first), 1), rows):
        part = slice(start, start + rows)
        far = torch.cdist(middle1[part], middle2, compute_mode='donot_use_mm_for_euclid_dist')
        i, j = (far <= radius1[part, None] + radius2).nonzero(as_tuple=True)
        found.append((i + start, j))
    i, j = (torch.cat(parts) for parts in zip(*found, strict=True))
    return i, j


def box_iou(boxes1: Tensor, boxes2: Tensor, ious: Tensor, mode_flag: int, aligned: bool) -> None:
    """Fill ``ious`` for boxes (N, 5) and (M, 5), or quadrilaterals (N, 8) and (M, 8).

    ``ious`` is (N,) for aligned pairs, or else the N rows of M in one: (N * M,).
    """
    first, second = corners_of(boxes1), corners_of(boxes2)
    if aligned:
        ious.copy_(overlaps(first, second, mode_flag))
        return
    i, j = near_pairs(first, second)
    ious.zero_()
    ious[i * len(second) + j] = overlaps(first[i], second[j], mode_flag).to(ious.dtype)


def greedy(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """NMS of rotated boxes (N, 5) or quadrilaterals (N, 8). Returns the indices of the kept, by descending score."""
    order = scores.argsort(descending=True, stable=True)
    polygons = corners_of(boxes[order])
    i, j = near_pairs(polygons, polygons)
    later = i < j
    i, j = i[later], j[later]
    over = overlaps(polygons[i], polygons[j]) > iou_threshold
    rivals = j[over].cpu().split(i[over].cpu().bincount(minlength=len(boxes)).tolist())
    kept = torch.ones(len(boxes), dtype=torch.bool)
    for number, beaten in enumerate(rivals):
        if kept[number]:
            kept[beaten] = False
    return order[kept.to(order.device)]


def nms_rotated(boxes: Tensor, scores: Tensor, order: Tensor, sorted_boxes: Tensor, labels: Tensor,
                iou_threshold: float, multi_label: bool) -> Tensor:
    """NMS of rotated boxes (N, 5). See :func:`greedy`.

    As in mmcv's kernels, boxes of several labels suppress each other. ``batched_nms`` keeps classes apart.
    """
    return greedy(boxes[:, :5], scores, iou_threshold)


def nms_quadri(boxes: Tensor, scores: Tensor, order: Tensor, sorted_boxes: Tensor, iou_threshold: float,
               multi_label: bool) -> Tensor:
    """NMS of quadrilaterals (N, 8). See :func:`nms_rotated`."""
    return greedy(boxes[:, :8], scores, iou_threshold)
