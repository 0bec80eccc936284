"""The tiles of large images, and which parts of cut objects count as objects.

"Learned" are the objects of a view that are not ignored.
"""

import numpy as np
import pytest

from vit_plugin.files.tiles import OVERLAP, choose_views, cut_tiles


@pytest.mark.parametrize('size', [(100, 100), (640, 480), (641, 480), (2000, 1500), (513, 1153)])
def test_tiles_equal_the_slices_of_supervision(size):
    sv = pytest.importorskip('supervision')
    overlap = (round(OVERLAP * 640),) * 2
    offsets = sv.InferenceSlicer._generate_offset(size, (640, 640), overlap)
    assert cut_tiles(*size, 640) == list(map(tuple, offsets.tolist()))


def test_cut_objects_count_from_seventy_percent_on():
    # The first tile ends at 100, the second begins at 80, and both are 100 pixels wide.
    boxes = [(93, 10, 103, 20), (94, 40, 104, 50), (82, 70, 92, 80)]
    first, second, whole = choose_views([((180, 100), boxes, [False] * 3)], 100)
    assert (first.area, second.area) == ((0, 0, 100, 100), (80, 0, 180, 100))
    assert first.ignored.tolist() == [False, True, False]
    assert first.boxes[0].tolist() == [93, 10, 100, 20]
    assert not second.ignored.any()
    assert second.boxes[:, 0].tolist() == [13, 14, 2]
    assert whole.area == (0, 0, 180, 100)
    assert whole.ignored.all()  # too small: scaled down, 10 pixels become 5.6


def test_large_objects_are_learned_in_the_whole_image():
    views = choose_views([((300, 300), [(10, 10, 290, 290), (5, 5, 15, 15)], [False, True])], 100)
    (learned,) = [view for view in views if not view.ignored.all()]
    assert learned.area == (0, 0, 300, 300)
    assert learned.ignored.tolist() == [False, True]


def test_at_most_as_many_tiles_without_objects_as_with_objects_are_chosen():
    images = [((400, 400), [(5, 5, 25, 25)], [False]), ((400, 400), [], [])]
    views = choose_views(images, 100)
    with_objects = [view for view in views if len(view.boxes) > 0 and not view.ignored.all()]
    assert (len(with_objects), len(views)) == (1, 2)
    assert len(choose_views([((50, 50), [(5, 5, 25, 25)], [False])], 100)) == 1


def test_boxes_are_clipped_to_their_tile_and_no_object_is_lost():
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 900, (200, 2))
    boxes = np.concatenate((corners, corners + rng.uniform(5, 100, (200, 2))), axis=1)
    learned = set()
    for view in choose_views([((1000, 1000), boxes, [False] * 200)], 256):
        left, top, right, bottom = view.area
        assert (view.boxes >= 0).all()
        assert (view.boxes <= (right - left, bottom - top) * 2).all()
        learned |= {*view.objects[~view.ignored].tolist()}
    assert learned == {*range(200)}
