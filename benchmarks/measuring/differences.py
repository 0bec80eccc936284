"""Differences between the outputs of two models, of which none hides a NaN."""

import math

from torch import Tensor


def relative_difference(actual: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest expected value.

    inf if the shapes differ or a value is not finite.
    """
    if expected.shape != actual.shape or not (expected.isfinite() & actual.isfinite()).all():
        return math.inf
    return float((actual - expected).abs().max() / expected.abs().max())


def nan_as_inf(value: float) -> float:
    """inf for NaN, which max() and comparisons would drop."""
    return math.inf if math.isnan(value) else value
