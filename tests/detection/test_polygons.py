import math

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull, QhullError

from vit_plugin.detection import polygons


def turned(x, y, w, h, angle) -> np.ndarray:
    """The corners of a box, by turning those of a straight one."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    return np.array([[-w, -h], [w, -h], [w, h], [-w, h]]) / 2 @ turn.T + (x, y)


def shoelace(corners: np.ndarray) -> float:
    x, y = corners.T
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def inside(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    ex, ey = (np.roll(corners, -1, axis=0) - corners).T[..., None]
    px, py = (points - corners[:, None]).transpose(2, 0, 1)
    side = ex * py - ey * px  # (corners, points)
    return (side >= -1e-9).all(0) | (side <= 1e-9).all(0)


def reference(a: np.ndarray, b: np.ndarray, mode: str = 'iou') -> float:
    """The hull of the corners of each that lie in the other, and of the places where edges meet."""
    points = [*a[inside(a, b)], *b[inside(b, a)]]
    for p, q in zip(a, np.roll(a, -1, axis=0), strict=True):
        for r, s in zip(b, np.roll(b, -1, axis=0), strict=True):
            system = np.stack([q - p, r - s], axis=1)
            if abs(np.linalg.det(system)) > 1e-9:
                t, u = np.linalg.solve(system, r - p)
                points += [p + t * (q - p)] if 0 <= t <= 1 and 0 <= u <= 1 else []
    try:
        common = ConvexHull(np.array(points)).volume if len(points) > 2 else 0.
    except QhullError:  # all on one line
        common = 0.
    return common / (shoelace(a) + shoelace(b) - common if mode == 'iou' else shoelace(a))


def random_boxes(number: int = 30, seed: int = 0) -> torch.Tensor:
    draw = np.random.default_rng(seed)
    return torch.tensor(np.concatenate([draw.uniform(0, 20, (number, 2)), draw.uniform(1, 12, (number, 2)),
                                        draw.uniform(-4, 4, (number, 1))], axis=1))


def random_quadrilaterals(number: int = 30) -> torch.Tensor:
    """Convex ones, in either sense of turning."""
    draw = np.random.default_rng(1)
    angles = np.sort(draw.uniform(0, 1.4, (number, 4)) + np.arange(4) * math.pi / 2, axis=1)
    angles[::2] = angles[::2, ::-1]
    radius, center = draw.uniform(1, 8, (number, 1)), draw.uniform(0, 20, (number, 1, 2))
    points = np.stack([np.cos(angles), np.sin(angles)], axis=-1) * radius[..., None] + center
    return torch.tensor(points.reshape(number, 8))


@pytest.mark.parametrize('mode', ['iou', 'iof'])
@pytest.mark.parametrize('dtype', [torch.float64, torch.float32])
def test_rotated_boxes(dtype, mode):
    from mmcv.ops import box_iou_rotated
    first, second = random_boxes().to(dtype), random_boxes(20, seed=1).to(dtype)
    expected = torch.tensor([[reference(turned(*a), turned(*b), mode) for b in second.tolist()]
                             for a in first.tolist()], dtype=dtype)
    assert 0.2 < (expected > 0).double().mean() < 0.9
    ious = box_iou_rotated(first, second, mode)
    assert ious.dtype == dtype
    torch.testing.assert_close(ious, expected)
    torch.testing.assert_close(box_iou_rotated(first[:20], second, mode, aligned=True), expected[:20].diagonal())
    mirror = torch.tensor([1, 1, 1, 1, -1], dtype=dtype)
    torch.testing.assert_close(box_iou_rotated(first * mirror, second * mirror, mode, clockwise=False), expected)


def test_quadrilaterals():
    from mmcv.ops import box_iou_quadri
    first, second = random_quadrilaterals(), random_quadrilaterals().flip(0)
    expected = torch.tensor([[reference(np.reshape(a, (4, 2)), np.reshape(b, (4, 2))) for b in second.tolist()]
                             for a in first.tolist()])
    assert expected.any()
    torch.testing.assert_close(box_iou_quadri(first, second), expected.double())
    torch.testing.assert_close(box_iou_quadri(first, second, aligned=True), expected.double().diagonal())


QUARTER = math.pi / 2


@pytest.mark.parametrize(('other', 'iou'), [
    ([5, 7, 4, 2, 0.3], 1),
    ([5, 7, 2, 4, 0.3 + QUARTER], 1),  # the same box, with other sides called width and height
    ([5, 7, 4, 2, 0.3 + math.pi], 1),
    ([5, 7, 4, 2, 0.3 + 40 * QUARTER], 1),
    ([5, 7, 2, 1, 0.3], 1 / 4),
    ([5 + 2 * math.cos(0.3), 7 + 2 * math.sin(0.3), 4, 2, 0.3], 1 / 3),
    ([5 + 4 * math.cos(0.3), 7 + 4 * math.sin(0.3), 4, 2, 0.3], 0),  # they touch
    ([5, 7, 4, 0, 0.3], 0),
    ([500, 7, 4, 2, 0.3], 0)])
@pytest.mark.parametrize('shift', [0, 1e4])
def test_boxes_with_edges_on_each_other(other, iou, shift):
    """A millionth of an edge may be on the wrong side, and nothing else."""
    from mmcv.ops import box_iou_rotated
    boxes = torch.tensor([[5, 7, 4, 2, 0.3], other], dtype=torch.float64) + torch.tensor([shift, -shift, 0, 0, 0])
    assert box_iou_rotated(boxes[:1], boxes[1:]).item() == pytest.approx(iou, abs=1e-9)
    assert box_iou_rotated(boxes[1:], boxes[:1]).item() == pytest.approx(iou, abs=1e-9)


def test_more_pairs_than_fit_at_once(monkeypatch):
    from mmcv.ops import box_iou_rotated
    first, second = random_boxes(), random_boxes(20, seed=1)
    expected = box_iou_rotated(first, second)
    monkeypatch.setattr(polygons, 'PAIRS_AT_ONCE', 7)
    torch.testing.assert_close(box_iou_rotated(first, second), expected, rtol=0, atol=0)


def test_no_boxes():
    from mmcv.ops import box_iou_rotated
    boxes = random_boxes(3)
    assert box_iou_rotated(boxes[:0], boxes).shape == (0, 3)
    assert box_iou_rotated(boxes, boxes[:0]).shape == (3, 0)
    assert box_iou_rotated(boxes[:0], boxes[:0], aligned=True).shape == (0, )


@pytest.mark.parametrize('kind', ['rotated', 'quadri'])
def test_nms_keeps_what_the_greedy_loop_keeps(kind):
    from mmcv.ops import nms_quadri, nms_rotated
    boxes = random_boxes(60) if kind == 'rotated' else random_quadrilaterals(60)
    scores = (torch.randperm(60) + 1) / 61
    corners = [turned(*box) if kind == 'rotated' else np.reshape(box, (4, 2)) for box in boxes.tolist()]
    kept = []
    for i in scores.argsort(descending=True).tolist():
        if all(reference(corners[i], corners[j]) <= 0.2 for j in kept):
            kept.append(i)
    assert 5 < len(kept) < 55
    dets, found = dict(rotated=nms_rotated, quadri=nms_quadri)[kind](boxes, scores.double(), 0.2)
    assert found.tolist() == kept
    torch.testing.assert_close(dets, torch.cat([boxes, scores[:, None].double()], dim=1)[kept])


def test_batched_nms_keeps_classes_apart():
    from mmcv.ops import batched_nms, nms_rotated
    boxes, scores, classes = random_boxes(60), (torch.randperm(60) + 1) / 61, torch.arange(60) % 3
    cfg = dict(type='nms_rotated', iou_threshold=0.2)
    expected = torch.cat([rows[nms_rotated(boxes[rows], scores[rows], 0.2)[1]] for rows in (
        (classes == number).nonzero()[:, 0] for number in range(3))])
    assert batched_nms(boxes, scores, classes, cfg)[1].tolist() == sorted(expected.tolist(), key=lambda i: -scores[i])
    assert batched_nms(boxes, scores, classes, cfg, class_agnostic=True)[1].tolist() == nms_rotated(
        boxes, scores, 0.2)[1].tolist()
