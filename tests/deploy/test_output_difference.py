"""An exported file differs from its model if its outputs do, beyond rounding."""

import math
from types import SimpleNamespace

import pytest
import torch
from rejection import rejects

from vit_plugin.deploy.deployed_module import Deployed
from vit_plugin.deploy.output_difference import checking_finite, largest_difference


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_infinite_outputs_raise(value):
    boxes, scores = torch.rand(1, 4), torch.full((1,), value)
    assert checking_finite(lambda images: images)(boxes) is boxes
    with rejects('outputs that are infinite or NaN, .* export in float32'):
        checking_finite(lambda images: (images, scores))(boxes)


class FunctionModel:
    """Enough of a deployed model to compare a function of images with that of a file."""

    inputs = ('images',)
    model = SimpleNamespace(backbone=SimpleNamespace(in_channels=3))

    def __init__(self, function):
        self.function = function

    def __call__(self, images):
        return self.function(images)

    def difference(self, found, wanted):
        return float((found - wanted).abs().max())


@pytest.mark.parametrize(('factor', 'is_reported'), [(1.0, True), (1e9, False)])
def test_differences_are_ignored_if_rounding_makes_as_large_ones(factor, is_reported):
    """With the factor 1e9, rounding of the pixels changes the sine completely."""
    model = FunctionModel(lambda images: (factor * images).sin())
    difference = largest_difference(model, lambda images: (factor * images + 1).sin(), (4, 4))
    assert (difference > 0.1) is is_reported


def test_differences_of_outputs_that_are_nan_are_nan():
    """Also after one that is a number."""
    model = FunctionModel(lambda images: images if len(images) == 1 else images * math.nan)
    assert math.isnan(largest_difference(model, lambda images: images, (4, 4)))
    zeros = torch.zeros(1)
    assert math.isnan(Deployed.difference(model, (zeros, zeros), (zeros, zeros * math.nan)))


def test_tie_that_only_some_rounding_errors_break_is_ignored():
    """The first images tie with themselves; only pixels rounded down break the tie."""
    first = []

    def is_darker(images):
        first.append(images)
        return (images[:, :, :1, :1] < first[0][:, :, :1, :1]).float()

    assert largest_difference(FunctionModel(is_darker), torch.ones_like, (4, 4), batch=1) == 0
