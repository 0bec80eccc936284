"""EoMT's weights are written with the names of its authors and of transformers, and read back."""

import pytest
import timm
import torch
from model_states import assert_same_state
from tiny_models import CENTRED, TINY_SIZES
from torch import nn

from vit_plugin.models import EoMT
from vit_plugin.weights import FORMATS, export

SIZES = dict(TINY_SIZES, patch_size=16)
# Arguments of an EoMT for each format of the authors, without `hf_`.
ENCODERS = {
    'eomt': dict(
        pos_embed=dict(prefix_rows=False), encoder=dict(reg_token=4, layer_scale_init_value=1.0)
    ),
    'eomt_dinov3': dict(
        pos_embed=CENTRED,
        encoder=dict(reg_token=4, layer_scale_init_value=1.0, qkv_bias='qv'),
    ),
}
# The authors' names of the weights of queries and head.
HEAD = {
    'q.weight',
    'attn_mask_probs',
    *(
        f'{name}.{kind}'
        for kind in ('weight', 'bias')
        for name in (
            'class_head',
            'mask_head.0',
            'mask_head.2',
            'mask_head.4',
            'upscale.0.conv1',
            'upscale.0.norm',
            'upscale.1.conv1',
            'upscale.1.norm',
        )
    ),
    'upscale.0.conv2.weight',
    'upscale.1.conv2.weight',
}


def eomt(format_name: str) -> EoMT:
    """A model with one class, two queries and one block that has queries."""
    model = EoMT(
        num_classes=1,
        num_queries=2,
        num_blocks=1,
        arch=SIZES,
        img_size=64,
        numerics='timm',
        **ENCODERS[format_name.removeprefix('hf_')],
    )
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    model.queries.set_probs([0.25])
    return model


@pytest.mark.parametrize('format_name', ['eomt', 'eomt_dinov3', 'hf_eomt', 'hf_eomt_dinov3'])
def test_exported_weights_are_read_back(format_name):
    model, other = eomt(format_name), eomt(format_name)
    exported, unexported = FORMATS[format_name].export(model.state_dict(), 2)
    assert not unexported
    if format_name.startswith('hf'):
        assert export(model.state_dict(), 'hf', 2)[2].name == format_name
    report = other.load(exported)
    assert report.format == format_name
    assert {*report.matched} == {*model.state_dict()} - {'position._extra_state'}
    assert not report.ignored
    assert_same_state(model, other)


def test_authors_names_of_the_encoder_are_those_of_timm():
    encoder = timm.create_model(
        'vit_small_patch14_reg4_dinov2',
        img_size=64,
        patch_size=16,
        num_classes=0,
        depth=2,
        embed_dim=32,
        num_heads=2,
        mlp_ratio=2,
    )
    exported, _ = FORMATS['eomt'].export(eomt('eomt').state_dict(), 2)
    assert {*exported} == {f'network.{name}' for name in HEAD} | {
        f'network.encoder.backbone.{name}' for name in encoder.state_dict()
    }
    report = eomt('eomt').load(
        {
            **exported,
            'criterion.empty_weight': torch.ones(2),
            'network.encoder.pixel_mean': torch.ones(1, 3, 1, 1),
        }
    )
    assert {*report.ignored} == {'criterion.empty_weight', 'network.encoder.pixel_mean'}


@pytest.mark.filterwarnings('ignore')
def test_authors_names_of_dinov3_are_those_of_transformers():
    transformers = pytest.importorskip('transformers', minversion='5')
    theirs = transformers.DINOv3ViTModel(
        transformers.DINOv3ViTConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=64,
            patch_size=16,
            num_register_tokens=4,
            intermediate_size=64,
        )
    )
    exported, _ = FORMATS['eomt_dinov3'].export(eomt('eomt_dinov3').state_dict(), 2)
    names = {
        key.replace('embeddings.', 'patch_embed.', 1).replace('model.layer.', 'blocks.')
        for key in theirs.state_dict()
        if key != 'embeddings.mask_token'
    }
    names = {key.replace('patch_patch_embed.', 'patch_embeddings.') for key in names}
    exported_names = (
        key.removeprefix('network.encoder.backbone.') for key in exported if '.backbone.' in key
    )
    assert {*exported_names} == names
