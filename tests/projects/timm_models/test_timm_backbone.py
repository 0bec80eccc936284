"""Models of timm as backbones: outputs, depths, freezing, weights and errors.

``benchmarks/timm_backbone.py`` tries one model of each timm module.
"""

import re

import pytest
import timm
import torch
from rejection import rejects
from timm.models import group_parameters

from benchmarks.timm_backbone import SIZES, check
from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.export import export
from vit_plugin.engine.optim.layer_decay import LayerDecayOptimWrapperConstructor
from vit_plugin.models import TimmBackbone, VisionTransformer, load_weights
from vit_plugin.models.loading import find_backbone
from vit_plugin.models.protocol import Backbone

# A CNN, an encoder with several stages whose maps timm keeps channels-last, and a plain encoder.
NAMES = ['test_byobnet', 'swin_tiny_patch4_window7_224', 'test_vit']
# Models that VisionTransformer does not compute.
SPECIAL = [
    'vit_dlittle_patch16_reg1_gap_256',
    'vit_pwee_patch16_reg1_gap_256',
    'vit_small_patch16_18x2_224',
]


@pytest.mark.parametrize('size', SIZES, ids=str)
@pytest.mark.parametrize(
    'name',
    [
        name if name.startswith('test') else pytest.param(name, marks=pytest.mark.nightly)
        for name in NAMES + SPECIAL
    ],
)
def test_maps_have_their_strides_and_channels(name, size):
    wrong, without_gradient = check(name, size)
    assert not wrong
    assert not without_gradient


