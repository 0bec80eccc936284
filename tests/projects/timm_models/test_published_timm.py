"""Folders that timm writes become the same model here, with its classes and preprocessing."""

import json

import numpy as np
import pytest
import timm
import torch
from extras import needs_task
from mmengine.dataset import pseudo_collate
from PIL import Image
from rejection import rejects
from safetensors.torch import load_file, save_file
from timm.models import save_for_hf

from vit_plugin.inference.load import load

pytestmark = needs_task('classification')

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
    """Save a model of timm with random weights and named classes; return the folder."""
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=3, **{**SIZES, **options}).eval()
    for value in model.parameters():
        torch.nn.init.normal_(value, std=0.2)
    labels = dict(label_names=NAMES, label_descriptions=dict(dog='a dog'))
    save_for_hf(model, str(path), safe_serialization=True, model_config=labels)
    return path


def edit(path, **changes):
    """Change entries of the config.json in a folder."""
    config = json.loads((path / 'config.json').read_text())
    (path / 'config.json').write_text(json.dumps(config | changes))


@pytest.mark.parametrize('name', MODELS)
def test_logits_classes_and_pixels_equal_those_of_timm(name, tmp_path):
    folder = folder_of(tmp_path / 'theirs', name, **MODELS[name])
    theirs = timm.create_model(f'local-dir:{folder}', pretrained=True).eval()
    ours = load(f'local-dir:{folder}', device='cpu')
    assert ours.classes == ['cat', 'a dog', 'owl']
    pixels = timm.data.resolve_data_config(pretrained_cfg=theirs.pretrained_cfg)
    image = np.random.default_rng(0).integers(0, 256, (70, 41, 3), dtype=np.uint8)
    expected = timm.data.create_transform(**pixels)(Image.fromarray(image))[None]
    sample = ours.sample(np.ascontiguousarray(image[..., ::-1]))
    inputs = ours.model.data_preprocessor(pseudo_collate([sample]), False)['inputs']
    torch.testing.assert_close(inputs, expected, rtol=0, atol=1e-5)
    with torch.no_grad():
        logits = ours.model.head(ours.model.extract_feat(inputs))
        torch.testing.assert_close(logits, theirs(inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        (dict(model_args=dict(checkpoint_path='x.pth')), 'model_args.checkpoint_path=.x.pth'),
        (dict(model_args=dict(embed_dim=10**9)), 'model_args.embed_dim=1000000000'),
        (dict(model_args=dict(depth=10**4)), 'model_args.depth=10000'),
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
        (dict(pretrained_cfg=dict(interpolation='random')), "interpolation='random'"),
        (dict(pretrained_cfg=dict(custom_load='hf')), "custom_load='hf'"),
    ],
)
def test_unsupported_entries_raise(tmp_path, changes, words):
    folder = folder_of(tmp_path / 'theirs', 'vit_base_patch16_224')
    config = json.loads((folder / 'config.json').read_text())
    for name, value in changes.items():
        merged = {**config[name], **value} if isinstance(value, dict) else value
        edit(folder, **{name: merged})
    with rejects(words):
        load(folder, device='cpu')


def test_folder_of_timm_wrapper_is_read(tmp_path):
    """``TimmWrapperForImageClassification`` of transformers adds entries and a prefix."""
    folder = folder_of(tmp_path / 'theirs', 'vit_base_patch16_224')
    classes = load(folder, device='cpu').classes
    file = folder / 'model.safetensors'
    save_file({f'timm_model.{name}': value for name, value in load_file(file).items()}, file)
    architectures = ['TimmWrapperForImageClassification']
    edit(folder, model_type='timm_wrapper', architectures=architectures, do_pooling=True)
    assert load(folder, device='cpu').classes == classes


@pytest.mark.parametrize('name', ['test_vit', 'resnet10t'])
def test_encoder_of_timm_wrapper_is_read(name, tmp_path):
    """``TimmWrapperModel`` has no classifier, and its config has the classes of the timm model."""
    theirs = timm.create_model(name, num_classes=0).eval()
    save_for_hf(theirs, str(tmp_path), safe_serialization=True)
    labels = dict(label_names=NAMES, num_classes=3)
    edit(tmp_path, model_type='timm_wrapper', architectures=['TimmWrapperModel'], **labels)
    ours = load(tmp_path, device='cpu', classify=False)
    assert not ours.classes
    images = torch.rand(1, 3, 160, 160)
    with torch.no_grad():
        torch.testing.assert_close(ours.model.extract_feat(images)[-1], theirs(images))


