import math

import numpy as np
import torch
from matplotlib.path import Path
from scipy.spatial import ConvexHull


def test_points_in_polygons():
    from mmcv.ops import points_in_polygons
    points, polygons = torch.rand(200, 2) * 10, torch.rand(5, 8) * 10
    expected = np.stack([Path(polygon.reshape(4, 2)).contains_points(points) for polygon in polygons.numpy()], axis=1)
    straight = torch.tensor([[2., 2, 8, 2, 8, 8, 2, 8]])
    crossed = [i for i, polygon in enumerate(polygons.numpy()) if not is_simple(polygon.reshape(4, 2))]
    simple = [i for i in range(5) if i not in crossed]  # matplotlib winds around what crosses itself
    assert simple
    assert (points_in_polygons(points, polygons)[:, simple].numpy() == expected[:, simple]).all()
    assert points_in_polygons(points, straight)[:, 0].bool().tolist() == (
        (points > 2) & (points < 8)).all(1).tolist()


def test_edges_and_corners_are_outside():
    from mmcv.ops import points_in_polygons
    kite = torch.tensor([[0., 0, 4, 0, 4, 4, 2, 6]])
    on_it = torch.tensor([[0., 0], [4, 0], [4, 4], [2, 6], [2, 0], [4, 2], [3, 5], [1, 3]])
    assert not points_in_polygons(on_it, kite).any()
    assert points_in_polygons(torch.tensor([[1., 1], [3, 4], [2, 5.9], [3.9, 0.1]]), kite).all()
    assert not points_in_polygons(torch.tensor([[1., 4], [4.1, 4], [-1, 0], [5, 0], [2, 7]]), kite).any()


def is_simple(corners: np.ndarray) -> bool:
    def side(a, b, c) -> bool:
        return (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])

    p, q, r, s = corners
    return all(side(a, b, c) == side(a, b, d) or side(c, d, a) == side(c, d, b)
               for a, b, c, d in ((p, q, r, s), (q, r, s, p)))


def test_the_smallest_rectangle():
    from mmcv.ops import min_area_polygons
    sets = torch.randn(20, 18, dtype=torch.float64) * torch.tensor([5., 1.], dtype=torch.float64).repeat(9)
    for points, rectangle in zip(sets.numpy().reshape(20, 9, 2), min_area_polygons(sets).numpy().reshape(20, 4, 2),
                                 strict=True):
        smallest = math.inf
        for a, b in ConvexHull(points).simplices:
            angle = math.atan2(*(points[b] - points[a])[::-1])
            turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
            smallest = min(smallest, np.ptp(points @ turn.T, axis=0).prod())
        hull = ConvexHull(rectangle)
        assert math.isclose(hull.volume, smallest, rel_tol=1e-9)
        assert (hull.equations[:, :2] @ points.T + hull.equations[:, 2:]).max() < 1e-9
        assert np.linalg.det(rectangle[[1, 2]] - rectangle[0]) < 0  # the order of mmcv's corners


def test_the_smallest_rectangle_of_repeated_points():
    from mmcv.ops import min_area_polygons
    assert min_area_polygons(torch.tensor([[3., 4] * 9])).tolist() == [[3, 4] * 4]


def test_the_differentiable_iou():
    from mmcv.ops import box_iou_rotated, diff_iou_rotated_2d
    first = torch.rand(1, 12, 5) * torch.tensor([4., 4, 5, 5, 3]) + torch.tensor([0., 0, 1, 1, 0])
    second = torch.rand(1, 12, 5) * torch.tensor([4., 4, 5, 5, 3]) + torch.tensor([0., 0, 1, 1, 0])
    second[0, 0] += 50  # apart
    second[0, 1] = first[0, 1]
    second[0, 2, 2:4] = 0.1  # within the first
    second[0, 2, :2] = first[0, 2, :2]
    first, second = first.double().requires_grad_(), second.double()
    ious = diff_iou_rotated_2d(first, second)
    expected = box_iou_rotated(first[0].detach(), second[0], aligned=True)
    torch.testing.assert_close(ious[0], expected, rtol=1e-5, atol=1e-5)
    ious.sum().backward()
    for i in (2, *range(3, 12)):
        for k in range(5):
            step = torch.zeros(5, dtype=torch.float64)
            step[k] = 1e-4
            up, down = (box_iou_rotated(first[0, i:i + 1].detach() + sign * step, second[0, i:i + 1]).item()
                        for sign in (1, -1))
            assert math.isclose(first.grad[0, i, k].item(), (up - down) / 2e-4, abs_tol=1e-3), (i, k)
