"""The difference by which the campaign ``zoo`` compares two models."""

import math

import pytest
import torch

from benchmarks.zoo import difference


@pytest.mark.parametrize(
    ('actual', 'expected_difference'),
    [
        (torch.tensor([2.0, 4.0]), 0.0),
        (torch.tensor([2.0, 3.0]), 0.25),
        (torch.tensor([2.0, math.nan]), math.inf),
        (torch.tensor([2.0, math.inf]), math.inf),
        (torch.tensor([2.0]), math.inf),
    ],
)
def test_differences_are_relative_and_infinite_for_other_shapes_or_values(
    actual, expected_difference
):
    assert difference(torch.tensor([2.0, 4.0]), actual) == expected_difference
