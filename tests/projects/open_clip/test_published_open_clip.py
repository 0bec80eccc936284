"""Folders of OpenCLIP become their image tower here: features, pixels, and what is refused."""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from extras import needs_task
from mmengine.dataset import pseudo_collate
from PIL import Image
from rejection import rejects
from safetensors.torch import save_file
from timm.models.vision_transformer import checkpoint_filter_fn
from torchvision import transforms

from vit_plugin.from_folder.starting_point import StartingPoint
from vit_plugin.inference.load import load
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.project import declared_rows
from vit_plugin.weights import FORMATS
from vit_plugin.weights.hub import is_of_hub
from vit_plugin.zoo.data_config import data_config_of

pytestmark = needs_task('classification')

MEAN, STD = [0.48, 0.46, 0.41], [0.27, 0.26, 0.28]
TOWER = dict(image_size=32, layers=2, width=64, head_width=32, patch_size=8)
needs_timm_reader = pytest.mark.skipif(
    'timm' not in declared_rows('published'), reason='the project timm_models is left out'
)


def write(folder: Path, vision: dict, state: dict, **changes) -> Path:
    """Write a folder as ``push_to_hf_hub`` of OpenCLIP does; ``changes`` are of the config."""
    folder.mkdir(exist_ok=True)
    model = dict(embed_dim=16, vision_cfg=vision, text_cfg=dict(width=16), **changes)
    pixels = dict(mean=MEAN, std=STD, interpolation='bicubic', resize_mode='shortest')
    content = dict(model_cfg=model, preprocess_cfg=pixels)
    (folder / 'open_clip_config.json').write_text(json.dumps(content))
    text = {'text.ln_final.weight': torch.ones(16), 'logit_scale': torch.ones(())}
    save_file({**state, **text}, folder / 'open_clip_model.safetensors')
    return folder


def vit(quick_gelu: bool = False) -> tuple[torch.nn.Module, dict]:
    """timm's ViT of CLIP with random weights, and these by OpenCLIP's names."""
    torch.manual_seed(0)
    ours = VisionTransformer(
        dict(embed_dims=64, num_layers=2, num_heads=2, feedforward_channels=256, patch_size=8),
        img_size=32,
        patch_embed=dict(bias=False),
        encoder=dict(pre_norm=True),
    )
    for value in ours.parameters():
        torch.nn.init.normal_(value, std=0.2)
    written, unnamed = FORMATS['clip'].export(ours.state_dict(), heads=2)
    assert not unnamed
    state = {name: value.contiguous() for name, value in written.items()}
    state['visual.proj'] = torch.ones(64, 16)
    name = f'vit_base_patch32_clip{"_quickgelu" if quick_gelu else ""}_224'
    sizes = dict(img_size=32, patch_size=8, embed_dim=64, depth=2, num_heads=2)
    theirs = timm.create_model(name, num_classes=0, **sizes).eval()
    # timm's own translation of OpenCLIP's names; the projection is its head.
    translated = checkpoint_filter_fn(dict(state), theirs)
    theirs.load_state_dict({k: v for k, v in translated.items() if not k.startswith('head.')})
    return theirs, state


@pytest.mark.parametrize('quick_gelu', [False, True])
def test_features_of_a_vit_equal_those_of_timm(quick_gelu, tmp_path):
    theirs, state = vit(quick_gelu)
    folder = write(tmp_path / 'a', TOWER, state, quick_gelu=quick_gelu)
    assert is_of_hub(str(folder))
    ours = load(folder, device='cpu', classify=False)
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(ours.model.extract_feat(images)[-1], theirs(images))


@pytest.mark.parametrize('mode', ['shortest', 'squash'])
@pytest.mark.parametrize('interpolation', ['bicubic', 'bilinear'])
@pytest.mark.parametrize('tower', ['vit', pytest.param('timm', marks=needs_timm_reader)])
def test_pixels_equal_those_of_torchvision(mode, interpolation, tower, tmp_path):
    if tower == 'vit':
        size, folder = 32, write(tmp_path / 'a', TOWER, vit()[1])
    else:
        size = 160
        folder = write(tmp_path / 'a', *timm_tower('test_vit', '', 'linear')[1:])
    path = folder / 'open_clip_config.json'
    content = json.loads(path.read_text())
    content['preprocess_cfg'] |= dict(interpolation=interpolation, resize_mode=mode)
    path.write_text(json.dumps(content))
    ours = load(folder, device='cpu', classify=False)
    image = np.random.default_rng(0).integers(0, 256, (70, 41, 3), dtype=np.uint8)
    how = transforms.InterpolationMode(interpolation)
    resize = transforms.Resize(size if mode == 'shortest' else (size, size), how)
    steps = [resize, transforms.CenterCrop(size), transforms.ToTensor()]
    expected = transforms.Compose([*steps, transforms.Normalize(MEAN, STD)])(Image.fromarray(image))
    sample = ours.sample(np.ascontiguousarray(image[..., ::-1]))
    inputs = ours.model.data_preprocessor(pseudo_collate([sample]), False)['inputs']
    torch.testing.assert_close(inputs, expected[None], rtol=0, atol=1e-5)
    stated = data_config_of('B/16', str(folder))
    assert (stated['mean'], stated['interpolation']) == (tuple(MEAN), interpolation)


