"""Image processors of transformers in terms of timm."""

import pytest

from vit_plugin.zoo.data_config import AUTHORS_DATA_CONFIG
from vit_plugin.zoo.transformers_processor import read_processor

FILE = dict(
    do_resize=True,
    do_normalize=True,
    image_mean=[0.485, 0.456, 0.406],
    image_std=[0.229, 0.224, 0.225],
    size=dict(height=224, width=224),
    resample=2,
)


@pytest.mark.parametrize(
    ('entries', 'expected'),
    [
        (dict(resample=1), dict(interpolation='lanczos')),
        (dict(resample=4), dict(interpolation='box')),
        (dict(resample=5), dict(interpolation='hamming')),
        (dict(resample=None), dict(interpolation='bilinear')),
        (dict(size=dict(longest_edge=512)), dict(crop_mode='border')),
        (
            dict(size=dict(shortest_edge=224), do_center_crop=False),
            dict(crop_mode='center', crop_pct=1.0),
        ),
        (
            dict(
                size=dict(height=256, width=256),
                do_center_crop=True,
                crop_size=dict(height=224, width=224),
            ),
            dict(crop_mode='squash', crop_pct=0.875),
        ),  # as DeiT's processor
        (
            dict(size=256, do_center_crop=True, crop_size=224),
            dict(crop_mode='center', crop_pct=0.875),
        ),
        (
            dict(size=dict(shortest_edge=224), crop_pct=0.875),
            dict(crop_mode='center', crop_pct=0.875),
        ),
        (dict(do_normalize=False), dict(mean=(0, 0, 0), std=(1.0, 1.0, 1.0))),
        (
            dict(rescale_factor=2 / 255),
            dict(mean=(0.2425, 0.228, 0.203), std=(0.1145, 0.112, 0.1125)),
        ),
        (dict(do_rescale=False), dict(mean=tuple(value / 255 for value in (0.485, 0.456, 0.406)))),
    ],
)
def test_each_field_changes_only_its_entry(entries, expected):
    data_config = read_processor({**FILE, **entries})
    for key, value in expected.items():
        assert data_config[key] == (value if isinstance(value, str) else pytest.approx(value))
    for key in AUTHORS_DATA_CONFIG.keys() - expected.keys() - {'mean', 'std'}:
        assert data_config[key] == AUTHORS_DATA_CONFIG[key]
    assert data_config.keys() == AUTHORS_DATA_CONFIG.keys()


@pytest.mark.parametrize(
    ('entries', 'missing'),
    [
        (dict(do_center_crop=True, crop_size=1, size=dict(shortest_edge=1_000_000)), 'crop_pct'),
        (dict(resample=9), 'interpolation'),
        (dict(image_mean=0.5), 'mean'),
    ],
)
def test_impossible_values_are_left_out(entries, missing):
    stated = read_processor({**FILE, **entries})
    assert AUTHORS_DATA_CONFIG.keys() - stated.keys() == {missing}
