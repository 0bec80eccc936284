"""The relative difference of two outputs, by which campaigns compare models."""

import math

import pytest
import torch

from benchmarks.measuring.differences import nan_as_inf, relative_difference


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
    assert relative_difference(actual, torch.tensor([2.0, 4.0])) == expected_difference


def test_a_nan_is_infinite():
    assert nan_as_inf(math.nan) == math.inf
    assert nan_as_inf(0.5) == 0.5
