"""The comparison of features; test_pretraining.py draws and probes those of every method."""

import numpy as np
from PIL import Image

from vit_plugin.config import read_config
from vit_plugin.from_folder.feature_comparison import FeatureComparison
from vit_plugin.from_folder.pretraining import Pretraining
from vit_plugin.from_folder.request import PRETRAINING, Request
from vit_plugin.from_folder.write import write_config


def test_features_are_compared_on_the_pixels_of_the_training(tmp_path, monkeypatch):
    """Images of 12 bits are read with the window of their values."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'deep').mkdir()
    values = np.linspace(0, 4095, 256).reshape(16, 16).astype('uint16')
    for i in range(8):
        Image.fromarray(np.roll(values, i, axis=1)).save(tmp_path / f'deep/{i}.png')
    request = Request('deep', task=PRETRAINING)
    assert read_config(write_config(request)).train_pipeline[0].window == (0, 4095)
    first, *_ = FeatureComparison(Pretraining(request), 'none.pth').prepare.transforms
    assert first.window == (0, 4095)