@pytest.mark.parametrize(
    ('name', 'further_depths'),  # timm gives the norm of eva02's pooled vector a depth of its own
    [('test_vit', 0), pytest.param('eva02_tiny_patch14_224', 1, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize('size', [(224, 224), (224, 280)])
def test_features_equal_those_of_vision_transformer(name, further_depths, size):
    theirs = TimmBackbone(name, out_indices=(1, -1)).eval()
    ours = VisionTransformer(f'timm://{name}', out_type='featmap', out_indices=(1, -1)).eval()
    ours.load_state_dict(theirs.model.state_dict())
    side = 14 * ours.strides[0]
    images = torch.rand(2, 3, side, side * size[1] // size[0])
    assert all(
        torch.equal(feature_map, expected)
        for feature_map, expected in zip(theirs(images), ours(images), strict=True)
    )
    assert (theirs.strides, theirs.channels) == (ours.strides, ours.channels)
    shared = dict(theirs.model.named_parameters()).keys() & dict(ours.named_parameters()).keys()
    assert len(shared) > 10  # so that the loop compares something
    for parameter in shared:
        if not parameter.startswith('norm.'):  # timm's final norm has the depth of the last block
            depth, number = ours.get_layer_depth(parameter)
            assert theirs.get_layer_depth(f'backbone.model.{parameter}', 'backbone.') == (
                depth,
                number + further_depths,
            )
    head = ours.get_layer_depth('head.weight', 'backbone.')
    assert theirs.get_layer_depth('head.weight', 'backbone.') == tuple(
        value + further_depths for value in head
    )
    assert theirs.no_weight_decay() == {f'model.{name}' for name in ours.no_weight_decay()}


def test_outputs_have_strides_and_channels_of_their_stages():
    pyramid = TimmBackbone('test_byobnet', out_type='pyramid', in_channels=1)
    single = TimmBackbone('test_byobnet', out_indices=2)
    assert pyramid.strides == (2, 4, 8, 16, 32)
    assert (single.strides, single.channels) == (pyramid.strides[2:3], pyramid.channels[2:3])
    assert pyramid(torch.rand(1, 1, 64, 64))[-1].shape == (1, pyramid.channels[-1], 2, 2)
    # Stages after the last output are not built.
    assert len(list(single.parameters())) < len(list(pyramid.parameters()))


@pytest.mark.parametrize(
    'model',
    [lambda: TimmBackbone('test_vit'), lambda: VisionTransformer('Ti/16')],
    ids=['timm', 'ours'],
)
def test_models_fulfill_the_backbone_protocol(model):
    with torch.device('meta'):
        assert isinstance(model(), Backbone)
        assert not isinstance(timm.create_model('test_vit'), Backbone)


def test_final_norm_has_the_depth_of_timm_after_pruning():
    """The feature map of xcit is built without its class-token blocks, which precede the norm."""
    with torch.device('meta'):
        model, whole = (
            TimmBackbone('xcit_nano_12_p16_224'),
            timm.create_model('xcit_nano_12_p16_224'),
        )
    depths = group_parameters(whole, whole.group_matcher(), reverse=True)
    for name in ('norm.weight', 'head.weight', 'blocks.11.mlp.fc1.weight'):
        assert model.get_layer_depth(f'model.{name}') == (depths[name], max(depths.values()) + 1)


def test_frozen_stages_keep_weights_and_statistics():
    model = TimmBackbone('test_byobnet', frozen_stages=1).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(
        [parameter for parameter in model.parameters() if parameter.requires_grad], lr=1.0
    )
    model(torch.rand(2, 3, 64, 64))[0].mean().backward()
    optimizer.step()
    changed = {
        name for name, value in model.state_dict().items() if not torch.equal(value, before[name])
    }
    assert changed
    assert not [name for name in changed if name.startswith(('model.stem', 'model.stages.0'))]
    entirely_frozen = TimmBackbone('test_byobnet', frozen_stages='all')
    assert not any(parameter.requires_grad for parameter in entirely_frozen.parameters())


def test_recomputing_keeps_gradients():
    plain, recomputed = TimmBackbone('test_vit'), TimmBackbone('test_vit', with_cp=True)
    recomputed.load_state_dict(plain.state_dict())
    images = torch.rand(1, 3, 160, 160)
    for model in (plain, recomputed):
        model.train()(images)[0].square().mean().backward()
    for (name, expected), parameter in zip(
        plain.named_parameters(), recomputed.parameters(), strict=True
    ):
        torch.testing.assert_close(parameter.grad, expected.grad, msg=name)


@pytest.mark.parametrize('names', ["timm's", 'ours', "a detector's"])
def test_pretrained_weights_load_under_three_names(monkeypatch, names):
    weights = TimmBackbone('test_vit').model.state_dict()
    whole = timm.create_model('test_vit', num_classes=10)
    whole.load_state_dict(weights, strict=False)
    prefix = {"timm's": '', 'ours': 'model.', "a detector's": 'backbone.model.'}[names]
    requested = []

    def from_timm(name):
        requested.append(name)
        return {f'{prefix}{key}': value for key, value in whole.state_dict().items()}

    monkeypatch.setattr('vit_plugin.weights.opening.download_timm', from_timm)
    model = TimmBackbone(
        'test_vit', out_indices=0, init_cfg=dict(type='Pretrained', checkpoint=True)
    )
    model.init_weights()
    assert requested == ['test_vit']
    assert all(
        torch.equal(value, weights[name]) for name, value in model.model.state_dict().items()
    )


def test_weights_are_adapted_to_image_size_and_channels(tmp_path):
    weights = timm.create_model('test_vit').state_dict()
    torch.save(weights, tmp_path / 'weights.pth')
    model = TimmBackbone(
        'test_vit',
        img_size=96,
        in_channels=1,
        init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.pth')),
    )
    model.init_weights()
    kernel = weights['patch_embed.proj.weight']
    torch.testing.assert_close(
        model.model.patch_embed.proj.weight.data, kernel.sum(dim=1, keepdim=True)
    )
    assert model(torch.rand(1, 1, 96, 96))[0].shape[2:] == (6, 6)


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (dict(model_name='B/16'), "model_name='B/16': not the name of a model"),
        (dict(model_name='timm://test_vitt'), "model_name='test_vitt': Unknown model"),
        (dict(name='test_vit'), 'takes no name any more; write model_name=...'),
        (dict(model_name='test_vit.no_tag'), 'Invalid pretrained tag'),
        (
            dict(model_name='test_resnet', img_size=64),
            "test_resnet' rejects one of .*img_size",
        ),
        (
            dict(model_name='test_byobnet', out_indices=7),
            'out_indices=7 is out of range: test_byobnet has 5 features',
        ),
        (dict(model_name='test_byobnet', frozen_stages=9), 'frozen_stages=9 is out of range: -1'),
        (
            dict(model_name='pit_ti_224', frozen_stages=0),
            'does not know the depths of the parameters of pit_ti_224.*frozen_stages=-1',
        ),
        (
            dict(model_name='rdnet_tiny', frozen_stages=0),
            'does not know the depths of the parameters of rdnet_tiny.*frozen_stages=-1',
        ),
    ],
)
def test_wrong_arguments_raise(arguments, words):
    with torch.device('meta'), rejects(words):
        TimmBackbone(**arguments)


def test_checkpoint_of_another_model_raises(tmp_path):
    other = tmp_path / 'other.pth'
    torch.save(timm.create_model('test_vit2').state_dict(), other)
    model = TimmBackbone('test_vit', init_cfg=dict(type='Pretrained', checkpoint=str(other)))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with rejects(re.escape("does not fit the model 'test_vit' of timm: ")):
        model.init_weights()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.fixture
def classifier() -> torch.nn.Module:
    """A classifier of MMPretrain on a CNN of timm."""
    from mmengine.registry import MODELS

    channels = TimmBackbone('test_byobnet').channels[-1]
    return MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=dict(type='vit_plugin.TimmBackbone', model_name='test_byobnet'),
            neck=dict(type='mmpretrain.GlobalAveragePooling'),
            data_preprocessor=dict(
                type='mmpretrain.ClsDataPreprocessor', mean=[0.0] * 3, std=[255.0] * 3
            ),
            head=dict(type='mmpretrain.LinearClsHead', num_classes=3, in_channels=channels),
        )
    )


