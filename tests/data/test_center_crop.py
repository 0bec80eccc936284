"""Center crops begin at the same pixel as those of transformers."""

from importlib.util import find_spec

import numpy as np
import pytest
from mmengine.registry import TRANSFORMS

CROP = 12
SIDES = range(CROP, CROP + 8)


def cropped(image: np.ndarray, size: int | tuple[int, int]) -> np.ndarray:
    crop = TRANSFORMS.build(dict(type='vit_plugin.FloorCenterCrop', crop_size=size))
    results = crop(dict(img=image))
    assert results['img_shape'] == results['img'].shape[:2]
    return results['img']


@pytest.mark.parametrize('side', SIDES)
def test_the_offset_of_a_crop_is_rounded_down(side):
    image = np.arange(side * 40).reshape(side, 40, 1)
    crop = cropped(image, (10, CROP))
    assert crop.shape == (CROP, 10, 1)
    assert crop[0, 0, 0] == image[(side - CROP) // 2, 15, 0]


def test_a_side_smaller_than_the_crop_is_not_cropped():
    image = np.arange(9 * 15).reshape(9, 15, 1)
    assert np.array_equal(cropped(image, CROP), image[:, 1:13])


@pytest.mark.skipif(not find_spec('transformers'), reason='needs transformers')
@pytest.mark.parametrize('processor_class', ['CLIPImageProcessor', 'CLIPImageProcessorPil'])
@pytest.mark.parametrize('side', SIDES)
def test_crops_equal_those_of_transformers(side, processor_class):
    import transformers

    image = np.random.default_rng(side).integers(0, 256, (side, side + 3, 3), np.uint8)
    processor = getattr(transformers, processor_class)(
        do_resize=False, crop_size=CROP, do_rescale=False, do_normalize=False, do_convert_rgb=False
    )
    expected = np.asarray(processor(image, return_tensors='np')['pixel_values'][0])
    assert np.array_equal(cropped(image, CROP).transpose(2, 0, 1), expected)
