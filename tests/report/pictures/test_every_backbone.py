"""Each registered backbone can be drawn and probed, also one whose forward differs.

A backbone that is no :class:`VisionTransformer` inside is rejected with one sentence.
"""

import math

import pytest
import torch
from mmengine.registry import MODELS
from rejection import rejects
from tiny_models import TINY, TINY_SIZES, randomize
from torch import nn

from benchmarks.dense_probing import maps_at
from vit_plugin.models.layers.attention import Attention
from vit_plugin.models.loading import find_backbone
from vit_plugin.registry import MODELS as OURS
from vit_plugin.report.pictures import (
    attention_distances,
    attention_rollout,
    attention_weights,
    class_activation,
    class_attention,
    patch_features,
    position_similarity,
)

MASKS = dict(arch=TINY, num_classes=3, num_queries=4, num_blocks=1)
WINDOWS = dict(window=dict(size=3, global_blocks=(1,)))  # a grid of 4 x 4 patches is padded
BACKBONES = {
    'VisionTransformer': dict(arch=TINY),
    'WindowedViT': dict(arch=TINY, encoder=WINDOWS),
    'EoMT': MASKS,
    'PMT': dict(MASKS, norm_cfg=dict(type='BN')),
    'MAEViT': dict(arch=TINY),
    'SimMIMViT': dict(arch=TINY),
    'IBOTViT': dict(arch=TINY),
    **{
        f'MM{name}': dict(arch=TINY_SIZES, patch_size=8)
        for name in ('VisionTransformer', 'DistilledVisionTransformer', 'DeiT3', 'ViTEVA02')
    },
    'MMMoCoV3ViT': dict(arch=TINY_SIZES, patch_size=8, frozen_stages=0),
    'ViTAdapter': dict(
        backbone=dict(arch=TINY, img_size=32),
        interactions=2,
        norm_cfg=dict(type='BN'),
        attention=dict(num_heads=2),
    ),
    'TimmBackbone': dict(model_name='vit_tiny_patch16_224'),
    'FrozenResNet': dict(depth=18),
    'HGNetV2': {},
    'ResNetD': dict(depth=18),
    'ECViT': dict(arch=TINY),
    'SpatialTuningAdapter': dict(arch=dict(TINY, num_layers=3), out_indices=(0, 1, 2)),
}
CNNS = ('FrozenResNet', 'HGNetV2', 'ResNetD')


def random_backbone(name: str, **kwargs: object) -> nn.Module:
    size = {} if name in ('ViTAdapter', *CNNS) else dict(img_size=32)
    model = MODELS.build(dict(BACKBONES[name], type=f'vit_plugin.{name}', **size, **kwargs))
    return randomize(model, std=0.2)


@pytest.mark.parametrize('name', BACKBONES)
def test_each_backbone_is_drawn_and_probed(name):
    model, images = random_backbone(name), torch.randn(2, 3, 32, 32)
    if name in ('TimmBackbone', *CNNS):  # computed by other libraries, or no ViT
        with rejects('one vit_plugin.VisionTransformer is needed'):
            patch_features(model, images)
        return
    features, backbone = patch_features(model, images), find_backbone(model)[1].eval()
    assert features.shape == (2, 32, 4, 4)
    blocks = len(backbone.blocks)
    assert class_attention(model, images).shape == (2, blocks, 2, 4, 4)
    rollout = attention_rollout(model, images)
    assert rollout.shape == (2, blocks, 4, 4)
    if name != 'WindowedViT':  # its first block is not global
        assert (rollout > 0).all()
    assert (rollout[:, 1] > 0).all()
    assert (attention_distances(model, images) > 0).all()
    assert position_similarity(model).shape == (4, 4, 4, 4)
    # The features of the last block that probing reads, which are stored in half precision.
    last = [*maps_at(backbone, images[:1], (1, len(backbone.blocks)))][-1]
    torch.testing.assert_close(
        torch.tensor(last).float(), features[0].permute(1, 2, 0), atol=4e-3, rtol=4e-3
    )


def test_all_registered_backbones_are_tested():
    # TransformersBackbone needs transformers, and computes with its modules. A backbone is a class
    # with the method no_weight_decay.
    names = {*OURS.module_dict, *OURS.lazy_modules} - {'TransformersBackbone'}
    assert {name for name in names if hasattr(OURS.get(name), 'no_weight_decay')} == {*BACKBONES}


def test_features_of_windows_equal_the_feature_map():
    model, images = random_backbone('WindowedViT').eval(), torch.randn(2, 3, 40, 24)
    torch.testing.assert_close(patch_features(model, images), model(images)[-1])


def test_weights_of_windows_times_values_equal_the_layers_output():
    model, images = random_backbone('WindowedViT'), torch.randn(2, 3, 32, 32)
    calls = []
    for layer in (module for module in model.modules() if isinstance(module, Attention)):
        layer.register_forward_hook(lambda layer, args, out: calls.append((layer, args[0], out)))
    weights = attention_weights(model, images)
    for layer_weights, (layer, x, output) in zip(weights, calls, strict=True):
        assert layer_weights.shape[-1] == x.shape[1] == 4 + 16  # a class token for each window
        sums = layer_weights.sum(dim=-1)
        values = layer.qkv(x).chunk(3, dim=-1)[2].unflatten(-1, (2, -1)).transpose(1, 2)
        if layer is model.blocks[1].attn:
            torch.testing.assert_close(sums, torch.ones_like(sums))
            torch.testing.assert_close(
                layer.output(layer_weights @ values), output, atol=1e-5, rtol=1e-4
            )
        else:  # the first window is full; the others have padding, whose weights are left out
            full = [0, *(4 + 4 * row + column for row in range(3) for column in range(3))]
            torch.testing.assert_close(sums[..., full], torch.ones_like(sums[..., full]))
            assert (sums[..., 1:4] < 1).all()
            torch.testing.assert_close(
                layer.output(layer_weights @ values)[:, full], output[:, full], atol=1e-5, rtol=1e-4
            )


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', ['WindowedViT', 'MMVisionTransformer'])
def test_class_activation_of_feature_maps(name):
    import mmpretrain.models  # noqa: F401

    model = MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=dict(
                BACKBONES[name], type=f'vit_plugin.{name}', img_size=32, out_type='featmap'
            ),
            neck=dict(type='mmpretrain.GlobalAveragePooling'),
            head=dict(type='mmpretrain.LinearClsHead', num_classes=3, in_channels=32),
        )
    )
    randomize(model, std=0.2)
    maps, _ = class_activation(model, torch.randn(2, 3, 32, 32))
    assert maps.shape == (2, 32, 32)
    assert math.isclose(maps.amax(), 1, rel_tol=1e-5)
