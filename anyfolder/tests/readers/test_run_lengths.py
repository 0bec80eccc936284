"""Masks from COCO's run lengths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anyfolder.readers.geometry import box_of_mask
from anyfolder.readers.run_lengths import area_of_runs, box_of_runs, mask_of

MASK = np.zeros((4, 4), bool)
MASK[1:3, 1:3] = True


@pytest.mark.parametrize('counts', [[5, 2, 2, 2, 5], '52203', b'52203'])
def test_counts_may_be_numbers_or_text(counts):
    assert (mask_of(counts, (4, 4)) == MASK).all()


def test_mask_that_is_not_square_has_its_shape():
    assert (mask_of([1, 1, 4], (2, 3)) == [[0, 0], [1, 0], [0, 0]]).all()


def test_numbers_in_text_are_differences_from_two_runs_before():
    """Two objects in a large image have long runs, and a negative difference."""
    mask = np.zeros((100, 70), bool)
    mask[10:60, 5:9], mask[70:72, 30:60] = True, True
    assert (mask_of(pycocotools_text(mask), mask.shape[::-1]) == mask).all()


def pycocotools_text(mask: np.ndarray) -> str:
    """The text that ``rleToString`` in pycocotools' ``maskApi.c`` makes of a mask."""
    flat = np.concatenate([[False], mask.flatten(order='F')])
    runs = np.diff(np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]), [mask.size]]))
    letters = []
    for i, run in enumerate(runs.tolist()):
        value = run - (int(runs[i - 2]) if i > 2 else 0)
        more = True
        while more:
            bits, value = value & 0x1F, value >> 5
            more = value != -1 if bits & 0x10 else value != 0
            letters.append(chr(48 + (bits | 0x20 if more else bits)))
    return ''.join(letters)


@pytest.mark.parametrize('counts', [[5, 2, 2, 2, 4], [20, -4], '5220', '5220o'])
def test_counts_that_do_not_fit_the_size_raise(counts):
    with pytest.raises(ValueError, match='run lengths'):
        mask_of(counts, (4, 4))


@given(arrays(bool, st.tuples(st.integers(1, 5), st.integers(1, 5))))
def test_the_box_is_that_of_the_mask(mask):
    width, height = mask.shape[::-1]
    assert box_of_runs(pycocotools_text(mask), (width, height)) == box_of_mask(mask)


@pytest.mark.parametrize(
    'counts',
    [
        'o' * 1_000_000,  # one number of five million bits
        [2**62, 2**62, 2**62, 2**62 + 16],  # the sum is 16 in 64 bits
        [0, 2**31, 0, 16],  # overflows 32 bits
    ],
)
def test_absurd_run_lengths_raise(counts):
    with pytest.raises((ValueError, OverflowError), match='run length'):
        box_of_runs(counts, (4, 4))


@pytest.mark.parametrize('counts', [[5, 2, 2, 2, 5], '52203', [0, 4, 12]])
def test_the_area_is_that_of_the_mask(counts):
    assert area_of_runs(counts, (4, 4)) == mask_of(counts, (4, 4)).sum() == 4
