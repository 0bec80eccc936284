"""A checkpoint of each family of models is loaded with the config in it, and predicts."""

import numpy as np
import pytest

pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
from benchmarks import exported_families
from vit_plugin.inference.load import load

STRETCH = exported_families.TestSettings([dict(type='Resize', scale=(64, 64), keep_ratio=False)])


@pytest.mark.filterwarnings('ignore')  # of the frameworks' heads
@pytest.mark.parametrize('family', exported_families.FAMILIES)
def test_the_model_is_built_and_predicts(tmp_path, family):
    model = load(exported_families.save(family, STRETCH, tmp_path / 'epoch_1.pth'), device='cpu')
    prediction = model(np.random.default_rng(0).integers(0, 256, (48, 80, 3), np.uint8))
    assert len(prediction.names) == len(prediction.scores)
