"""Pixels to draw are recovered from the input of the network."""

import numpy as np
import torch

from vit_plugin.inference.prepared_image import PreparedImage, rgb_pixels


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
