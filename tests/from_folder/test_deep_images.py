"""Images of more than 8 bits are read with the window of the data, which the config states."""

import numpy as np
import pytest
from PIL import Image

from vit_plugin.config import read_config
from vit_plugin.data.images import LoadImage
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config


def ramp(low: float, high: float, dtype: str = 'uint16') -> np.ndarray:
    return np.linspace(low, high, 256).reshape(16, 16).astype(dtype)


def test_config_reads_with_the_window_in_all_splits(tmp_path):
    for i in range(8):
        path = tmp_path / 'data' / 'ab'[i % 2] / f'{i}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.roll(ramp(0, 4095), i, axis=1)).save(path)
    cfg = read_config(write_config(Request(str(tmp_path / 'data'), work_dir=str(tmp_path / 'run'))))
    for split in ('train', 'val', 'test'):
        first = cfg[f'{split}_dataloader'].dataset.pipeline[0]
        assert first == dict(type='vit_plugin.LoadImage', window=(0, 4095))


@pytest.mark.parametrize(
    ('values', 'window'),
    [
        (ramp(0, 4095), (0, 4095)),
        (ramp(33069, 36863), (33069, 36863)),
        (ramp(0, 1, 'float32'), (0, 1)),
        (ramp(0, 60000, 'int32'), (0, 65535)),
    ],
)
def test_window_maps_values_to_8_bits(tmp_path, values, window):
    Image.fromarray(values).save(tmp_path / 'a.tif')
    pixels = LoadImage(window=window).load(str(tmp_path / 'a.tif'))
    assert pixels.shape == (16, 16, 3)
    assert pixels.dtype == np.uint8
    assert pixels.max() - pixels.min() > 190
