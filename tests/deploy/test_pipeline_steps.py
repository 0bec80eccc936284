"""The pixels of an exported file are bit-identical to those of the pipeline."""

import json
from types import SimpleNamespace

import mmdet.datasets.transforms  # noqa: F401  registers the transforms
import mmpretrain.datasets  # noqa: F401
import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import TRANSFORMS, DefaultScope
from PIL import Image
from rejection import rejects
from timm.data import create_transform

from vit_plugin.deploy.input_sizes import InputSizes, Padding, sizes_of_test
from vit_plugin.deploy.pipeline_steps import (
    adapt_to_size,
    facts_of,
    fill_of,
    last_resize,
    pixel_steps_of,
    reading_steps,
    size_of_training,
    steps_of,
)
from vit_plugin.deploy.pixel_steps import apply_steps, size_after
from vit_plugin.inference.image_transforms import PipelineTransform
from vit_plugin.tasks.detection.box_prediction import BoxPrediction

# (width, height): landscape, portrait, square, tiny, long, and odd differences.
SHAPES = [(160, 96), (96, 160), (100, 100), (9, 7), (300, 20), (61, 64), (63, 40)]
PILLOW = dict(backend='pillow', interpolation='bicubic')


def photograph(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(width).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize(
    'pipeline',
    [
        [
            dict(type='ResizeEdge', scale=72, edge='short', **PILLOW),
            dict(type='CenterCrop', crop_size=64),
        ],
        [dict(type='ResizeEdge', scale=72, edge='long'), dict(type='CenterCrop', crop_size=64)],
        [dict(type='Resize', scale=(64, 64), **PILLOW)],
        [
            dict(type='Resize', scale=(72, 80), interpolation='area'),
            dict(type='CenterCrop', crop_size=(64, 48)),
        ],
        [dict(type='Resize', scale=(128, 80), keep_ratio=True)],
        [dict(type='mmdet.Resize', scale=(80, 128), keep_ratio=True)],
        [dict(type='CenterCrop', crop_size=64)],
        [dict(type='vit_plugin.FloorCenterCrop', crop_size=64)],
        [
            dict(type='ResizeEdge', scale=67),
            dict(type='vit_plugin.FloorCenterCrop', crop_size=(64, 48)),
        ],
    ],
)
@pytest.mark.filterwarnings('ignore')
def test_steps_equal_the_transforms_of_the_frameworks(pipeline, shape):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        transforms = [TRANSFORMS.build(step) for step in pipeline]
    expected = dict(img=photograph(*shape))
    for transform in transforms:
        expected = transform(expected)
    placed = apply_steps(steps_of(transforms), photograph(*shape))
    assert np.array_equal(placed.pixels, expected['img'])


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('mode', ['center', 'squash', 'border'])
@pytest.mark.parametrize('interpolation', ['bilinear', 'bicubic', 'lanczos'])
@pytest.mark.parametrize('size', [64, (64, 48)])
def test_steps_equal_the_transforms_of_timm(mode, interpolation, size, shape):
    height, width = (size, size) if isinstance(size, int) else size
    transform = create_transform(
        (3, height, width),
        crop_pct=0.9,
        crop_mode=mode,
        interpolation=interpolation,
        normalize=False,
    )
    image = photograph(*shape)
    expected = transform(Image.fromarray(image[..., ::-1].copy())).numpy()[::-1].transpose(1, 2, 0)
    placed = apply_steps(
        adapt_to_size(steps_of(transform.transforms), InputSizes((height, width)), [0] * 3), image
    )
    assert np.array_equal(placed.pixels, expected)


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


def test_the_fill_is_normalized_to_the_pad_value():
    from mmengine.model import ImgDataPreprocessor

    pixels = dict(mean=[1.0, 2.0, 3.0], std=[4.0, 5.0, 6.0])
    assert fill_of(ImgDataPreprocessor(**pixels, bgr_to_rgb=True)) == [3.0, 2.0, 1.0]
    assert fill_of(ImgDataPreprocessor(**pixels, pad_value=0.5)) == [3.0, 4.5, 6.0]
    assert fill_of(ImgDataPreprocessor(pad_value=7)) == [7.0] * 3


def test_steps_of_reading_are_those_of_the_pipeline_or_raise():
    def steps(**options):
        pipeline = [dict(type='vit_plugin.LoadImage', **options), dict(type='PackInputs')]
        loader = dict(dataset=dict(pipeline=pipeline))
        cfg = Config(dict(model=dict(backbone={}), test_dataloader=loader))
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            return reading_steps(PipelineTransform(cfg))

    assert steps() == []
    (step,) = steps(to_float32=True)
    assert apply_steps([step], photograph(3, 2)).pixels.dtype == np.float32
    with rejects("imdecode_backend='pillow'.*leave them at 'color'"):
        steps(imdecode_backend='pillow')
    with rejects('reads a window of values'):
        steps(window=(0, 4095))


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


def test_scale_and_offset_locate_points_of_the_image():
    image = np.zeros((100, 160, 3), np.uint8)
    image[40:44, 60:64] = 255
    steps = [
        dict(resize=['edge', 'short', 200], interpolation='bilinear', backend='pillow'),
        dict(crop=[150, 150]),
        dict(crop=[200, 200], fill=0),
    ]
    pixels, scale, offset, _ = apply_steps(steps, image)
    x, y = np.array((62, 42)) * scale + offset
    assert pixels[round(y), round(x)].min() > 200


def test_unsupported_steps_raise():
    for step in (
        dict(type='RandomFlip', prob=0.5),
        dict(type='CenterCrop', crop_size=8, auto_pad=True),
    ):
        with rejects(f'its pipeline has {step["type"]}, which an ONNX file cannot do'):
            steps_of([TRANSFORMS.build(step)])


def test_images_are_stretched_without_a_pipeline():
    trained = SimpleNamespace(
        classes=['cat'],
        prediction_class=BoxPrediction,
        slices=None,
        training_size=(8, 12),
        has_pixels=False,
        model=SimpleNamespace(
            backbone=SimpleNamespace(img_size=(8, 12)),
            data_preprocessor=SimpleNamespace(
                to_rgb=True,
                mean=np.array([1.0, 2.0, 3.0]).reshape(3, 1, 1),
                std=np.ones((3, 1, 1)),
            ),
        ),
    )
    facts = json.loads(facts_of(trained, sizes_of_test(trained), pixel_steps_of(trained)))
    assert facts == dict(
        classes=['cat'],
        multi_label=False,
        align_corners=False,
        usual=[8, 12],
        rgb=True,
        patch=1,
        steps=[dict(resize=['exact', 12, 8], interpolation='bilinear', backend='cv2')],
    )
