"""The form and units of boxes, checked with all boxes of a data set."""

from pathlib import Path

import numpy as np
import pytest
from rejection import rejects

from anyfolder.errors import InputError
from anyfolder.readers.box_meaning import check_meaning
from anyfolder.readers.records import ImageRecord, Instance

SIZE = 640, 480
# The numbers of a box in each form.
WRITE = dict(
    xywh=lambda x, y, w, h: (x, y, w, h),
    xyxy=lambda x, y, w, h: (x, y, x + w, y + h),
    center=lambda x, y, w, h: (x + w / 2, y + h / 2, w, h),
    yxyx=lambda x, y, w, h: (y, x, y + h, x + w),
    xxyy=lambda x, y, w, h: (x, x + w, y, y + h),
)


def boxes(count: int = 120, largest: float = 0.4) -> np.ndarray:
    """Boxes (N, 4) anywhere in an image, as left, top, width and height in pixels."""
    generator = np.random.default_rng(0)
    sides = generator.uniform(largest / 4, largest, (count, 2)) * SIZE
    return np.concatenate((generator.uniform(0, 1, (count, 2)) * (SIZE - sides), sides), axis=1)


def records(
    pixels: np.ndarray, written: str, stated: str, as_shares: bool = False, relative: bool = False
) -> list[ImageRecord]:
    """Images with three boxes each, written in one form and stated to be in another.

    Args:
        pixels: left, top, width and height of the boxes (N, 4).
        written: the form of the numbers.
        stated: the form that their format states.
        as_shares: write fractions of the width and height.
        relative: whether the format states fractions.
    """
    numbers = np.stack(WRITE[written](*pixels.T), axis=-1)
    if as_shares:
        sides = dict(yxyx=(480, 640, 480, 640), xxyy=(640, 640, 480, 480))
        numbers = numbers / sides.get(written, (640, 480, 640, 480))
    return [
        ImageRecord(
            Path(f'{i}.jpg'),
            size=SIZE,
            instances=[
                Instance('a', row, form=stated, relative=relative, origin=f'line {n}')
                for n, row in enumerate(numbers[i : i + 3].tolist())
            ],
        )
        for i in range(0, len(numbers), 3)
    ]


@pytest.mark.parametrize('form', ['xywh', 'xyxy', 'center'])
@pytest.mark.parametrize('relative', [False, True])
@pytest.mark.parametrize('largest', [0.02, 0.4, 1])
def test_stated_form_is_accepted_if_it_fits(form, relative, largest):
    pixels = boxes(largest=largest)
    check_meaning(records(pixels, form, form, as_shares=relative, relative=relative))


@pytest.mark.parametrize('relative', [False, True])
@pytest.mark.parametrize(
    ('written', 'stated', 'words'),
    [
        ('xywh', 'center', 'left, top, width, height instead of center x, .*; add half of'),
        ('center', 'xywh', 'center x, center y, width, height instead of left.*; subtract half'),
        ('xyxy', 'xywh', 'left, top, right, bottom instead of left.*; subtract left from right'),
        ('xyxy', 'center', 'left, top, right, bottom instead of center.*; write the center'),
        ('xywh', 'xyxy', 'left, top, width, height instead of left, top, right.*; add left'),
        ('center', 'xyxy', 'center x, .* instead of left, top, right.*; write the center minus'),
        ('xxyy', 'xyxy', 'left, right, top, bottom instead of .*; write left, top, right, bottom'),
        ('xxyy', 'xywh', 'left, right, top, bottom instead of .*; write left, top, width, height'),
    ],
)
def test_form_that_fits_all_boxes_is_suggested_with_the_remedy(written, stated, words, relative):
    with rejects(rf'the boxes seem to be {words}') as error:
        check_meaning(records(boxes(), written, stated, as_shares=relative, relative=relative))
    assert 'do not lie in their image, the first is [' in str(error.value)


def test_rows_before_columns_show_in_pixels_but_not_in_fractions():
    with rejects('seem to be top, left, bottom, right instead of left.*; write left, top, right'):
        check_meaning(records(boxes(), 'yxyx', 'xyxy'))
    check_meaning(records(boxes(), 'yxyx', 'xyxy', as_shares=True, relative=True))


@pytest.mark.parametrize('form', ['xywh', 'xyxy', 'center'])
@pytest.mark.parametrize('count', [1, 120])
def test_units_that_fit_all_boxes_are_suggested_with_the_remedy(form, count):
    with rejects('have values from 0 to 1, .*; multiply them by the width and height'):
        check_meaning(records(boxes(count), form, form, as_shares=True))
    with rejects('have values in pixels instead of fractions .*; divide them by the width and'):
        check_meaning(records(boxes(count), form, form, relative=True))


