"""Models of weights with an arch compute the same as timm, and have ImageNet's classes."""

from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from rejection import rejects
from safetensors.torch import save_file
from tiny_models import classifier

from vit_plugin.inference.load import load
from vit_plugin.inference.weights_with_arch import imagenet_classes
from vit_plugin.models import VisionTransformer
from vit_plugin.models.classifier import Classifier

pytest.importorskip('mmpretrain')


def test_names_of_timm_set_arch_and_normalization(tmp_path):
    name = 'test_vit.r160_in1k'
    timm_model = timm.create_model(name, pretrained=False).eval()
    torch.save(timm_model.state_dict(), tmp_path / 'weights.pth')
    model = load(tmp_path / 'weights.pth', arch=f'timm://{name}', device='cpu', classify=False)
    prepared = model.prepare(np.full((40, 61, 3), (255, 0, 128), dtype=np.uint8), 80)  # BGR
    assert prepared.inputs.shape == (1, 3, 80, 128)  # 122 pixels are 7.6 patches of 16
    assert prepared.input_size == (80, 128)
    assert prepared.image.shape == (80, 128, 3)
    assert prepared.image[5, 5].tolist() == [128, 0, 255]  # RGB
    expected = (
        torch.tensor([128.0, 0.0, 255.0]) / 255 - torch.tensor(timm_model.pretrained_cfg['mean'])
    ) / torch.tensor(timm_model.pretrained_cfg['std'])
    torch.testing.assert_close(prepared.inputs[0, :, 7, 9], expected)


def test_models_of_one_channel_get_gray_images(tmp_path, photo):
    options = dict(patch_embed=dict(in_channels=1), img_size=32)
    torch.save(VisionTransformer('Ti/16', **options).state_dict(), tmp_path / 'weights.pth')
    model = load(tmp_path / 'weights.pth', arch='Ti/16', device='cpu', cfg_options=options)
    assert isinstance(model.model, Classifier)
    prepared = model.prepare(photo)
    assert prepared.inputs.shape == (1, 1, 32, 48)
    assert prepared.image.shape == (32, 48, 3)
    with rejects('no classes to predict'):
        model(photo)


def test_weights_of_bands_need_a_config(tmp_path):
    options = dict(patch_embed=dict(in_channels=5), img_size=32)
    torch.save(VisionTransformer('Ti/16', **options).state_dict(), tmp_path / 'weights.pth')
    with rejects(r'patch_embed\.in_channels=5: .*; give their config with --config'):
        load(tmp_path / 'weights.pth', arch='Ti/16', device='cpu', cfg_options=options)


@pytest.mark.parametrize(
    'name',
    [
        'test_vit.r160_in1k',
        'deit_tiny_distilled_patch16_224.fb_in1k',
        # A model with a norm after the average pooling.
        pytest.param('eva02_tiny_patch14_336.mim_in22k_ft_in1k', marks=pytest.mark.nightly),
    ],
)
def test_scores_and_classes_equal_timms(tmp_path, photo, name, monkeypatch):
    timm_model = timm.create_model(name, pretrained=False).eval()
    for head in (timm_model.head, getattr(timm_model, 'head_dist', timm_model.head)):
        torch.nn.init.normal_(head.weight)
    monkeypatch.setattr(
        'vit_plugin.weights.opening.download_timm', lambda _: timm_model.state_dict()
    )
    model = load(f'timm://{name}', device='cpu')
    pixels = timm.data.create_transform(**timm.data.resolve_model_data_config(timm_model))
    with torch.no_grad():
        expected = timm_model(pixels(Image.open(photo).convert('RGB'))[None]).softmax(dim=1)[0]
    scores = model.predict([photo], ['a.png'])[0].sample.pred_score
    torch.testing.assert_close(scores, expected, atol=1e-3, rtol=1e-3)
    assert model.classes[281] == 'tabby, tabby cat'


SMALL = dict(arch='Ti/16', img_size=32)


def random_classifier(classes: int, **head: int) -> torch.nn.Module:
    model = classifier(SMALL, classes, **head)
    torch.nn.init.normal_(model.head.layers.head.weight)
    return model


def save(model: torch.nn.Module, path: Path) -> Path:
    """Save the tensors of a model, without the extra states."""
    save_file(
        {
            name: value
            for name, value in model.state_dict().items()
            if isinstance(value, torch.Tensor)
        },
        path,
    )
    return path


def test_pre_logits_are_part_of_the_classifier(tmp_path, photo):
    saved = random_classifier(1000, hidden_dim=24)
    loaded = load(
        save(saved, tmp_path / 'w.safetensors'),
        arch='Ti/16',
        device='cpu',
        cfg_options=dict(img_size=32),
    )
    prepared = loaded.prepare(photo)
    assert prepared.inputs.shape == (1, 3, 32, 48)
    with torch.no_grad():
        torch.testing.assert_close(
            loaded.model(prepared.inputs, mode='tensor'), saved(prepared.inputs, mode='tensor')
        )


def test_untrained_heads_and_unknown_class_counts_give_no_classes(tmp_path):
    untrained = classifier(SMALL, 1000)
    torch.nn.init.zeros_(untrained.head.layers.head.weight)
    for model in (untrained, random_classifier(512)):
        loaded = load(
            save(model, tmp_path / 'w.safetensors'),
            arch='Ti/16',
            device='cpu',
            cfg_options=dict(img_size=32),
        )
        assert isinstance(loaded.model, Classifier)
        assert loaded.classes == []


def test_imagenet_classes_are_chosen_by_their_number():
    assert [len(imagenet_classes(count)) for count in (1000, 11821, 21841, 21843, 999)] == [
        1000,
        11821,
        21841,
        21843,
        0,
    ]
