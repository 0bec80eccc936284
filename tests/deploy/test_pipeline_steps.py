"""The pixels of an exported file are bit-identical to those of the pipeline."""

import json
from types import SimpleNamespace

import mmdet.datasets.transforms  # noqa: F401  registers the transforms
import mmpretrain.datasets
import mmpretrain.models
import numpy as np
import pages
import pytest
from mmengine.config import Config
from mmengine.registry import TRANSFORMS, DefaultScope
from PIL import Image
from rejection import rejects
from timm.data import create_transform
from torchvision import transforms

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
from vit_plugin.projects.mmengine_alone import cls_heads
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


def test_a_file_of_one_size_pads_to_it_and_others_to_a_unit():
    fill = [1.0, 2.0, 3.0]
    resize = dict(resize=['exact', 90, 60], interpolation='bilinear', backend='cv2')
    *_, pad = adapt_to_size([resize], InputSizes((64, 96), Padding(32)), fill)
    assert pad == dict(pad=[96, 64], fill=fill)
    *_, pad = adapt_to_size([resize], InputSizes(None, Padding(32)), fill)
    assert pad == dict(pad=[1, 1], unit=32, fill=fill)


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize(
    'steps',
    [
        [dict(pad=[1, 1], unit=32, fill=[1.5, 2.0, 3.0])],
        [dict(crop=[64, 48], fill=[1, 2, 3])],
        [dict(crop=[64, 48], rounding='floor')],
        [
            dict(dtype='float32'),
            dict(resize=['scale', 64, 48], interpolation='bilinear', backend='cv2'),
        ],
        [dict(resize=['target', 64, 48, 1], interpolation='bicubic', backend='pillow')],
    ],
)
def test_the_program_in_the_docs_applies_each_step(steps, shape):
    pytest.importorskip('onnxruntime')
    program = next(pages.blocks('docs/deployment.md', 'python')).text
    names: dict = {}
    exec(program.partition('\nfile, ')[0], names)  # only its functions
    pixels, size = names['prepared'](photograph(*shape), steps)
    placed = apply_steps(steps, photograph(*shape))
    assert np.array_equal(pixels, placed.pixels)
    assert size == placed.unpadded_size


def test_the_fill_is_normalized_to_the_pad_value():
    from mmengine.model import ImgDataPreprocessor

    pixels = dict(mean=[1.0, 2.0, 3.0], std=[4.0, 5.0, 6.0])
    assert fill_of(ImgDataPreprocessor(**pixels, bgr_to_rgb=True)) == [3.0, 2.0, 1.0]
    assert fill_of(ImgDataPreprocessor(**pixels, pad_value=0.5)) == [3.0, 4.5, 6.0]
    assert fill_of(ImgDataPreprocessor(pad_value=7)) == [7.0] * 3
    assert fill_of(ImgDataPreprocessor(pad_value=7), channels=5) == [7.0] * 5


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
    assert steps(window=None, ignore_empty=True) == []
    with rejects("LoadImage has imdecode_backend='pillow', with which"):
        steps(imdecode_backend='pillow')
    with rejects('reads a window of values'):
        steps(window=(0, 4095))
    reader = SimpleNamespace(transforms=[object()])
    with rejects('its reader is object, with which an ONNX file reads no images'):
        reading_steps(SimpleNamespace(custom_reader=reader))


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
        dict(type='Resize', scale_factor=0.5),
    ):
        with rejects(f'its pipeline has {step["type"]}, which an ONNX file cannot do'):
            steps_of([TRANSFORMS.build(step)])


def test_resizes_of_torchvision_keep_their_meaning():
    def resize(*arguments, **options) -> list:
        (step,) = steps_of([transforms.Resize(*arguments, **options)])
        return step['resize']

    assert resize(64) == resize([64]) == ['edge', 'short', 64]
    assert resize([48, 64]) == ['exact', 64, 48]
    with rejects('its pipeline has Resize, which an ONNX file cannot do'):
        resize(64, max_size=80)


def facts_without_a_pipeline(**components) -> dict:
    """The metadata of a model with these components, whose test pipeline is unknown."""
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
            **components,
        ),
    )
    return json.loads(facts_of(trained, sizes_of_test(trained), pixel_steps_of(trained)))


def test_images_are_stretched_without_a_pipeline():
    facts = facts_without_a_pipeline()
    assert facts == dict(
        classes=['cat'],
        multi_label=False,
        align_corners=False,
        usual=[8, 12],
        rgb=True,
        patch=1,
        steps=[dict(resize=['exact', 12, 8], interpolation='bilinear', backend='cv2')],
    )


@pytest.mark.parametrize(
    ('kind', 'multi_label'),
    [
        (mmpretrain.models.LinearClsHead, False),
        (mmpretrain.models.MultiLabelLinearClsHead, True),
        (cls_heads.LinearClsHead, False),
        (cls_heads.MultiLabelLinearClsHead, True),
    ],
)
def test_heads_of_several_labels_are_known_with_and_without_mmpretrain(kind, multi_label):
    facts = facts_without_a_pipeline(head=kind.__new__(kind))  # only its class matters
    assert facts['multi_label'] is multi_label
