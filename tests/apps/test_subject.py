"""A model from weights alone gives what the code gives that they come from."""

import argparse
from pathlib import Path

import cv2
import numpy as np
import pytest
import timm
import torch
from mmengine.registry import MODELS
from safetensors.torch import save_file

from vit_plugin.apps.browser import likeliest
from vit_plugin.apps.inference import Pretrained
from vit_plugin.apps.subject import Subject, add_subject_arguments, imagenet_classes, read_subject
from vit_plugin.errors import ConfigError

pytest.importorskip('mmpretrain')


@pytest.fixture
def photo(tmp_path) -> str:
    path = tmp_path / 'photo.png'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))
    return str(path)


def read(*arguments: object, classify: bool = True) -> Subject:
    parser = argparse.ArgumentParser()
    parser.add_argument('checkpoint')
    add_subject_arguments(parser)
    return read_subject(parser.parse_args([*map(str, arguments), '--device', 'cpu']), classify)


@pytest.mark.parametrize('name', [
    'test_vit.r160_in1k', 'deit_tiny_distilled_patch16_224.fb_in1k',
    pytest.param('eva02_tiny_patch14_336.mim_in22k_ft_in1k', marks=pytest.mark.nightly),  # a norm after its average
])
def test_classes_are_timms(tmp_path, photo, name):
    theirs = timm.create_model(name, pretrained=False).eval()
    for head in (theirs.head, getattr(theirs, 'head_dist', theirs.head)):
        torch.nn.init.normal_(head.weight)
    torch.save(theirs.state_dict(), tmp_path / 'weights.pth')
    subject = read(tmp_path / 'weights.pth', '--arch', f'timm://{name}')
    seen = subject.see(photo)
    with torch.no_grad():
        expected = theirs(torch.nn.functional.interpolate(seen.inputs, theirs.patch_embed.img_size))
        scores = subject.model(torch.nn.functional.interpolate(seen.inputs, theirs.patch_embed.img_size), mode='tensor')
    torch.testing.assert_close(scores, expected, atol=1e-3, rtol=1e-3)
    assert subject.classes[281] == 'tabby, tabby cat'


def classifier(hidden_dim: int | None, num_classes: int) -> torch.nn.Module:
    model = MODELS.build(dict(
        type='mmpretrain.ImageClassifier',
        backbone=dict(type='vit_plugin.VisionTransformer', arch='Ti/16', img_size=32),
        head=dict(type='vit_plugin.ViTClsHead', num_classes=num_classes, in_channels=192, hidden_dim=hidden_dim)))
    torch.nn.init.normal_(model.head.layers.head.weight)
    return model.eval()


def save(model: torch.nn.Module, path: Path) -> Path:
    save_file({name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}, path)
    return path


def test_pre_logits_are_part_of_the_classifier(tmp_path, photo):
    whole = classifier(24, 1000)
    subject = read(save(whole, tmp_path / 'whole.safetensors'), '--arch', 'Ti/16', '--cfg-options', 'img_size=32')
    seen = subject.see(photo)
    assert seen.inputs.shape == (1, 3, 32, 48)
    with torch.no_grad():
        best = whole(seen.inputs, mode='tensor').softmax(dim=1).max().item()
    assert next(iter(likeliest(subject, seen).values())) == pytest.approx(best, rel=1e-4)


def test_only_a_trained_classifier_with_known_names_is_one(tmp_path):
    untrained = classifier(None, 1000)
    torch.nn.init.zeros_(untrained.head.layers.head.weight)
    for model in (untrained, classifier(None, 512)):
        subject = read(save(model, tmp_path / 'w.safetensors'), '--arch', 'Ti/16', '--cfg-options', 'img_size=32')
        assert isinstance(subject.model, Pretrained)
        assert subject.classes == []


def test_the_names_are_those_of_the_number_of_classes():
    assert [len(imagenet_classes(count)) for count in (1000, 11821, 21841, 21843, 999)] == [
        1000, 11821, 21841, 21843, 0]


def test_the_model_must_be_said_once(tmp_path):
    for arguments, words in ((['x.pth'], 'Give --config'),
                             (['x.pth', '--config', 'a.py', '--arch', 'B/16'], 'give one of them')):
        with pytest.raises(ConfigError, match=words):
            read(*arguments)
