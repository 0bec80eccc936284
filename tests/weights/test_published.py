"""Read the metadata of third-party checkpoints: class names, normalization, settings, names."""

import pytest
import torch
from published_models import roboflow_file, roboflow_weights
from rejection import rejects
from timm.data import IMAGENET_DEFAULT_MEAN

from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_run import address_of, as_run
from vit_plugin.weights.published_wrapped import wrapped_weights

OTHER = {'some.layer.weight': torch.ones(2, 2)}


@pytest.mark.parametrize('content', [OTHER, dict(state_dict=OTHER, meta=dict(cfg='a = 1'))])
def test_other_checkpoints_are_returned_unchanged(content):
    checkpoint = Checkpoint('file.pth', content)
    assert as_run(checkpoint) is checkpoint


def test_settings_of_another_type_are_not_used(tmp_path):
    path = roboflow_file(tmp_path / 'a.pth', args=dict(resolution='large', class_names=3))
    published = Published(open_checkpoint(path))
    assert published.names == {}
    assert published.settings == dict(resolution='large', class_names=3)


@pytest.mark.parametrize(
    ('processor', 'normalized', 'mean'),
    [
        (dict(do_normalize=False, image_mean=[0.5] * 3), True, (0.0,) * 3),
        (dict(do_normalize=True, image_mean=[0.5] * 3), False, [0.5] * 3),
        (dict(image_mean=[0.5] * 3), False, (0.0,) * 3),
        ({}, True, IMAGENET_DEFAULT_MEAN),
    ],
)
def test_normalization_follows_the_file(processor, normalized, mean):
    checkpoint = Checkpoint('file.pth', OTHER, dict(preprocessor_config=processor))
    pixels = Published(checkpoint).pixels(64, normalized)
    assert (pixels['mean'], pixels['size']) == (mean, (64, 64))


def test_prefixes_of_wrappers_are_removed(tmp_path):
    weights = roboflow_weights()
    wrapped = {f'model._orig_mod.{name}': value for name, value in weights.items()}
    published = Published(Checkpoint('a.ckpt', dict(state_dict=wrapped)))
    assert {*published.weights} == {*weights}


def test_declared_names_stand_for_addresses(monkeypatch):
    offered = dict(offered=dict(detector=('MIT', 640, 'https://there.org/a.pth')))
    monkeypatch.setattr('vit_plugin.weights.published_run.declared_rows', offered.get)
    assert address_of('detector') == 'https://there.org/a.pth'
    assert address_of('photo.pth') == 'photo.pth'


def test_a_quantized_classifier_of_a_wrapped_model_raises():
    theirs = {'fc.weight': torch.ones(2, 3, dtype=torch.int8), 'fc.bias': torch.ones(2)}
    weights = wrapped_weights([], dict, theirs, ['fc'])
    assert torch.equal(weights['head.layers.head.bias'], theirs['fc.bias'])
    with rejects('fc.weight as int8, but the model has real numbers there'):
        weights['head.layers.head.weight']
