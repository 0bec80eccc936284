"""The difference of outputs that the campaign ``dropin`` limits, of tensors or of tuples."""

from math import inf, nan

import pytest
import torch

pytest.importorskip('mmpretrain')
from benchmarks.dropin import difference
from benchmarks.measuring.differences import relative_difference

EXPECTED = torch.tensor([1.0, 2.0])


@pytest.mark.parametrize('compare', [relative_difference, difference])
def test_a_nan_is_an_infinite_difference(compare):
    # max() would drop a NaN that is not the first value.
    assert compare(EXPECTED, EXPECTED) == 0
    assert 0 < compare(EXPECTED + 0.5, EXPECTED) < inf
    assert compare(torch.tensor([nan, 2.0]), EXPECTED) == inf
    assert compare(EXPECTED, torch.tensor([nan, 2.0])) == inf


def test_outputs_of_other_shapes_differ_infinitely():
    assert difference((EXPECTED,), (EXPECTED[:1],)) == inf
    assert difference((EXPECTED, EXPECTED), (EXPECTED,)) == inf
