"""Grad-CAM for classifiers of all heads, which leaves the gradients of the model alone."""

from types import SimpleNamespace

import pytest
import torch
from rejection import rejects
from tiny_models import classifier

from vit_plugin.report.pictures import class_activation


def test_maps_of_classes_differ(tiny):
    model, images = classifier(tiny), torch.randn(1, 3, 24, 40)
    torch.nn.init.normal_(model.head.layers.head.weight)
    maps, labels = class_activation(model, images, [1])
    assert maps.shape == (1, 24, 40)
    assert labels == [1]
    assert 0 <= maps.min() < maps.max() <= 1
    other, _ = class_activation(model, images, [2])
    assert not torch.allclose(maps, other)


@pytest.mark.parametrize(
    ('head', 'backbone'),
    [
        ('DistilledViTClsHead', dict(encoder=dict(dist_token=1), out_type='raw')),
        ('ViTClsHead', dict(frozen_stages=2, encoder=dict(reg_token=2))),
        (
            'ViTClsHead',
            dict(with_cls_token=False, out_type='avg_featmap', encoder=dict(window=dict(size=2))),
        ),
    ],
)
def test_the_most_probable_class_is_the_default(tiny, head, backbone):
    model = classifier({**tiny, **backbone}, type=f'vit_plugin.{head}').train()
    for part in model.head.layers:
        torch.nn.init.normal_(part.weight)
    images = torch.randn(1, 3, 32, 32)
    maps, (label,) = class_activation(model, images)
    assert maps.isfinite().all()
    with torch.no_grad():
        assert label == model.eval()(images, mode='tensor').argmax()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_existing_gradients_are_kept(tiny):
    model, images = classifier(tiny), torch.randn(1, 3, 32, 32)
    torch.nn.init.normal_(model.head.layers.head.weight)
    model(images, mode='tensor').sum().backward()
    before = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    class_activation(model, images, [1])
    assert all(
        torch.equal(parameter.grad, before[name]) for name, parameter in model.named_parameters()
    )


def test_invalid_input_raises(tiny):
    images = torch.randn(1, 3, 32, 32)
    with rejects('There is no class 3: this model has 3 classes'):
        class_activation(classifier(tiny), images, [3])
    with rejects('this is a VisionTransformer'):
        class_activation(classifier(tiny).backbone, images)
    self_supervised = SimpleNamespace(head=torch.nn.Identity(), extract_feat=tuple)
    with rejects('cam needs a classifier with its head, but this is a SimpleNamespace'):
        class_activation(self_supervised, images)
