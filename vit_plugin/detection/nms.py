"""IoU of boxes, and non-maximum suppression (NMS), as replacements of mmcv's ops (:mod:`.ext`)."""

import torch
import torchvision
from torch import Tensor

from vit_plugin.detection.op_gradients import promoted_to_float32

IOU_MODE = 0  # mmcv's number for IoU in bbox_overlaps
NAIVE_MODE, LINEAR_MODE = 0, 1  # mmcv's numbers for the methods of soft-NMS


def box_ious(boxes1: Tensor, boxes2: Tensor, offset: int, mode: int = IOU_MODE) -> Tensor:
    """IoU of boxes (..., 4) = (x1, y1, x2, y2), whose leading dimensions are broadcast.

    In the other mode, ``iof``, it is the intersection as a share of the area of ``boxes1``. Sides
    are x2 - x1 + offset long. Boxes without an area have an IoU of 0.
    """
    low = torch.maximum(boxes1[..., :2], boxes2[..., :2])
    high = torch.minimum(boxes1[..., 2:], boxes2[..., 2:])
    common = (high - low + offset).clamp(min=0).prod(-1)
    area1, area2 = (
        (boxes[..., 2:] - boxes[..., :2] + offset).prod(-1) for boxes in (boxes1, boxes2)
    )
    union = area1 + area2 - common if mode == IOU_MODE else area1
    return (common / union).nan_to_num(0)


def bbox_overlaps(
    boxes1: Tensor, boxes2: Tensor, ious: Tensor, mode: int, aligned: bool, offset: int
) -> None:
    """Fill ``ious`` for boxes (N, 4) and (M, 4). Its shape is (N, M), or (N,) for aligned pairs."""
    ious.copy_(box_ious(boxes1 if aligned else boxes1[:, None], boxes2, offset, mode))


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, offset: int) -> Tensor:
    """NMS of boxes (N, 4) with scores (N,). Returns the kept indices, by descending score."""
    # To make all sides longer by the offset, move one corner. Areas and intersections then agree
    # with mmcv's.
    boxes = torch.cat(
        [promoted_to_float32(boxes[:, :2]), promoted_to_float32(boxes[:, 2:]) + offset], dim=1
    )
    return torchvision.ops.nms(boxes, scores.to(boxes.dtype), iou_threshold)


def softnms(
    boxes: Tensor,
    scores: Tensor,
    dets: Tensor,
    iou_threshold: float,
    sigma: float,
    min_score: float,
    method: int,
    offset: int,
) -> Tensor:
    """Soft-NMS (arXiv:1704.04503, Fig. 2 and Eq. 3). It lowers the scores of overlapping boxes.

    Args:
        boxes: (N, 4), on the CPU. mmcv moves them there.
        scores: (N,).
        dets: (N, 5). Its first K rows are filled with the kept boxes and their new scores.
        iou_threshold: smallest IoU at which the naive and the linear method act.
        sigma: width of the Gaussian method.
        min_score: boxes with a lower score are dropped.
        method: 0 naive, 1 linear, 2 Gaussian.
        offset: sides are x2 - x1 + offset long.

    Returns:
        Indices (K,) of the kept boxes, by descending new score.
    """
    scores, remaining = scores.clone(), torch.arange(len(boxes))
    kept: list[Tensor] = []
    while len(remaining):
        best = remaining[scores[remaining].argmax()]
        dets[len(kept), :4], dets[len(kept), 4] = boxes[best], scores[best]
        kept.append(best)
        remaining = remaining[remaining != best]
        ious = box_ious(boxes[best], boxes[remaining], offset)
        if method in (NAIVE_MODE, LINEAR_MODE):
            decay = torch.where(ious >= iou_threshold, 0 if method == NAIVE_MODE else 1 - ious, 1)
        else:
            decay = torch.exp(-ious.square() / sigma)
        scores[remaining] *= decay
        remaining = remaining[scores[remaining] >= min_score]
    return torch.stack(kept) if kept else remaining


def nms_match(dets: Tensor, iou_threshold: float) -> list[list[int]]:
    """Group boxes (N, 5) with scores: a kept box, then those it suppresses, by descending score."""
    remaining, groups = dets[:, 4].argsort(descending=True), []
    while len(remaining):
        matched = box_ious(dets[remaining[0], :4], dets[remaining, :4], 0) >= iou_threshold
        matched[0] = True
        groups.append(remaining[matched].tolist())
        remaining = remaining[~matched]
    return groups
