"""Settings of an image processor become steps of a pipeline, or raise."""

import pytest
from rejection import rejects

from vit_plugin.weights.processor_pixels import processor_pixels

BILINEAR = dict(interpolation='bilinear', backend='pillow')
BICUBIC = dict(interpolation='bicubic', backend='pillow')
CROP = dict(type='vit_plugin.FloorCenterCrop', crop_size=(224, 224))


def edge(side):
    return dict(type='ResizeEdge', scale=side, edge='short', **BICUBIC)


@pytest.mark.parametrize(
    ('content', 'steps'),
    [
        (
            dict(image_processor_type='ViTImageProcessor'),
            [dict(type='Resize', scale=(224, 224), **BILINEAR)],
        ),
        (
            dict(image_processor_type='ViTImageProcessorFast', size=384, resample=3),
            [dict(type='Resize', scale=(384, 384), **BICUBIC)],
        ),
        (
            dict(image_processor_type='ViTImageProcessor', size=[224, 256]),
            [dict(type='Resize', scale=(256, 224), **BILINEAR)],
        ),
        (dict(feature_extractor_type='CLIPFeatureExtractor', size=224), [edge(224), CROP]),
        (
            dict(image_processor_type='BitImageProcessor', size=dict(shortest_edge=256)),
            [edge(256), CROP],
        ),
        (
            dict(
                image_processor_type='ConvNextImageProcessor',
                size=dict(shortest_edge=224),
                crop_pct=0.875,
            ),
            [edge(256), CROP],
        ),
        (
            dict(image_processor_type='ConvNextImageProcessor'),
            [dict(type='Resize', scale=(384, 384), **BICUBIC)],
        ),
        (dict(image_processor_type='ViTImageProcessor', do_resize=False), []),
    ],
)
def test_resizes_and_crops_become_steps(content, steps):
    assert processor_pixels(content, 'ViT', (224, 224))[0] == steps


@pytest.mark.parametrize(
    ('content', 'mean', 'std'),
    [
        (dict(image_mean=[0.485] * 3, image_std=[0.2] * 3), 123.675, 51.0),
        (dict(do_normalize=False), 0.0, 255.0),
        (dict(do_rescale=False), 0.5, 0.5),
        (dict(rescale_factor=1 / 127.5, image_mean=[1, 1, 1], image_std=[1, 1, 1]), 127.5, 127.5),
    ],
)
def test_normalization_becomes_mean_and_std(content, mean, std):
    normalization = processor_pixels(content, 'ViT', (224, 224))[1]
    assert normalization == dict(mean=[mean] * 3, std=[std] * 3)


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (dict(do_pad=True), 'do_pad=True, and models here compute None or False'),
        (dict(image_processor_type='SamImageProcessor'), "'SamImageProcessor', and known are ViT"),
        (dict(size=dict(longest_edge=9)), "size={'longest_edge': 9}, where height and width or"),
        (dict(size=[224]), 'size=.224., where height and width or'),
        (dict(size=[224, 256, 3]), 'size=.224, 256, 3., where height and width or'),
        (dict(resample=9), 'resample=9'),
        (dict(do_flip_channel_order=True), 'do_flip_channel_order=True, which no model here'),
        (dict(do_center_crop=True, crop_size=256), 'crop_size=256 and size='),
        (dict(image_std=[0, 0, 0]), 'image_std=.0, 0, 0.'),
    ],
)
def test_unsupported_settings_raise(content, words):
    with rejects(words):
        processor_pixels(content, 'ViT', (224, 224))


def test_without_settings_images_are_resized_to_the_models_size(caplog):
    steps, _ = processor_pixels({}, 'CLIP', (64, 96))
    assert steps == [dict(type='Resize', scale=(96, 64), **BICUBIC)]
