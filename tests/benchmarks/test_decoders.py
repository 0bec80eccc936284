"""The comparison of decoders, with half a second of training for each."""

import vit_plugin.detection  # noqa: F401  isort: skip  must be imported before mmdet

import pytest
import torch

pytest.importorskip('mmseg')
from benchmarks.decoders import build, decoders, format_scores, quality, scenes, train
from benchmarks.defaults import SMALL

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.mark.nightly
@pytest.mark.parametrize(
    'name',
    [
        'TransUNet',
        'SegFormer',
        'UPerNet',
    ],
)
def test_decoders_train_and_are_scored(name):
    data = scenes(4, validation=False, **SMALL)
    torch.manual_seed(0)
    model = build(decoders()[name])
    assert train(model, data, 0.5, seed=0) > 0
    scores = quality(model, data[:1])
    assert len(scores) == 3
    assert 0 <= scores[0] <= 100


def test_scores_are_printed_with_mean_and_deviation():
    assert format_scores([(1.0, 2.0, 3.0), (3.0, 2.0, 3.0)]).startswith('mIoU 2.0 ± 1.4, mDice 2.0')


@pytest.mark.parametrize('name', decoders())
def test_logits_have_the_size_of_the_image_or_half_of_it(name):
    model = build(decoders()[name]).eval()
    with torch.no_grad():
        logits = model(torch.randn(1, 3, 192, 256), mode='tensor')
    assert logits.shape[2:] == ((192, 256) if 'TransUNet' in name else (96, 128))