def test_classifier_trains_with_decaying_rates(classifier):
    from mmpretrain.structures import DataSample

    wrapper = LayerDecayOptimWrapperConstructor(
        dict(optimizer=dict(type='SGD', lr=1.0)), dict(layer_decay_rate=0.5)
    )(classifier)
    before = {name: value.clone() for name, value in classifier.named_parameters()}
    losses = classifier(
        torch.rand(4, 3, 64, 64), [DataSample().set_gt_label(i % 3) for i in range(4)], mode='loss'
    )
    wrapper.update_params(losses['loss'])
    changed = {
        name
        for name, value in classifier.named_parameters()
        if not torch.equal(value, before[name])
    }
    assert {'backbone.model.stem.conv.weight', 'head.fc.weight'} <= changed
    # The first group of layers learns slowest, and each has parameters.
    rates = {group['lr'] for group in wrapper.param_groups}
    num_layers = classifier.backbone.get_layer_depth('', '')[1]
    assert rates == {0.5**i for i in range(num_layers)}


def test_load_weights_loads_only_the_backbone(classifier):
    theirs = timm.create_model('test_byobnet')
    head = classifier.head.fc.weight.clone()
    report = load_weights(classifier, theirs.state_dict())
    assert len(report.matched) == len(classifier.backbone.state_dict())
    assert torch.equal(classifier.backbone.model.stem.conv.weight, theirs.stem.conv.weight)
    assert torch.equal(classifier.head.fc.weight, head)
    broken = dict(theirs.state_dict(), **{'stem.conv.weight': theirs.stem.conv.weight * torch.nan})
    with rejects("has infinite values or NaN in 'stem.conv.weight'"):
        load_weights(classifier, broken)
    assert torch.equal(classifier.backbone.model.stem.conv.weight, theirs.stem.conv.weight)
    with rejects('one vit_plugin.VisionTransformer is needed, and ImageClassifier has 0'):
        find_backbone(classifier)


@pytest.mark.nightly
def test_classifier_is_exported(classifier, tmp_path):
    assert export(deploy(classifier), tmp_path / 'model.pt2', (64, 64)) < 1e-4


@pytest.mark.parametrize('name', ['test_byobnet', 'test_vit'])
def test_parts_to_shard_are_called_in_order(name):
    model = TimmBackbone(name)
    parts, calls = model.parts_to_shard(), []
    for part in parts:
        part.register_forward_hook(lambda module, *_: calls.append(module))
    model(torch.rand(2, 3, 160, 160))
    assert calls == parts
    assert sum(p.numel() for part in parts for p in part.parameters()) > 0.5 * sum(
        p.numel() for p in model.parameters()
    )


def test_maps_that_contradict_their_strides_are_logged(monkeypatch):
    messages = []
    monkeypatch.setattr(
        'vit_plugin.models.backbones.wrapped.print_log',
        lambda message, *args: messages.append(message),
    )
    with torch.device('meta'):
        TimmBackbone('mobilevitv2_050')
    assert messages == [
        'TimmBackbone mobilevitv2_050 returns maps of 4 x 6 for images of 96 x 160, where its '
        'stride of 32 states 3 x 5: take another model for boxes and masks.'
    ]