def timm_tower(name: str, pool: str, projection: str | None) -> tuple[torch.nn.Module, dict, dict]:
    """A trunk with random weights, its ``vision_cfg`` and its state, as OpenCLIP builds them."""
    torch.manual_seed(0)
    if projection in ('linear', 'mlp'):
        trunk = timm.create_model(name)
        trunk.reset_classifier(0, **(dict(global_pool=pool) if pool else {}))
    else:
        trunk = timm.create_model(
            name, num_classes=0 if projection == 'none' else 16, global_pool=pool
        )
    state = {f'visual.trunk.{key}': value.clone() for key, value in trunk.state_dict().items()}
    if projection == 'linear':
        state['visual.head.proj.weight'] = torch.ones(16, trunk.num_features)
    vision = dict(
        timm_model_name=name,
        timm_model_pretrained=False,
        timm_pool=pool,
        timm_proj=projection,
        image_size=160,
    )
    return trunk.eval(), vision, state


@needs_timm_reader
@pytest.mark.parametrize(
    ('name', 'pool', 'projection'),
    [
        ('test_vit', '', 'linear'),  # BiomedCLIP
        ('test_vit', 'avg', 'linear'),  # the defaults; the norm stays before the average
        ('test_vit3', 'map', 'none'),  # SigLIP
        ('test_vit', 'token', None),  # EVA-02-CLIP; the trunk's head is the projection
        ('test_convnext', '', 'linear'),
        ('test_convnext', 'avg', None),
        ('test_byobnet', 'avg', None),  # MobileCLIP
    ],
)
def test_features_of_a_timm_tower_equal_those_of_timm(name, pool, projection, tmp_path):
    trunk, vision, state = timm_tower(name, pool, projection)
    ours = load(write(tmp_path / 'a', vision, state), device='cpu', classify=False)
    trunk.reset_classifier(0)
    images = torch.rand(2, 3, 160, 160)
    with torch.no_grad():
        features = ours.model.extract_feat(images)[-1]
        torch.testing.assert_close(features, trunk(images))


@needs_timm_reader
def test_a_tower_that_timm_computes_is_a_starting_point(tmp_path):
    from vit_plugin.models import TimmBackbone

    trunk, vision, state = timm_tower('test_convnext', 'avg', 'linear')
    folder = write(tmp_path / 'a', vision, state)
    start = StartingPoint('', str(folder), (0, 64))
    assert start.wrapped == dict(type='vit_plugin.TimmBackbone', model_name='test_convnext')
    backbone = TimmBackbone('test_convnext')
    load_weights(backbone, start.opened)
    theirs = trunk.state_dict()
    assert all(torch.equal(theirs[name], x) for name, x in backbone.model.state_dict().items())
    with rejects('give it as --weights to start from its weights'):
        StartingPoint(str(folder), None, (0, 64))


def test_a_deeper_tower_of_text_is_left_out(tmp_path):
    """Its blocks have the names of the image tower, without the prefix."""
    theirs, state = vit()
    block = 'visual.transformer.resblocks.0.'
    parts = {key.removeprefix(block): state[key] for key in state if key.startswith(block)}
    state |= {
        f'transformer.resblocks.{i}.{part}': value.clone()
        for i in range(4)
        for part, value in parts.items()
    }
    ours = load(write(tmp_path / 'a', TOWER, state), device='cpu', classify=False)
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(ours.model.extract_feat(images)[-1], theirs(images))


def test_files_of_transformers_come_first(tmp_path):
    """LAION's folders have both."""
    folder = write(tmp_path / 'a', TOWER, vit()[1])
    (folder / 'config.json').write_text('{"model_type": "bert"}')
    save_file(dict(a=torch.ones(1)), folder / 'model.safetensors')
    with rejects("model_type='bert'"):
        load(folder, device='cpu')
    assert load(folder / 'open_clip_model.safetensors', device='cpu', classify=False)


@pytest.mark.parametrize(
    ('section', 'change', 'words'),
    [
        ('vision_cfg', dict(attentional_pool=True), 'vision_cfg.attentional_pool=True'),
        ('vision_cfg', dict(no_ln_pre=True), 'vision_cfg.no_ln_pre=True'),
        ('vision_cfg', dict(layers=[3, 4, 6, 3]), "which are a ResNet's, and supported are ViTs"),
        (
            'vision_cfg',
            dict(width=32),
            'image tower of its open_clip_config.json has hidden_size=32',
        ),
        ('vision_cfg', dict(magic=1), 'vision_cfg.magic=1, which no model here computes'),
        ('vision_cfg', dict(timm_model_name='no_such'), "'no_such', which timm .* lacks"),
        (
            'vision_cfg',
            dict(timm_model_name='test_vit.no_tag', timm_proj=None),
            "'test_vit.no_tag', which timm .* lacks",
        ),
        ('vision_cfg', dict(timm_model_name='test_vit', timm_proj='magic'), "timm_proj='magic'"),
        ('vision_cfg', dict(timm_model_name='test_vit', timm_pool='rot_attn'), "'rot_attn'"),
        ('preprocess_cfg', dict(resize_mode='longest'), 'which pads or crops to a rectangle'),
        ('preprocess_cfg', dict(resize_mode='magic'), "resize_mode='magic'"),
        (
            'preprocess_cfg',
            dict(mean=[0.5]),
            r'its open_clip_config.json has preprocess_cfg.mean=\[0.5\], where',
        ),
        ('preprocess_cfg', dict(size=64), 'where the tower has 32 x 32 pixels'),
        ('model_cfg', dict(magic=1), 'model_cfg.magic=1'),
    ],
)
def test_unsupported_entries_raise(section, change, words, tmp_path):
    folder = write(tmp_path / 'a', deepcopy(TOWER), vit()[1])
    path = folder / 'open_clip_config.json'
    content = json.loads(path.read_text())
    sections = dict(content, vision_cfg=content['model_cfg']['vision_cfg'])
    sections[section] |= change
    path.write_text(json.dumps(content))
    with rejects(words):
        load(folder, device='cpu', classify=False)
