"""Crops of the middle begin where those of transformers do."""

from importlib.util import find_spec

import numpy as np
import pytest
from mmengine.registry import TRANSFORMS

SIDES = range(12, 20)  # 0 to 7 pixels more than the crop
CROP = 12


def cropped(image: np.ndarray, size: int | tuple[int, int]) -> np.ndarray:
    crop = TRANSFORMS.build(dict(type='vit_plugin.FloorCenterCrop', crop_size=size))
    found = crop(dict(img=image))
    assert found['img_shape'] == found['img'].shape[:2]
    return found['img']


@pytest.mark.parametrize('side', SIDES)
def test_a_crop_begins_at_half_of_what_is_left_rounded_down(side):
    image = np.arange(side * 40).reshape(side, 40, 1)
    found = cropped(image, (10, CROP))
    assert found.shape == (CROP, 10, 1)
    assert found[0, 0, 0] == image[(side - CROP) // 2, 15, 0]


def test_a_smaller_side_stays():
    image = np.arange(9 * 15).reshape(9, 15, 1)
    assert np.array_equal(cropped(image, CROP), image[:, 1:13])


@pytest.mark.skipif(not find_spec('transformers'), reason='needs transformers')
@pytest.mark.parametrize('kind', ['CLIPImageProcessor', 'CLIPImageProcessorPil'])
@pytest.mark.parametrize('side', SIDES)
def test_the_pixels_are_those_of_transformers(side, kind):
    import transformers

    image = np.random.default_rng(side).integers(0, 256, (side, side + 3, 3), np.uint8)
    processor = getattr(transformers, kind)(
        do_resize=False, crop_size=CROP, do_rescale=False, do_normalize=False, do_convert_rgb=False
    )
    wanted = np.asarray(processor(image, return_tensors='np')['pixel_values'][0])
    assert np.array_equal(cropped(image, CROP).transpose(2, 0, 1), wanted)
