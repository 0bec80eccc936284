"""Backbones of transformers: their maps, frozen stages, and errors."""

import pytest
import torch
from rejection import rejects

from vit_plugin.models import load_weights
from vit_plugin.models.protocol import Backbone
from vit_plugin.registry import MODELS
from vit_plugin.untrusted.admission import validate_untrusted

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
pytestmark = pytest.mark.filterwarnings('ignore')
DEPTHS = dict(depths=[1, 2, 1, 1])
SMALL_FIELDS = {
    'Swin': dict(embed_dim=24, num_heads=[2] * 4, image_size=64, window_size=4, **DEPTHS),
    'Swinv2': dict(embed_dim=24, num_heads=[2] * 4, image_size=64, window_size=4, **DEPTHS),
    'ConvNextV2': dict(hidden_sizes=[8, 16, 24, 32], **DEPTHS),
    'Hiera': dict(embed_dim=16, num_heads=[1] * 4, image_size=[64, 64], **DEPTHS),
    'PvtV2': dict(hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1] * 4, **DEPTHS),
    'FocalNet': dict(embed_dim=16, **DEPTHS),
    'Beit': dict(
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=64,
        use_relative_position_bias=True,
    ),
}


def folder_of(path, name):
    """Save a classifier of transformers with random weights, and return the folder."""
    torch.manual_seed(0)
    config = getattr(transformers, f'{name}Config')(**SMALL_FIELDS[name])
    model = getattr(transformers, f'{name}ForImageClassification')(config)
    for value in model.parameters():
        torch.nn.init.normal_(value, std=0.2)
    model.save_pretrained(path)
    return str(path)


def build_backbone(config, **options):
    return MODELS.build(dict(type='vit_plugin.TransformersBackbone', config=config, **options))


@pytest.mark.parametrize('name', SMALL_FIELDS)
def test_maps_equal_those_of_transformers(name, tmp_path):
    folder = folder_of(tmp_path, name)
    ours = build_backbone(folder, out_indices=(1, -1)).eval()
    report = load_weights(ours, folder)
    assert all('hidden_states_norms' in key for key in report.initialized)
    stages = list(ours.model.config.out_features)
    theirs = type(ours.model).from_pretrained(folder, out_features=stages).eval()
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        maps, their_maps = ours(images), theirs(images).feature_maps
    for level, expected, channels, stride in zip(
        maps, their_maps, ours.channels, ours.strides, strict=True
    ):
        assert torch.equal(level, expected)
        assert level.shape == (2, channels, 64 // stride, 64 // stride)
    assert isinstance(ours, Backbone)


def test_frozen_stages_do_not_train():
    entries = dict(model_type='convnextv2', **SMALL_FIELDS['ConvNextV2'])
    one_stage = build_backbone(entries, frozen_stages=1).train()
    frozen = {name for name, value in one_stage.named_parameters() if not value.requires_grad}
    assert all(name.startswith(('model.embeddings', 'model.encoder.stages.0')) for name in frozen)
    assert not one_stage.model.embeddings.training
    assert one_stage.model.encoder.stages[1].training
    all_stages = build_backbone(entries, frozen_stages='all')
    assert not any(value.requires_grad for value in all_stages.parameters())


@pytest.mark.parametrize(
    ('config', 'words'),
    [
        (dict(model_type='vit_mae'), "model_type='vit_mae' is not a transformers backbone"),
        (dict(model_type='timm_backbone', backbone='resnet18'), 'is not a transformers backbone'),
        (dict(model_type='convnextv2', magic=1), 'magic=1, which no model here computes'),
        (dict(model_type='convnextv2', auto_map={'AutoConfig': 'x.y'}), 'auto_map=.*, which no'),
        (dict(model_type='convnextv2', depths='x'), 'cannot build convnextv2 from this config'),
        ('nowhere', "config='nowhere': config.json cannot be read"),
    ],
)
def test_invalid_configs_raise(config, words):
    with rejects(words):
        build_backbone(config)


def test_attention_from_a_hub_is_ignored():
    entries = dict(model_type='convnextv2', _attn_implementation='hub/kernel', **DEPTHS)
    assert build_backbone(entries).model.config._attn_implementation != 'hub/kernel'


def test_checkpoints_may_contain_entries_but_no_address():
    entries = dict(model_type='convnextv2', hidden_act='gelu', **DEPTHS)
    backbone = dict(type='vit_plugin.TransformersBackbone', config=entries)
    model = dict(type='ImageClassifier', backbone=backbone)
    assert validate_untrusted(dict(model=model), 'x.pth')['model']['backbone'] == backbone
    backbone = dict(backbone, config='hf://ORG/NAME')
    with rejects('config'):
        validate_untrusted(dict(model=dict(model, backbone=backbone)), 'x.pth')


def test_out_index_out_of_range_raises():
    entries = dict(model_type='convnextv2', **SMALL_FIELDS['ConvNextV2'])
    with rejects('out_indices=4 is out of range: it has 4 stages, -4 to 3'):
        build_backbone(entries, out_indices=4)


def test_token_outputs_become_maps():
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2)
    images = dict(image_size=[64, 48], patch_size=[16, 16])
    backbone = build_backbone(dict(model_type='vitpose_backbone', **sizes, **images)).eval()
    assert (backbone.channels, backbone.strides) == ((32,), (16,))
    images = torch.rand(2, 3, 64, 48)
    with torch.no_grad():
        (level,), (tokens,) = backbone(images), backbone.model(images).feature_maps
    assert torch.equal(level, tokens.transpose(1, 2).reshape(2, 32, 4, 3))
