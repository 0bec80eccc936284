"""Pixels to draw are recovered from the input of the network."""

import torch

from vit_plugin.inference.prepared_image import rgb_pixels


def test_rgb_pixels_undo_the_preprocessor():
    from mmpretrain.models import ClsDataPreprocessor
    from mmpretrain.structures import DataSample

    bgr = torch.arange(12, dtype=torch.uint8).reshape(3, 2, 2)
    preprocessor = ClsDataPreprocessor(mean=[10.0, 20.0, 30.0], std=[2.0, 4.0, 8.0], to_rgb=True)
    (normalized,) = preprocessor(dict(inputs=[bgr], data_samples=[DataSample()]))['inputs']
    expected = bgr.flip(0).permute(1, 2, 0).tolist()
    assert rgb_pixels(bgr).tolist() == rgb_pixels(normalized, preprocessor).tolist() == expected
    assert rgb_pixels(bgr[:1]).shape == (2, 2, 3)
