"""Masks of objects compared with their boxes."""

import numpy as np
import pytest

from anyfolder.readers.findings import Findings
from anyfolder.readers.object_masks import check_mask
from anyfolder.readers.records import Instance

BOX = 30, 40, 30, 4
OUTLINE = [30, 40, 60, 40, 60, 44, 30, 44]


def runs(box=BOX, size=(64, 48), order='F') -> dict:
    """Run lengths of a box: down the columns (F), or along the rows (C), as some programs do."""
    left, top, width, height = box
    mask = np.zeros(size[::-1], np.uint8)
    mask[top : top + height, left : left + width] = 1
    ends = np.flatnonzero(np.diff(mask.flatten(order), prepend=0, append=0))
    return dict(size=[*size[::-1]], counts=np.diff([0, *ends, mask.size]).tolist())


def compressed() -> dict:
    mask = pytest.importorskip('pycocotools.mask')
    counts = mask.frPyObjects(runs(), 48, 64)['counts']
    return dict(size=[48.0, 64.0], counts=counts.decode())


@pytest.mark.parametrize(
    'mask',
    [
        lambda: [OUTLINE],
        lambda: [OUTLINE[:4], OUTLINE],  # a part of two points
        lambda: [[30, 40, 70, 40, 70, 44, 30, 44]],  # beyond the edge of the image
        lambda: [[*OUTLINE[:4], 45, 47], [*OUTLINE[2:], *OUTLINE[:2]]],
        runs,
        compressed,
    ],
)
def test_polygons_and_run_lengths_fit_their_box(mask):
    found, findings = Instance('a', BOX, mask()), Findings()
    assert check_mask(found, (64, 48), findings)
    assert not findings.errors
    if isinstance(found.segmentation, dict):
        assert found.segmentation['size'] == [48, 64]
    else:
        assert all(len(part) >= 6 for part in found.segmentation)


# The fault if the box of a mask is not the stated box.
APART = 'polygons and boxes of objects are in different places'


@pytest.mark.parametrize(
    ('mask', 'words'),
    [
        ([[0, 0, 5, 0, 5, 5]], APART),
        ([[1, 2, 3, 4]], 'polygons are not three or more pairs'),
        ([OUTLINE[:7]], 'polygons are not three or more pairs'),
        (5, 'polygons are not three or more pairs'),
        ([[*OUTLINE, float('nan'), 2]], 'polygons are not three or more pairs'),
        (dict(size=[48, 64], counts=[5, 6]), 'are not valid COCO run lengths'),
        (dict(size=[48, 64], counts="b'Yh6'"), 'are not valid COCO run lengths'),
        (dict(size=[48, 64]), 'are not valid COCO run lengths'),
        (dict(size=[64, 48], counts=[3072]), 'have another size than their image'),
        (dict(counts=[3072]), 'have another size than their image'),
        (dict(size=None, counts=[3072]), 'have another size than their image'),
        (dict(size=48, counts=[3072]), 'have another size than their image'),
        (dict(size=[48, 64], counts=[3072]), 'run-length masks are empty'),
        (dict(size=[48, 64], counts=[3072, 0]), 'run-length masks are empty'),
        (runs(order='C'), APART),
        (runs((0, 0, 3, 3)), APART),
    ],
)
def test_invalid_masks_are_rejected(mask, words):
    findings = Findings()
    assert not check_mask(Instance('a', BOX, mask, origin='line 3'), (64, 48), findings)
    [((what, remedy), kind)] = findings.errors.items()
    assert words in what
    assert remedy
    assert 'line 3' in kind.examples[0]


@pytest.mark.parametrize(('order', 'is_kept'), [('F', True), ('C', False)])
def test_run_lengths_by_rows_of_a_square_image_are_rejected(order, is_kept):
    """Their box is the right one mirrored at the diagonal, and so overlaps it."""
    box, findings = (20, 10, 24, 20), Findings()
    found = Instance('a', box, runs(box, (64, 64), order))
    assert check_mask(found, (64, 64), findings) == is_kept
    assert any('read by rows' in what for what, _ in findings.errors) == (not is_kept)
