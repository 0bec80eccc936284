"""The padding of a preprocessor, and whether a test pipeline ends in one size for all images."""

from types import SimpleNamespace

import numpy as np
import pytest
from torch import nn

from vit_plugin.deploy.input_sizes import (
    InputSizes,
    Padding,
    padding_of,
    sizes_of_test,
)


@pytest.mark.parametrize(
    ('preprocessor', 'padding'),
    [
        (None, Padding()),
        (SimpleNamespace(pad_size_divisor=32, pad_value=1.5), Padding(32, value=1.5)),
        (SimpleNamespace(test_cfg=None, pad_val=0, pad_size_divisor=4), Padding()),
        (SimpleNamespace(test_cfg=dict(size_divisor=8), pad_val=2), Padding(8, value=2)),
        (SimpleNamespace(test_cfg=dict(size=(64, 96)), pad_val=0), Padding(1, (64, 96))),
    ],
)
def test_padding_of_preprocessors(preprocessor, padding):
    model = nn.Module()
    model.data_preprocessor = preprocessor
    assert padding_of(model) == padding
    assert padding.adds_pixels == (padding[:2] != (1, (1, 1)))


@pytest.mark.parametrize(
    ('divisor', 'shape_of', 'fixed'),
    [
        (1, lambda height, width: (48, 64), (48, 64)),
        (32, lambda height, width: (48, 64), (64, 64)),
        (1, lambda height, width: (height, width), None),
        (32, lambda height, width: (height, width), None),
        # Every image is padded to one size.
        (640, lambda height, width: (height, width), (640, 640)),
        # A pipeline whose crop keeps images that are smaller: not all end in its size.
        (1, lambda height, width: (64, 64) if min(height, width) > 64 else (64, 40), None),
    ],
)
def test_a_size_is_fixed_if_all_images_have_it(divisor, shape_of, fixed):
    def sample(image):
        return dict(inputs=np.zeros((3, *shape_of(*image.shape[:2]))))

    model = SimpleNamespace(data_preprocessor=SimpleNamespace(pad_size_divisor=divisor))
    trained = SimpleNamespace(
        has_pixels=True, pixels=SimpleNamespace(bands=3), sample=sample, model=model
    )
    assert sizes_of_test(trained) == InputSizes(fixed, Padding(divisor))
