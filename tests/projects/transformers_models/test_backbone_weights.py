"""Weights are loaded into a backbone of transformers completely or not at all."""

import pytest
import torch
from rejection import rejects

from vit_plugin.models import load_weights
from vit_plugin.registry import MODELS

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
pytestmark = pytest.mark.filterwarnings('ignore')
CONVNEXT = dict(model_type='convnextv2', hidden_sizes=[8, 16, 24, 32], depths=[1, 2, 1, 1])


@pytest.fixture
def backbone():
    return MODELS.build(dict(type='vit_plugin.TransformersBackbone', config=CONVNEXT))


def save_classifier(name, path, **fields):
    """A folder with a classifier of transformers with random weights."""
    config = getattr(transformers, f'{name}Config')(**fields)
    getattr(transformers, f'{name}ForImageClassification')(config).save_pretrained(path)
    return str(path)


def test_weights_of_another_model_raise(backbone, tmp_path):
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    small = dict(embed_dim=24, num_heads=[2] * 4, image_size=64, window_size=4)
    folder = save_classifier('Swin', tmp_path, depths=[1, 2, 1, 1], **small)
    with rejects('does not fit TransformersBackbone .convnextv2.*under the names of transformers'):
        load_weights(backbone, folder)
    assert all(torch.equal(before[name], value) for name, value in backbone.state_dict().items())


@pytest.mark.parametrize('prefix', ['', 'backbone.model.', 'model.'])
def test_weights_may_have_the_names_of_a_detector_or_a_backbone_here(backbone, prefix):
    wanted = {name: torch.rand_like(value) for name, value in backbone.model.state_dict().items()}
    weights = {f'{prefix}{name}': value for name, value in wanted.items()}
    if prefix == 'backbone.model.':
        weights['bbox_head.weight'] = torch.zeros(1)
    report = load_weights(backbone, weights)
    assert not report.initialized
    state = backbone.model.state_dict()
    assert all(torch.equal(state[name], value) for name, value in wanted.items())
