"""Folders that timm writes become the same model here, with its classes and pixels."""

import json

import numpy as np
import pytest
import timm
import torch
from mmengine.dataset import pseudo_collate
from PIL import Image
from rejection import rejects
from timm.models import save_for_hf

from vit_plugin.inference.load import load

SIZES = dict(img_size=32, embed_dim=32, depth=2, num_heads=2)
MODELS = {
    'vit_base_patch16_224': {},
    'vit_base_patch16_siglip_224': {},
    'deit_tiny_distilled_patch16_224': {},
    'vit_small_patch14_reg4_dinov2': dict(img_size=28),
    'vit_base_patch32_clip_224': dict(global_pool='avg'),
}
NAMES = ['cat', 'dog', 'owl']


def folder_of(path, name, **options):
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=3, **{**SIZES, **options}).eval()
    for value in model.parameters():
        torch.nn.init.normal_(value, std=0.2)
    labels = dict(label_names=NAMES, label_descriptions=dict(dog='a dog'))
    save_for_hf(model, str(path), safe_serialization=True, model_config=labels)
    return path


def edit(path, **changes):
    config = json.loads((path / 'config.json').read_text())
    (path / 'config.json').write_text(json.dumps(config | changes))


@pytest.mark.parametrize('name', MODELS)
def test_logits_names_and_pixels(name, tmp_path):
    folder = folder_of(tmp_path / 'theirs', name, **MODELS[name])
    theirs = timm.create_model(f'local-dir:{folder}', pretrained=True).eval()
    mine = load(f'local-dir:{folder}', device='cpu')
    assert mine.classes == ['cat', 'a dog', 'owl']
    pixels = timm.data.resolve_data_config(pretrained_cfg=theirs.pretrained_cfg)
    image = np.random.default_rng(0).integers(0, 256, (70, 41, 3), dtype=np.uint8)
    wanted = timm.data.create_transform(**pixels)(Image.fromarray(image))[None]
    sample = mine.sample(np.ascontiguousarray(image[..., ::-1]))
    found = mine.model.data_preprocessor(pseudo_collate([sample]), False)['inputs']
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
    with torch.no_grad():
        logits = mine.model.head(mine.model.extract_feat(found))
        torch.testing.assert_close(logits, theirs(found), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        (dict(model_args=dict(checkpoint_path='x.pth')), 'model_args.checkpoint_path=.x.pth'),
        (dict(model_args=dict(depth=10**9)), 'model_args.depth=1000000000'),
        (dict(model_args=dict(magic=1)), 'timm builds no vit_base_patch16_224 with .*magic=1 .Vis'),
        (
            dict(architecture='convnext_atto'),
            'builds convnext_atto as timm does by its name and image',
        ),
        (dict(num_classes=4), 'num_classes=4, where its classifier has 3 rows'),
        (dict(label_names=['cat']), 'where its classifier has 3 rows'),
        (dict(magic=1), 'magic=1, which no model here computes'),
        (dict(pretrained_cfg=dict(magic=1)), 'pretrained_cfg.magic=1, which no model here'),
        (dict(pretrained_cfg=dict(crop_mode='border')), "crop_mode='border'"),
        (dict(pretrained_cfg=dict(custom_load=True)), 'custom_load=True'),
    ],
)
def test_each_entry_is_used_or_named(tmp_path, changes, words):
    folder = folder_of(tmp_path / 'theirs', 'vit_base_patch16_224')
    config = json.loads((folder / 'config.json').read_text())
    for name, value in changes.items():
        if isinstance(value, dict):
            changes = {name: {**config[name], **value}}
    edit(folder, **changes)
    with rejects(words):
        load(folder, device='cpu')


def test_without_names_classes_are_numbers(tmp_path):
    folder = folder_of(tmp_path / 'theirs', 'vit_base_patch16_224')
    edit(folder, label_names=None, label_descriptions=None)
    assert load(folder, device='cpu').classes == ['class 0', 'class 1', 'class 2']


@pytest.mark.parametrize(
    ('name', 'size'),
    [('resnet10t', 64), ('convnext_atto', 64), ('swin_tiny_patch4_window7_224', 224)],
)
def test_a_model_that_timm_computes(name, size, tmp_path):
    torch.manual_seed(0)
    theirs = timm.create_model(name, num_classes=3).eval()
    labels = dict(label_names=NAMES)
    save_for_hf(theirs, str(tmp_path / 'theirs'), safe_serialization=True, model_config=labels)
    mine = load(tmp_path / 'theirs', device='cpu')
    assert mine.classes == NAMES
    images = torch.rand(2, 3, size, size)
    with torch.no_grad():
        features = mine.model.extract_feat(images)
        assert torch.equal(
            features[-1], theirs.forward_head(theirs.forward_features(images), pre_logits=True)
        )
        torch.testing.assert_close(mine.model.head(features), theirs(images))


def test_a_name_of_timm_is_as_its_folder(tmp_path, monkeypatch):
    torch.manual_seed(0)
    theirs = timm.create_model('resnet10t').eval()
    monkeypatch.setattr('vit_plugin.weights.opening.from_timm', lambda name: theirs.state_dict())
    mine = load('timm://resnet10t.c3_in1k', device='cpu')
    assert mine.classes[0] == 'tench, Tinca tinca'
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(mine.model.head(mine.model.extract_feat(images)), theirs(images))


@pytest.mark.parametrize(
    ('name', 'changes', 'words'),
    [
        ('levit_128s', {}, 'has no single linear classifier'),
        ('resnet10t', dict(model_args=dict(global_pool='max')), "TimmBackbone pools by 'avg'"),
    ],
)
def test_what_pools_otherwise_is_named(name, changes, words, tmp_path):
    save_for_hf(timm.create_model(name, num_classes=3), str(tmp_path), safe_serialization=True)
    edit(tmp_path, **changes)
    with rejects(words):
        load(tmp_path, device='cpu')