def test_form_and_units_may_both_be_wrong():
    with rejects('seem to be left, top, right, bottom, in pixels, .*; write center x, center y'):
        check_meaning(records(boxes(), 'xyxy', 'center', relative=True))


@pytest.mark.parametrize('outside', [1, 2])
def test_one_or_two_boxes_beyond_an_edge_do_not_change_the_form(outside):
    """Boxes in the upper left corner of the image, which would exceed it with a center there."""
    pixels = boxes(20, largest=0.1) + np.array((100, 100, 0, 0))
    pixels[:outside, :2] = 0
    pixels = np.minimum(pixels, (500, 400, 640, 480))
    check_meaning(records(pixels, 'xywh', 'center'))
    pixels[: outside + 4, :2] = 0
    with rejects('seem to be left, top, width, height'):
        check_meaning(records(pixels, 'xywh', 'center'))


@pytest.mark.parametrize('form', ['xywh', 'xyxy', 'center'])
def test_boxes_beyond_all_edges_are_in_the_stated_form(form):
    """Rotated images and tiles have them; what is outside is clipped later."""
    pixels = boxes()
    pixels[:, :2] += np.random.default_rng(1).uniform(-0.5, 0.5, (len(pixels), 2)) * pixels[:, 2:]
    check_meaning(records(pixels, form, form))


@pytest.mark.parametrize(('written', 'stated'), [('xywh', 'center'), ('center', 'xywh')])
def test_tiny_boxes_have_their_own_tolerance(written, stated):
    """They exceed an image by less than larger boxes may, but rounding to pixels is accepted."""
    pixels = boxes(2000, largest=0.01)
    with rejects('add half of' if stated == 'center' else 'subtract half'):
        check_meaning(records(pixels, written, stated))
    pixels = np.maximum(pixels.round(), (0, 0, 1, 1))
    check_meaning(records(pixels, stated, stated))


def test_single_outlier_changes_nothing():
    pixels = boxes(300)
    pixels[7] = 600, 400, 300, 300
    with rejects('seem to be left, top, width, height instead of center'):
        check_meaning(records(pixels, 'xywh', 'center'))


def test_polygons_and_images_without_an_object_have_no_form():
    outline = Instance('a', (), [[900, 900, 950, 900, 950, 950]], form='center', relative=True)
    check_meaning([ImageRecord(Path('0.jpg'), size=SIZE, instances=[outline])])
    check_meaning([])


def test_box_may_cover_an_image_of_one_pixel():
    box = Instance('a', (0, 0, 1, 1))
    check_meaning([ImageRecord(Path('0.jpg'), size=(1, 1), instances=[box])])


def rejections(count: int, overhanging: float, is_corner: bool) -> int:
    """How many of 100 data sets that state centers in fractions are rejected.

    Args:
        count: the number of boxes in a data set, with sides of 0.02 to 0.3.
        overhanging: the fraction of boxes that people have drawn up to 10 pixels beyond an edge.
        is_corner: write the upper left corner instead of the center.
    """
    rng, rejected = np.random.default_rng(count), 0
    for _ in range(100):
        sides = rng.uniform(0.02, 0.3, (count, 2))
        starts = rng.uniform(0, 1, (count, 2)) * (1 - sides)
        edges = np.where(rng.random((count, 2)) < 0.5, 0, 1 - sides)
        beyond = np.where(edges == 0, -1, 1) * rng.uniform(2, 10, (count, 2)) / 640
        chosen = rng.random((count, 1)) < overhanging
        starts = np.where(chosen & (rng.random((count, 2)) < 0.5), edges + beyond, starts)
        numbers = np.hstack([starts if is_corner else starts + sides / 2, sides])
        objects = [Instance('a', row, form='center', relative=True) for row in numbers.tolist()]
        try:
            check_meaning([ImageRecord(Path('a.jpg'), size=(640, 480), instances=objects)])
        except InputError:
            rejected += 1
    return rejected


@pytest.mark.parametrize('count', [30, 100, 1000])
@pytest.mark.parametrize('overhanging', [0, 0.02, 0.1])
def test_corners_are_told_from_centers_with_few_errors(count, overhanging):
    assert rejections(count, overhanging, is_corner=False) <= 2
    if not overhanging:
        assert rejections(count, overhanging, is_corner=True) >= 85
