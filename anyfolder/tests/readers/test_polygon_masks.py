"""The pixels of polygons, compared with masks drawn by hand and with pycocotools."""

import numpy as np
import pytest

from anyfolder import Object, object_mask
from anyfolder.readers import polygon_masks
from anyfolder.readers.polygon_masks import draw_polygon
from anyfolder.readers.run_lengths import mask_of

# Polygons, and the pixels that they cover in a mask of 5 x 4. Empty rows at the end are omitted.
DRAWN = {
    'a rectangle has the pixels between its sides': (
        [1, 1, 4, 1, 4, 3, 1, 3],
        ['.....', '.###.', '.###.', '.....'],
    ),
    'in the other direction, too': ([1, 1, 1, 3, 4, 3, 4, 1], ['.....', '.###.', '.###.', '.....']),
    'a triangle': ([0, 0, 5, 0, 0, 4], ['####.', '###..', '##...', '#....']),
    'from the center of a pixel on': ([1.5, 0.5, 3.5, 0.5, 3.5, 2.5, 1.5, 2.5], ['.##..'] * 2),
    'beyond the image': ([-9, 2, 9, 2, 9, 99, -9, 99], ['.....', '.....', '#####', '#####']),
    'outside of it': ([7, 7, 9, 7, 9, 9], []),
    'a hole by crossing lines': (
        [0, 0, 5, 0, 5, 4, 0, 4, 0, 0, 1, 1, 1, 3, 4, 3, 4, 1, 1, 1],
        ['#####', '#...#', '#...#', '#####'],
    ),
    'thinner than a pixel, between centers': ([0, 1.6, 5, 1.6, 5, 2.4, 0, 2.4], []),
}  # fmt: skip


@pytest.mark.parametrize(('polygon', 'rows'), DRAWN.values(), ids=DRAWN)
def test_pixels_whose_center_is_inside_are_set(polygon, rows):
    mask = np.zeros((4, 5), np.uint8)
    draw_polygon(mask, polygon, 7)
    drawn = [''.join('#' if value == 7 else '.' for value in row) for row in mask.tolist()]
    assert drawn == [*rows, *['.....'] * (4 - len(rows))]


@pytest.mark.parametrize('crossings_at_once', [1 << 22, 10])
def test_nearly_the_same_pixels_are_inside_as_by_pycocotools(crossings_at_once, monkeypatch):
    coco = pytest.importorskip('pycocotools.mask')
    monkeypatch.setattr(polygon_masks, 'MAX_CROSSINGS', crossings_at_once)
    rng, pixels = np.random.default_rng(0), []
    for corners in rng.integers(3, 20, 200):
        polygon = (rng.random((corners, 2)) * [80, 60] - [10, 5]).ravel().tolist()
        mask = object_mask(Object('a', (0, 0, 1, 1), [polygon]), (60, 50))
        [runs] = coco.frPyObjects([polygon], 50, 60)
        coco_mask = mask_of(runs['counts'], (60, 50))
        pixels.append((mask.sum(), coco_mask.sum(), (mask ^ coco_mask).sum()))
    inside, inside_by_coco, different = np.sum(pixels, axis=0)
    # with the pixels of the outline, there would be 15 % more
    assert abs(inside - inside_by_coco) < 0.003 * inside_by_coco
    assert different < 0.03 * inside_by_coco


def test_overlapping_parts_of_an_object_are_one_mask():
    parts = [[0, 0, 3, 0, 3, 3, 0, 3], [2, 2, 4, 2, 4, 4, 2, 4]]
    assert object_mask(Object('a', (0, 0, 4, 4), parts), (5, 4)).sum() == 9 + 4 - 1
