"""The classification head: its initialization, and MMPretrain's losses and features."""

import pytest
import torch
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from rejection import rejects
from torch.nn.modules.module import register_module_forward_hook

from vit_plugin.models import ViTClsHead


@pytest.mark.parametrize('hidden_dim', [None, 24])
def test_scores_start_at_zero_and_pre_logits_do_not(hidden_dim):
    head = ViTClsHead(num_classes=5, in_channels=16, hidden_dim=hidden_dim)
    features = (torch.randn(3, 16), torch.randn(3, 16))
    assert torch.equal(head(features), torch.zeros(3, 5))
    before = head.pre_logits(features)
    if hidden_dim is None:
        assert before is features[-1]
    else:
        layer = head.layers.pre_logits
        torch.testing.assert_close(before, torch.tanh(features[-1] @ layer.weight.T + layer.bias))
        assert layer.weight.std() > 0.1


def test_scores_start_at_the_prior_probability():
    head = ViTClsHead(5, 16, prior_prob=0.01)
    torch.testing.assert_close(head((torch.randn(3, 16),)).sigmoid(), torch.full((3, 5), 0.01))


def test_forward_calls_no_temporary_modules():
    """torch's memory trackers warn of modules that no longer exist at the backward pass."""
    head, called = ViTClsHead(5, 16, hidden_dim=8), set()
    with register_module_forward_hook(lambda module, *_: called.add(module)):
        head((torch.randn(3, 16),))
    assert called == {head, *head.layers}


def test_act_cfg_sets_the_activation():
    head = ViTClsHead(5, 16, hidden_dim=8, act_cfg=dict(type='ReLU'))
    assert (head.pre_logits((torch.randn(9, 16),)) >= 0).all()


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('use_soft', [False, True])
def test_losses_of_mmpretrain_reach_the_head(use_soft):
    init_default_scope('mmpretrain')
    loss = dict(type='CrossEntropyLoss', use_soft=use_soft)
    head = MODELS.build(
        dict(type='vit_plugin.ViTClsHead', num_classes=5, in_channels=16, loss=loss)
    )
    samples = [DataSample().set_gt_label(i) for i in range(3)]
    if use_soft:
        for i, sample in enumerate(samples):
            sample.set_gt_score(torch.eye(5)[i])
    value = head.loss((torch.randn(3, 16),), samples)['loss']
    value.backward()
    assert value > 0
    assert head.layers.head.weight.grad.abs().max() > 0


def test_predictions_have_scores_of_all_classes():
    predictions = ViTClsHead(5, 16).predict((torch.randn(3, 16),))
    assert [tuple(sample.pred_score.shape) for sample in predictions] == [(5,)] * 3


@pytest.mark.parametrize(
    ('loss', 'words'),
    [
        (
            dict(type='LabelSmoothLoss', label_smooth_val=0.1, num_classes=10),
            'num_classes of the loss LabelSmoothLoss',
        ),
        (
            dict(type='CrossEntropyLoss', class_weight=[1.0, 2.0]),
            'class_weight of the loss CrossEntropyLoss is for 2',
        ),
    ],
)
def test_a_loss_for_another_number_of_classes_raises(loss, words):
    with rejects(words):
        ViTClsHead(5, 16, loss=dict(loss, type=f'mmpretrain.{loss["type"]}'))


@pytest.mark.parametrize(
    'feature', [[torch.randn(3, 16, 2, 2), torch.ones(3, 16)], (torch.ones(3, 16),)]
)
def test_the_last_tensor_of_a_list_is_classified(feature):
    head = ViTClsHead(5, 16, hidden_dim=8)
    torch.nn.init.normal_(head.layers.head.weight)
    assert torch.equal(head((feature,)), head((torch.ones(3, 16),)))


@pytest.mark.parametrize('shape', [(3, 32), (3, 16, 2, 2), (3, 4, 16)])
def test_features_of_another_shape_raise(shape):
    with rejects('in_channels=16'):
        ViTClsHead(5, 16)((torch.randn(shape),))
