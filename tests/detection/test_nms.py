"""NMS, soft-NMS and IoU equal plain Python loops."""

import math

import pytest
import torch

THRESHOLD = 0.3019  # no overlap of boxes of whole pixels equals it, so rounding does not matter


@pytest.fixture
def ops():
    import mmcv.ops

    return mmcv.ops


def random_boxes(number: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    """Boxes of whole pixels, so that an offset of a pixel matters, and different scores."""
    corners = torch.randint(0, 12, (number, 2))
    boxes = torch.cat([corners, corners + torch.randint(1, 9, (number, 2))], dim=1).float()
    return boxes, (torch.randperm(number) + 1) / (number + 1)


def overlap(a, b, offset: int, mode: str = 'iou') -> float:
    sides = [max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + offset, 0) for i in (0, 1)]
    areas = [(box[2] - box[0] + offset) * (box[3] - box[1] + offset) for box in (a, b)]
    common = sides[0] * sides[1]
    return common / (sum(areas) - common if mode == 'iou' else areas[0])


def greedy(boxes, scores, threshold: float, offset: int = 0) -> list[int]:
    """Indices of the boxes that NMS keeps, by decreasing score."""
    boxes, kept = boxes.tolist(), []
    for i in scores.argsort(descending=True).tolist():
        if all(overlap(boxes[i], boxes[j], offset) <= threshold for j in kept):
            kept.append(i)
    return kept


@pytest.mark.parametrize('offset', [0, 1])
@pytest.mark.parametrize('threshold', [THRESHOLD, 0.5023])
def test_nms_equals_the_greedy_loop(ops, threshold, offset):
    boxes, scores = random_boxes()
    dets, kept = ops.nms(boxes, scores, threshold, offset)
    assert kept.tolist() == greedy(boxes, scores, threshold, offset)
    torch.testing.assert_close(dets, torch.cat([boxes, scores[:, None]], dim=1)[kept])


def test_the_offset_changes_the_result():
    boxes, scores = random_boxes(200)
    assert greedy(boxes, scores, THRESHOLD, 0) != greedy(boxes, scores, THRESHOLD, 1)


def test_nms_with_a_score_threshold_and_a_maximum_number(ops):
    boxes, scores = random_boxes()
    kept = [i for i in greedy(boxes, scores, THRESHOLD) if scores[i] > 0.5][:3]
    assert ops.nms(boxes, scores, THRESHOLD, score_threshold=0.5, max_num=3)[1].tolist() == kept


def test_nms_in_half_precision_and_without_boxes(ops):
    boxes, scores = random_boxes()
    assert ops.nms(boxes.bfloat16(), scores, THRESHOLD)[1].tolist() == greedy(
        boxes, scores, THRESHOLD
    )
    assert ops.nms(boxes[:0], scores[:0], 0.5)[1].tolist() == []


@pytest.mark.parametrize('split_thr', [10000, 10])
def test_batched_nms_is_nms_of_each_class(ops, split_thr):
    boxes, scores = random_boxes()
    classes = torch.randint(0, 3, (len(boxes),))
    expected = []
    for number in range(3):
        rows = (classes == number).nonzero()[:, 0]
        expected += rows[greedy(boxes[rows], scores[rows], THRESHOLD)].tolist()
    kept = ops.batched_nms(
        boxes, scores, classes, dict(type='nms', iou_threshold=THRESHOLD, split_thr=split_thr)
    )[1]
    assert kept.tolist() == sorted(expected, key=lambda i: -scores[i])


def test_batched_nms_without_classes(ops):
    boxes, scores = random_boxes()
    classes = torch.arange(len(boxes))
    kept = ops.batched_nms(
        boxes, scores, classes, dict(type='nms', iou_threshold=THRESHOLD), class_agnostic=True
    )[1]
    assert kept.tolist() == greedy(boxes, scores, THRESHOLD)


@pytest.mark.parametrize('offset', [0, 1])
@pytest.mark.parametrize('method', ['naive', 'linear', 'gaussian'])
def test_soft_nms_equals_the_greedy_loop(ops, method, offset):
    boxes, scores = random_boxes(25)
    remaining, expected = dict(enumerate(scores.tolist())), []
    while remaining:
        best = max(remaining, key=remaining.get)
        expected.append((best, remaining.pop(best)))
        for i in list(remaining):
            iou = overlap(boxes[best].tolist(), boxes[i].tolist(), offset)
            if method == 'gaussian':
                remaining[i] *= math.exp(-(iou**2) / 0.5)
            elif iou >= THRESHOLD:
                remaining[i] *= 0 if method == 'naive' else 1 - iou
            if remaining[i] < 0.05:
                del remaining[i]
    dets, kept = ops.soft_nms(
        boxes, scores, THRESHOLD, sigma=0.5, min_score=0.05, method=method, offset=offset
    )
    assert kept.tolist() == [i for i, _ in expected]
    assert 1 < len(kept) < len(boxes)
    torch.testing.assert_close(
        dets, torch.cat([boxes[kept], torch.tensor([[score] for _, score in expected])], dim=1)
    )


def test_soft_nms_of_boxes_without_area(ops):
    boxes = torch.tensor([[1.0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 3, 3]])
    scores = torch.tensor([0.9, 0.8, 0.7])
    assert ops.soft_nms(boxes, scores, method='gaussian')[0][:, 4].tolist() == scores.tolist()


def test_nms_match_groups_overlapping_boxes(ops):
    boxes, scores = random_boxes()
    order, expected = scores.argsort(descending=True).tolist(), []
    while order:
        best, *others = order
        matched = [i for i in others if overlap(boxes[best].tolist(), boxes[i].tolist(), 0) >= 0.3]
        expected.append([best, *matched])
        order = [i for i in others if i not in matched]
    assert max(map(len, expected)) > 1
    groups = ops.nms_match(torch.cat([boxes, scores[:, None]], dim=1), THRESHOLD)
    assert [group.tolist() for group in groups] == expected


@pytest.mark.parametrize('offset', [0, 1])
@pytest.mark.parametrize('mode', ['iou', 'iof'])
def test_bbox_overlaps_equal_the_definition(ops, mode, offset):
    first, second = random_boxes(5)[0], random_boxes(5)[0]
    table = torch.tensor(
        [[overlap(a, b, offset, mode) for b in second.tolist()] for a in first.tolist()]
    )
    assert table.any()
    torch.testing.assert_close(ops.bbox_overlaps(first, second, mode, offset=offset), table)
    torch.testing.assert_close(
        ops.bbox_overlaps(first, second, mode, aligned=True, offset=offset), table.diagonal()
    )
