"""The preprocessing that pretrained weights expect."""

import json
from collections.abc import Callable

import pytest
from rejection import rejects

from vit_plugin.zoo.data_config import AUTHORS_DATA_CONFIG, data_config_of

CLIP = dict(
    mean=(0.48145466, 0.4578275, 0.40821073),
    std=(0.26862954, 0.26130258, 0.27577711),
    interpolation='bicubic',
    crop_pct=1.0,
    crop_mode='center',
)


@pytest.mark.parametrize(
    ('arch', 'source', 'expected'),
    [
        ('R50+B/16', None, AUTHORS_DATA_CONFIG),
        ('R50+B/16', 'R50+ViT-B_16.npz', AUTHORS_DATA_CONFIG),
        ({'embed_dims': 32}, 'x.npz', AUTHORS_DATA_CONFIG),
        ('B/16', 'timm://vit_base_patch16_clip_224.openai', dict(CLIP, crop_pct=0.9)),
        ('B/16', 'hf://timm/vit_base_patch16_clip_224.openai', dict(CLIP, crop_pct=0.9)),
        ('timm://vit_base_patch16_clip_224.openai', 'epoch_1.pth', dict(CLIP, crop_pct=0.9)),
        (
            'timm://vit_base_patch16_clip_224.openai',
            'timm://vit_base_patch16_clip_384.openai_ft_in1k',
            dict(CLIP, crop_mode='squash'),
        ),
    ],
)
def test_data_config_comes_from_the_weights_or_the_arch(arch, source, expected):
    assert data_config_of(arch, source) == expected


def test_unknown_tags_raise():
    with rejects(r'vit_base_patch16_224\.none.*vit-plugin zoo --pretrained lists'):
        data_config_of('B/16', 'timm://vit_base_patch16_224.none')


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Callable[..., dict]:
    """Writes a file of a model in a hub, and returns the model's data config."""

    def read(content: dict, name: str = 'preprocessor_config.json') -> dict:
        (tmp_path / name).write_text(json.dumps(content), encoding='utf-8-sig')
        return data_config_of('B/16', 'hf://org/name')

    monkeypatch.setattr('huggingface_hub.hf_hub_download', lambda _, file: str(tmp_path / file))
    return read


@pytest.fixture
def printed(monkeypatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr('vit_plugin.zoo.data_config.print_log', lambda text, *_: lines.append(text))
    return lines


@pytest.mark.parametrize(
    ('file', 'expected'),
    [
        (
            dict(
                image_mean=[0.5, 0.5, 0.5],
                image_std=[0.5, 0.5, 0.5],
                resample=2,
                size=dict(height=224, width=224),
            ),
            AUTHORS_DATA_CONFIG,
        ),
        (
            dict(
                image_mean=[0.1, 0.2, 0.3],
                image_std=[0.4, 0.5, 0.6],
                resample=3,
                size=dict(shortest_edge=256),
                do_center_crop=True,
                crop_size=dict(height=224, width=224),
            ),
            dict(
                mean=(0.1, 0.2, 0.3),
                std=(0.4, 0.5, 0.6),
                interpolation='bicubic',
                crop_pct=0.875,
                crop_mode='center',
            ),
        ),
        (
            dict(image_mean=[0.5, 0.5, 0.5], image_std=[0.5, 0.5, 0.5], size=224),
            AUTHORS_DATA_CONFIG,
        ),
    ],
)
def test_files_of_hugging_face_are_read(hub, printed, file, expected):
    assert hub(file) == expected
    assert hub({}) == AUTHORS_DATA_CONFIG
    assert printed[0].startswith('hf://org/name: preprocessor_config.json does not state mean, std')


MEAN = [0.1, 0.2, 0.3]
TIMM = dict(mean=MEAN, std=[0.4, 0.5, 0.6], interpolation='bicubic', crop_pct=0.9)


@pytest.mark.parametrize(
    ('name', 'content', 'mean'),
    [
        ('preprocessor_config.json', dict(image_mean=[0.1, 0.2, 0.3]), (0.1, 0.2, 0.3)),
        (
            'processor_config.json',
            dict(image_processor=dict(image_mean=[0.1, 0.2, 0.3])),
            (0.1, 0.2, 0.3),
        ),
        ('config.json', dict(pretrained_cfg=TIMM), (0.1, 0.2, 0.3)),
        ('config.json', dict(architectures=['ViTModel']), AUTHORS_DATA_CONFIG['mean']),
    ],
)
@pytest.mark.parametrize('local', [True, False])
def test_all_files_with_preprocessing_are_read(
    hub, monkeypatch, tmp_path, name, content, mean, local
):
    """transformers 5 writes processor_config.json, and timm config.json. ``local`` is a folder."""
    for file in ('config.json', 'model.safetensors'):
        (tmp_path / file).write_text('{}')
    monkeypatch.setattr('vit_plugin.zoo.data_config.training_settings', lambda source: {})
    data_config = hub(content, name)
    if local:
        data_config = data_config_of('B/16', str(tmp_path))
    assert data_config['mean'] == mean


def test_a_folder_is_found_below_the_home_and_not_without_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr('vit_plugin.zoo.data_config.training_settings', lambda source: {})
    monkeypatch.setenv('HOME', str(tmp_path))
    folder = tmp_path / 'dino'
    folder.mkdir()
    for file in ('config.json', 'model.safetensors'):
        (folder / file).write_text('{}')
    processor = dict(image_mean=[0.1, 0.2, 0.3])
    (folder / 'preprocessor_config.json').write_text(json.dumps(processor))
    assert data_config_of('B/16', '~/dino')['mean'] == (0.1, 0.2, 0.3)
    monkeypatch.chdir(folder)
    assert data_config_of('B/16', '') == AUTHORS_DATA_CONFIG


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('preprocessor_config.json', [1]),
        ('preprocessor_config.json', dict(image_mean=MEAN, image_std=MEAN, rescale_factor=0)),
        ('config.json', dict(pretrained_cfg={})),
        ('config.json', dict(pretrained_cfg=dict(TIMM, mean=0.5))),
        ('config.json', dict(pretrained_cfg=dict(TIMM, interpolation='x'))),
        ('config.json', dict(pretrained_cfg=dict(TIMM, crop_pct=1e-6))),
    ],
)
def test_malformed_files_state_nothing(hub, monkeypatch, printed, name, content):
    monkeypatch.setattr('vit_plugin.zoo.data_config.training_settings', lambda source: {})
    assert hub(content, name) == AUTHORS_DATA_CONFIG
    assert len(printed) == 1


def test_unknown_values_are_noted_and_the_others_used(hub, printed):
    assert hub(dict(image_mean=MEAN, image_std=MEAN, resample=9))['mean'] == tuple(MEAN)
    assert printed == [
        'hf://org/name: preprocessor_config.json does not state interpolation; assuming '
        'interpolation=bilinear.'
    ]
