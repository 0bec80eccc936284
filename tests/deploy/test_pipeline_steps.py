"""The pixels of an exported file are bit-identical to those of the pipeline."""

from types import SimpleNamespace

import mmdet.datasets.transforms  # noqa: F401  registers the transforms
import numpy as np
import pages
import pytest
from mmengine.config import Config
from mmengine.registry import TRANSFORMS, DefaultScope
from PIL import Image
from rejection import rejects
from timm.data import create_transform
from torchvision import transforms

from vit_plugin.deploy.input_sizes import InputSizes
from vit_plugin.deploy.pipeline_steps import reading_steps, steps_of
from vit_plugin.deploy.pixel_steps import apply_steps
from vit_plugin.deploy.sized_steps import adapt_to_size
from vit_plugin.inference.image_transforms import PipelineTransform

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