IMAGENET = dict(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
# The `config.json` of an encoder on the hub, with two blocks, and the arguments of its model card.
CARD = dict(mlp_layer=timm.layers.SwiGLUPacked, act_layer=torch.nn.SiLU)
HUB_ENCODERS = {
    'UNI': (
        dict(
            architecture='vit_large_patch16_224',
            global_pool='token',
            model_args=dict(img_size=32, init_values=1.0, num_classes=0, depth=2),
            pretrained_cfg=dict(IMAGENET, custom_load=True, num_classes=0, input_size=[3, 32, 32]),
        ),
        {},
    ),
    'Virchow 2': (
        dict(
            architecture='vit_huge_patch14_224',
            model_args=dict(
                img_size=28,
                init_values=1e-5,
                num_classes=0,
                reg_tokens=4,
                mlp_ratio=5.3375,
                global_pool='',
                depth=2,
            ),
            pretrained_cfg=dict(IMAGENET, custom_load=False, num_classes=0, input_size=[3, 28, 28]),
        ),
        CARD,
    ),
    'UNI 2': (
        dict(
            architecture='vit_giant_patch14_224',
            global_pool='token',
            model_args=dict(
                img_size=28,
                patch_size=14,
                depth=2,
                num_heads=24,
                init_values=1e-5,
                embed_dim=384,
                mlp_ratio=5.33334,
                num_classes=0,
                no_embed_class=True,
                reg_tokens=8,
            ),
            pretrained_cfg=dict(IMAGENET, custom_load=True, num_classes=0, input_size=[3, 28, 28]),
        ),
        CARD,
    ),
}


@pytest.mark.parametrize('name', HUB_ENCODERS)
def test_encoders_of_pathology_have_the_features_of_timm(name, tmp_path):
    config, card = HUB_ENCODERS[name]
    torch.manual_seed(0)
    theirs = timm.create_model(config['architecture'], **config['model_args'], **card).eval()
    save_file(theirs.state_dict(), tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text(json.dumps(config))
    ours = load(tmp_path, device='cpu', classify=False)
    images = torch.rand(2, *config['pretrained_cfg']['input_size'])
    with torch.no_grad():
        torch.testing.assert_close(ours.model.extract_feat(images)[-1], theirs(images))


@pytest.mark.parametrize('names', [None, ['LABEL_0', 'LABEL_1', 'LABEL_2']])
def test_classes_without_names_are_numbered(tmp_path, names):
    """transformers writes ``LABEL_`` and a number for a class without a name."""
    folder = folder_of(tmp_path / 'theirs', 'vit_base_patch16_224')
    edit(folder, label_names=names, label_descriptions=None)
    assert load(folder, device='cpu').classes == ['class 0', 'class 1', 'class 2']


@pytest.mark.parametrize(
    ('name', 'size'),
    [
        ('resnet10t', 64),
        ('convnext_atto', 64),
        pytest.param('swin_tiny_patch4_window7_224', 224, marks=pytest.mark.nightly),
    ],
)
def test_models_computed_by_timm_have_the_same_logits(name, size, tmp_path):
    torch.manual_seed(0)
    theirs = timm.create_model(name, num_classes=3).eval()
    labels = dict(label_names=NAMES)
    save_for_hf(theirs, str(tmp_path / 'theirs'), safe_serialization=True, model_config=labels)
    ours = load(tmp_path / 'theirs', device='cpu')
    assert ours.classes == NAMES
    images = torch.rand(2, 3, size, size)
    with torch.no_grad():
        features = ours.model.extract_feat(images)
        assert torch.equal(
            features[-1], theirs.forward_head(theirs.forward_features(images), pre_logits=True)
        )
        torch.testing.assert_close(ours.model.head(features), theirs(images))


def test_the_fixed_size_of_a_model_computed_by_timm_is_kept(tmp_path):
    name = 'swin_tiny_patch4_window7_224'
    save_for_hf(timm.create_model(name, num_classes=3), str(tmp_path), safe_serialization=True)
    stated = json.loads((tmp_path / 'config.json').read_text())['pretrained_cfg']
    stated |= dict(input_size=[3, 448, 448], fixed_input_size=True)
    edit(tmp_path, model_args={}, pretrained_cfg=stated)
    assert load(tmp_path, device='cpu').model.backbone.img_size == (448, 448)


def test_a_norm_after_a_pooled_token_raises(tmp_path):
    folder = folder_of(tmp_path / 'theirs', 'vit_base_patch16_224', fc_norm=True)
    edit(folder, model_args=dict(SIZES, fc_norm=True))
    with rejects('whose norm after this pooling no model here has'):
        load(folder, device='cpu')


def test_timm_name_loads_with_imagenet_classes(tmp_path, monkeypatch):
    torch.manual_seed(0)
    theirs = timm.create_model('resnet10t').eval()
    monkeypatch.setattr(
        'vit_plugin.weights.opening.download_timm', lambda name: theirs.state_dict()
    )
    ours = load('timm://resnet10t.c3_in1k', device='cpu')
    assert ours.classes[0] == 'tench, Tinca tinca'
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours.model.head(ours.model.extract_feat(images)), theirs(images))


@pytest.mark.parametrize(
    ('name', 'changes', 'words'),
    [
        ('levit_128s', {}, 'has no single linear classifier'),
        ('resnet10t', dict(model_args=dict(global_pool='max')), "TimmBackbone pools by 'avg'"),
    ],
)
def test_other_pooling_raises(name, changes, words, tmp_path):
    save_for_hf(timm.create_model(name, num_classes=3), str(tmp_path), safe_serialization=True)
    edit(tmp_path, **changes)
    with rejects(words):
        load(tmp_path, device='cpu')
