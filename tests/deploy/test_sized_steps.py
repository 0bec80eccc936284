"""Images are resized, cropped and padded to the size of a file."""

from types import SimpleNamespace

import mmpretrain.datasets  # noqa: F401  registers the transforms
import numpy as np
import pytest
from mmengine.registry import TRANSFORMS, DefaultScope
from timm.data import create_transform

from vit_plugin.deploy.input_sizes import InputSizes, Padding
from vit_plugin.deploy.pipeline_steps import steps_of
from vit_plugin.deploy.pixel_steps import apply_steps, size_after
from vit_plugin.deploy.sized_steps import adapt_to_size, last_resize, size_of_training

# (width, height): landscape, portrait, square, tiny, long, and odd differences.
SHAPES = [(160, 96), (96, 160), (100, 100), (9, 7), (300, 20), (61, 64), (63, 40)]


def photograph(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(width).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('padding', [Padding(32), Padding(1, (90, 70)), Padding(20), Padding()])
def test_images_are_padded_like_the_preprocessor(shape, padding):
    """By no more pixels, and with a fill that is not rounded to integers."""
    resize = TRANSFORMS.build(dict(type='Resize', scale=(128, 80), keep_ratio=True))
    expected = resize(dict(img=photograph(*shape)))['img']
    fill = [103.53, 116.28, 123.675]
    steps = adapt_to_size(steps_of([resize]), InputSizes(None, padding), fill)
    placed = apply_steps(steps, photograph(*shape))
    height, width = placed.unpadded_size
    assert placed.pixels.shape[:2] == padding.padded_size((height, width))
    assert np.array_equal(placed.pixels[:height, :width], expected)
    for outside in (placed.pixels[height:], placed.pixels[:, width:]):
        np.testing.assert_allclose(outside, np.broadcast_to(fill, outside.shape), rtol=1e-6)
    np.testing.assert_allclose(placed.scale * shape, (width, height))


def test_a_file_of_one_size_pads_to_it_and_others_to_a_unit():
    fill = [1.0, 2.0, 3.0]
    resize = dict(resize=['exact', 90, 60], interpolation='bilinear', backend='cv2')
    *_, pad = adapt_to_size([resize], InputSizes((64, 96), Padding(32)), fill)
    assert pad == dict(pad=[96, 64], fill=fill)
    *_, pad = adapt_to_size([resize], InputSizes(None, Padding(32)), fill)
    assert pad == dict(pad=[1, 1], unit=32, fill=fill)


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize(
    ('pipeline', 'covers'),
    [
        ([dict(type='ResizeEdge', scale=72), dict(type='CenterCrop', crop_size=64)], True),
        ([dict(type='Resize', scale=(128, 80), keep_ratio=True)], False),
    ],
)
def test_a_size_that_differs_from_the_pipelines(pipeline, covers, shape):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        steps = steps_of([TRANSFORMS.build(step) for step in pipeline])
    sizes = InputSizes((32, 48), from_test_pipeline=False)
    placed = apply_steps(adapt_to_size(steps, sizes, [0] * 3), photograph(*shape))
    assert placed.pixels.shape == (32, 48, 3)
    # A pipeline with a crop scales images to cover the size, others to fit into it.
    assert (placed.scale * shape >= (47, 31)).all() == covers
    assert (last_resize(steps)[0] == 'scale') is not covers


@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_a_size_that_differs_from_timms_target(shape):
    """The image is scaled to the new target, of which the last argument is no side."""
    transform = create_transform(
        (3, 64, 64), crop_pct=0.9, crop_mode='border', interpolation='bicubic', normalize=False
    )
    sizes = InputSizes((32, 48), from_test_pipeline=False)
    steps = adapt_to_size(steps_of(transform.transforms), sizes, [0] * 3)
    placed = apply_steps(steps, photograph(*shape))
    assert placed.pixels.shape == (32, 48, 3)
    assert (placed.scale * shape >= (47, 31)).any()


@pytest.mark.parametrize('resize', [['target', 144, 288, 0], ['exact', 144, 288]])
def test_a_crop_of_a_portrait_keeps_its_share(resize):
    sizes = InputSizes((64, 32), from_test_pipeline=False)
    steps = [dict(resize=resize), dict(crop=[128, 256])]
    resized, cropped = adapt_to_size(steps, sizes, [0] * 3)
    assert resized['resize'][1:3] == [36, 72]
    assert cropped['crop'] == [32, 64]


def test_steps_before_the_resize_of_a_crop_are_kept():
    sizes = InputSizes((32, 32), from_test_pipeline=False)
    steps = [dict(dtype='float32'), dict(resize=['edge', 'short', 72]), dict(crop=[64, 64])]
    first, resized, cropped = adapt_to_size(steps, sizes, [0] * 3)
    assert first == dict(dtype='float32')
    assert (resized['resize'], cropped['crop']) == (['target', 36, 36, 0], [32, 32])


def test_a_crop_without_a_resize_is_resized_to_another_size():
    sizes = InputSizes((32, 48), from_test_pipeline=False)
    crop, resize = adapt_to_size([dict(crop=[64, 64])], sizes, [0] * 3)
    assert (crop['crop'], resize['resize']) == ([64, 64], ['exact', 48, 32])


@pytest.mark.parametrize(
    ('scale', 'img_size', 'unit', 'size'),
    [
        ((192, 144), (144, 192), 32, (160, 192)),
        ((1333, 800), (224, 224), 32, (800, 1344)),
        ((2048, 512), (512, 512), 1, (512, 512)),  # the longer side is open
        (None, (100, 50), 1, (112, 64)),
    ],
)
def test_an_open_test_size_is_replaced_by_the_training_size(scale, img_size, unit, size):
    steps = [dict(resize=['scale', *scale])] if scale else []
    backbone = SimpleNamespace(img_size=img_size, strides=(16,))
    sizes = InputSizes(None, Padding(unit))
    assert size_of_training(steps, sizes, SimpleNamespace(backbone=backbone)) == size


@pytest.mark.parametrize(
    ('scale', 'size', 'width', 'height', 'expected'),
    [
        # The same as in the pipeline, except for the padding.
        ((192, 144), (160, 192), 640, 480, (192, 144)),
        ((192, 144), (160, 192), 500, 500, (144, 144)),
        ((192, 144), (160, 192), 640, 320, (192, 96)),
        # A portrait is scaled down to fit.
        ((192, 144), (160, 192), 480, 640, (120, 160)),
        # A file of another size changes the scale.
        ((192, 144), (288, 384), 500, 500, (288, 288)),
        ((192, 144), (96, 96), 640, 480, (96, 72)),
        # An open scale sets the shorter side, if the longer one fits.
        ((2048, 512), (512, 768), 600, 512, (600, 512)),
        ((2048, 512), (512, 512), 1024, 512, (512, 256)),
    ],
)
def test_images_are_fitted_into_a_file_of_one_size(scale, size, width, height, expected):
    steps = [dict(resize=['scale', *scale], interpolation='bilinear', backend='cv2')]
    resize, pad = adapt_to_size(
        steps, InputSizes(size, Padding(32), from_test_pipeline=False), [7.0] * 3
    )
    assert size_after(resize, width, height) == expected
    assert size_after(pad, *expected) == size[::-1]


def test_images_are_stretched_once():
    """A resize to the size of the test, and then to that of the file, would blur them."""
    resize = dict(interpolation='bicubic', backend='pillow')
    steps = [dict(dtype='float32'), dict(resize=['exact', 32, 32], **resize)]
    sizes = InputSizes((64, 48), from_test_pipeline=False)
    assert adapt_to_size(steps, sizes, [0] * 3) == [
        dict(dtype='float32'),
        dict(resize=['exact', 48, 64], **resize),
    ]
