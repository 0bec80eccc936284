"""Training on a name or a folder of timm that needs a TimmBackbone, not a VisionTransformer."""

import pytest
from rejection import rejects

from vit_plugin.from_folder.starting_point import StartingPoint
from vit_plugin.projects.timm_models.wrapped_timm import timm_arguments


@pytest.mark.parametrize(
    ('name', 'config', 'arguments'),
    [
        ('timm://convnext_atto.d2_in1k', {}, dict(model_name='convnext_atto.d2_in1k')),
        ('timm://vit_tiny_patch16_224', {}, {}),
        ('timm://nothing', {}, {}),
        ('R50+B/16', {}, {}),
        ('', dict(architecture='convnext_atto'), dict(model_name='convnext_atto')),
        (
            '',
            dict(
                architecture='convnext_atto',
                model_args=dict(num_classes=2, in_chans=3, drop_rate=0.1),
            ),
            dict(model_name='convnext_atto'),
        ),
        ('', dict(model_type='vit'), {}),
    ],
)
def test_only_models_that_vision_transformer_does_not_compute_are_wrapped(name, config, arguments):
    assert timm_arguments(name, config) == arguments


def test_other_model_args_of_a_folder_raise():
    with rejects('model_args=.*depths'):
        timm_arguments('', dict(architecture='convnext_atto', model_args=dict(depths=[1, 1, 1, 1])))


def test_timm_name_is_a_starting_point():
    start = StartingPoint('timm://convnext_atto', None, (0, 64))
    arguments = start.for_size(start.backbone(64), (64, 96), sizes_vary=True)
    assert arguments == dict(type='vit_plugin.TimmBackbone', model_name='convnext_atto')
    assert start.build_meta_backbone(0, out_type='pyramid').strides == (4, 8, 16, 32)
    assert start.patch_side(64) == 32
    assert start.native_size() == 224


def test_model_of_one_size_raises_for_varying_sizes():
    start = StartingPoint('timm://nest_tiny', None, (0, 64))
    assert start.for_size(start.backbone(0), 224) == start.backbone(0)
    with rejects('takes images of 224 x 224 pixels, not of 96 x 128'):
        start.for_size(start.backbone(0), (96, 128), sizes_vary=True)
