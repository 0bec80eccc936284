"""Learning rates and weight decays of parameters with layer decay."""

import pytest
import torch
from mmengine.optim import build_optim_wrapper
from rejection import rejects
from torch import nn

from vit_plugin.models import SimpleFPN, VisionTransformer


def wrapper(model: nn.Module, lr: float | None = 1.0, **paramwise):
    """An optimizer wrapper with these settings of ``paramwise_cfg``, with or without a rate."""
    optimizer = dict(type='AdamW', weight_decay=0.1) | ({} if lr is None else dict(lr=lr))
    return build_optim_wrapper(
        model,
        dict(
            type='OptimWrapper',
            constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
            optimizer=optimizer,
            paramwise_cfg=paramwise,
        ),
    )


def settings(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, tuple[float, float]]:
    """(lr, weight decay) of every parameter, by name."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    return {
        names[parameter]: (group['lr'], group['weight_decay'])
        for group in optimizer.param_groups
        for parameter in group['params']
    }


class Detector(nn.Module):
    """A backbone in a model with a neck."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.neck = SimpleFPN(32, 8)

    # MMPretrain's classifiers have this method, too, and call that of the backbone.
    def get_layer_depth(self, name: str) -> tuple[int, int]:
        raise AssertionError('the backbone should be asked')


@pytest.fixture
def detector(tiny) -> Detector:
    return Detector(VisionTransformer(**tiny, out_type='featmap'))


def test_rates_of_a_pure_vit_in_a_detector(detector):
    settings_of = settings(detector, wrapper(detector, layer_decay_rate=0.5).optimizer)
    assert set(settings_of) == {name for name, _ in detector.named_parameters()}
    expected = {  # depths: embedding 0, blocks 1 and 2, norm and neck 3
        'backbone.patch_embed.proj.weight': (0.125, 0.1),
        'backbone.cls_token': (0.125, 0.0),
        'backbone.pos_embed': (0.125, 0.0),
        'backbone.blocks.0.attn.qkv.weight': (0.25, 0.1),
        'backbone.blocks.1.mlp.fc2.bias': (0.5, 0.1),
        'backbone.norm.weight': (1.0, 0.1),
        'neck.levels.0.lateral.conv.weight': (1.0, 0.1),
    }
    assert {name: settings_of[name] for name in expected} == expected


def test_parameters_of_equal_settings_share_a_group(detector):
    groups = wrapper(
        detector, layer_decay_rate=0.5, norm_decay_mult=0.0, bias_decay_mult=0.0
    ).optimizer.param_groups
    assert sorted((group['lr'], group['weight_decay']) for group in groups) == [
        (0.125, 0.0),
        (0.125, 0.1),
        (0.25, 0.0),
        (0.25, 0.1),
        (0.5, 0.0),
        (0.5, 0.1),
        (1.0, 0.0),
        (1.0, 0.1),
    ]


def test_stages_of_a_hybrid_have_their_own_rates(tiny_hybrid):
    model = VisionTransformer(**tiny_hybrid)
    settings_of = settings(model, wrapper(model, layer_decay_rate=0.5).optimizer)
    names = [
        'patch_embed.backbone.stem.conv.weight',
        'patch_embed.backbone.stages.1.blocks.0.conv1.weight',
        'patch_embed.proj.weight',
        'cls_token',
        'blocks.0.norm1.weight',
        'norm.weight',
    ]
    # Depths: CNN stem 0, its stages 1 and 2, embedding 3, blocks 4 and 5, norm 6.
    assert [settings_of[name][0] for name in names] == [0.5**6, 0.5**4, 0.5**3, 0.5**3, 0.5**2, 1.0]


def test_custom_keys_multiply(detector):
    settings_of = settings(
        detector,
        wrapper(
            detector,
            layer_decay_rate=0.5,
            custom_keys={'backbone.blocks.0': dict(lr_mult=0.1, decay_mult=0.5)},
        ).optimizer,
    )
    assert settings_of['backbone.blocks.0.norm1.weight'] == pytest.approx((0.025, 0.05))


def test_custom_keys_may_have_lists(detector):
    """A config in JSON or YAML, and --cfg-options, have no tuples."""
    groups = wrapper(
        detector, layer_decay_rate=0.5, custom_keys={'neck': dict(betas=[0.5, 0.6])}
    ).optimizer.param_groups
    in_neck = {
        parameter
        for group in groups
        if group['betas'] == [0.5, 0.6]
        for parameter in group['params']
    }
    assert in_neck == set(detector.neck.parameters())


def test_frozen_parameters_are_left_out_and_logged_in_one_line(tiny, monkeypatch):
    messages = []
    monkeypatch.setattr(
        'mmengine.optim.optimizer.default_constructor.print_log',
        lambda text, **_: messages.append(text),
    )
    monkeypatch.setattr(
        'vit_plugin.engine.optim.layer_decay.print_log', lambda text, _: messages.append(text)
    )
    model = VisionTransformer(**tiny, frozen_stages=1)
    assert set(settings(model, wrapper(model, layer_decay_rate=0.5).optimizer)) == {
        name for name, parameter in model.named_parameters() if parameter.requires_grad
    }
    frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    lines = [
        line
        for text in messages
        for line in text.splitlines()
        if 'frozen' in line or 'requires_grad' in line
    ]
    assert f'frozen: {len(frozen)} tensors, {sum(map(torch.numel, frozen)):,} parameters' in lines
    # MMEngine logs its own line for each of these tensors.
    assert [line.split()[0] for line in lines if 'skipped' in line] == [
        '.cls_token',
        '.pos_embed',
    ]


@pytest.mark.parametrize(
    ('paramwise', 'lr', 'words'),
    [
        (dict(), 1.0, 'layer_decay_rate'),
        (dict(layer_decay_rate=1.5), 1.0, 'layer_decay_rate=1.5 must be less than or equal to 1'),
        (dict(layer_decay_rate=0.5), None, 'optimizer needs lr'),
        (dict(layer_decay_rate=0.5, custom_keys=dict(neck=10.0)), 1.0, 'neck=10.0 must be a valid'),
    ],
)
def test_wrong_settings_raise(detector, paramwise, lr, words):
    with rejects(words):
        wrapper(detector, lr, **paramwise)


def test_model_without_depths_raises():
    with rejects('no part of Sequential has get_layer_depth'):
        wrapper(nn.Sequential(nn.Linear(2, 2)), layer_decay_rate=0.5)


def test_default_weight_decay_is_that_of_the_optimizer(tiny):
    model = VisionTransformer(**tiny)
    groups = build_optim_wrapper(
        model,
        dict(
            type='OptimWrapper',
            constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
            optimizer=dict(type='AdamW', lr=1.0),
            paramwise_cfg=dict(layer_decay_rate=0.5),
        ),
    ).optimizer.param_groups
    assert {group['weight_decay'] for group in groups} == {0.0, 0.01}
