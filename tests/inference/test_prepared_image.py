"""Pixels to draw are recovered from the input of the network."""

from types import SimpleNamespace

import numpy as np
import torch
from rejection import rejects

from vit_plugin.inference.prepared_image import PreparedImage, resize_to_patches, rgb_pixels


def test_rgb_pixels_undo_the_preprocessor():
    from mmpretrain.models import ClsDataPreprocessor
    from mmpretrain.structures import DataSample

    bgr = torch.arange(12, dtype=torch.uint8).reshape(3, 2, 2)
    preprocessor = ClsDataPreprocessor(mean=[10.0, 20.0, 30.0], std=[2.0, 4.0, 8.0], to_rgb=True)
    (normalized,) = preprocessor(dict(inputs=[bgr], data_samples=[DataSample()]))['inputs']
    expected = bgr.flip(0).permute(1, 2, 0).tolist()
    assert rgb_pixels(bgr).tolist() == rgb_pixels(normalized, preprocessor).tolist() == expected
    assert rgb_pixels(bgr[:1]).shape == (2, 2, 3)


def test_padding_ends_at_the_last_patch_of_the_image():
    image, inputs = np.zeros((112, 400, 3), np.uint8), torch.zeros(1, 3, 400, 400)
    # In floating-point numbers, 112 / 400 of 25 patches are more than 7.
    features = PreparedImage(image, inputs).without_padding(torch.zeros(2, 25, 25))
    assert features.shape == (2, 7, 25)


def test_an_image_is_resized_to_complete_patches():
    stem = SimpleNamespace(stride=16, in_channels=1)
    colors = np.full((40, 60, 3), 255, np.uint8)
    assert resize_to_patches(colors, 32, stem).tolist() == torch.full((1, 32, 48), 255).tolist()
    bands = np.ones((40, 10, 5), np.float32)
    assert resize_to_patches(bands, 4, SimpleNamespace(stride=8, in_channels=5)).shape == (5, 16, 8)
    with rejects(r'--img-size 4096: .* 98,304 patches, and 65,536 can be drawn; give 3344 or less'):
        resize_to_patches(colors, 4096, stem)
