"""All pictures of ``visualize``, for checkpoints with a config and for weights with an arch."""

from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.registry import MODELS, init_default_scope
from safetensors.torch import save_file

from vit_plugin.commands.visualize import draw_pictures
from vit_plugin.config import read_config
from vit_plugin.report.pictures import pictures

DIGITS = 'configs/vit/vit-mini-p2_1xb16_digits.py'
# A class token, whose attention is drawn. The recipe has none.
OPTIONS = {'model.backbone.with_cls_token': True, 'model.backbone.out_type': 'cls_token'}
WITH_TOKEN = ('--cfg-options', *(f'{name}={value}' for name, value in OPTIONS.items()))
pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks


@pytest.fixture
def image(tmp_path) -> Path:
    path = tmp_path / 'photo.png'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8))
    return path


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    cfg = read_config(DIGITS, OPTIONS)
    init_default_scope(cfg.default_scope)
    model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor))
    torch.save(
        dict(
            state_dict=model.state_dict(), meta=dict(dataset_meta=dict(classes=list('abcdefghij')))
        ),
        tmp_path / 'digits.pth',
    )
    return tmp_path / 'digits.pth'


@pytest.mark.parametrize(
    ('picture', 'written'),
    [
        ('attention', 'photo_attention'),
        ('rollout', 'photo_rollout'),
        ('distance', 'distance'),
        ('features', 'features'),
        ('posembed', 'posembed'),
    ],
)
def test_pictures_are_written_with_a_config(
    run_command, image, checkpoint, tmp_path, picture, written
):
    images = [] if picture == 'posembed' else [image]
    done = run_command(
        f'visualize --config {DIGITS} --out {tmp_path}/out {checkpoint} {picture}',
        *images,
        *WITH_TOKEN,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / 'out').iterdir()] == [f'{written}.png']
    assert cv2.imread(str(tmp_path / f'out/{written}.png')).std() > 0


def test_cam_takes_the_name_of_a_class(run_command, image, checkpoint, tmp_path):
    call = f'visualize {checkpoint} cam {image} --config {DIGITS} --out {tmp_path}/out --class'
    assert run_command(call, 'c', *WITH_TOKEN).returncode == 0
    assert "no class 'k'; give one of a, b" in run_command(call, 'k', *WITH_TOKEN).stderr


def test_weights_without_a_head_give_features_and_no_cam(run_command, image, checkpoint, tmp_path):
    state = torch.load(checkpoint, weights_only=True)['state_dict']
    weights = tmp_path / 'headless.safetensors'
    save_file(
        {name: value for name, value in state.items() if not name.startswith('head.')}, weights
    )
    call = f'visualize {weights} {{}} {image} --config {DIGITS} --out {tmp_path}/out'
    assert run_command(call.format('features'), *WITH_TOKEN).returncode == 0
    assert (
        'is not of the complete model: it has no values for head.'
        in run_command(call.format('cam'), *WITH_TOKEN).stderr
    )


def test_attention_is_drawn_for_a_folder_with_weights_and_an_arch(run_command, image, tmp_path):
    from vit_plugin.models import VisionTransformer

    torch.save(VisionTransformer('Ti/16', img_size=32).state_dict(), tmp_path / 'ti.pth')
    folder = tmp_path / 'images'
    folder.mkdir()
    for name, shape in (('a', (40, 60, 3)), ('b', (60, 40, 3))):
        cv2.imwrite(
            str(folder / f'{name}.jpg'),
            np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8),
        )
    done = run_command(
        f'visualize {tmp_path}/ti.pth attention {folder} --arch Ti/16 --img-size 48 '
        f'--blocks 1 -1 --heads 2 --formats png --out {tmp_path}/out --cfg-options '
        'img_size=32'
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {
        'a_attention.png',
        'b_attention.png',
    }


def test_pictures_of_images_with_one_stem_differ(run_command, image, checkpoint, tmp_path):
    other = image.with_suffix('.jpg')
    cv2.imwrite(str(other), cv2.imread(str(image)))
    done = run_command(
        f'visualize --config {DIGITS} --out {tmp_path}/out {checkpoint} attention',
        image,
        other,
        *WITH_TOKEN,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {
        'photo.png_attention.png',
        'photo.jpg_attention.png',
    }


def test_invalid_calls_raise_one_sentence(run_command, image, checkpoint, tmp_path):
    damaged = tmp_path / 'damaged.jpg'
    damaged.write_bytes(b'no picture')
    (tmp_path / 'empty').mkdir()
    config = ('--config', DIGITS)
    for arguments, words in (
        ((checkpoint, 'attention', damaged, *config), "damaged.jpg' cannot be read"),
        ((checkpoint, 'attention', 'none.jpg', *config), "There is no image 'none.jpg'"),
        (
            (checkpoint, 'attention', tmp_path / 'empty', *config),
            'There are no images in the folder',
        ),
        ((checkpoint, 'attention', *config), 'attention needs IMAGE; give at least one'),
        ((checkpoint, 'posembed', image, *config), 'shows the model alone'),
        ((checkpoint, 'attention', image), 'holds no config; give it with --config'),
        (
            (checkpoint, 'attention', image, *config, '--img-size', '100000'),
            'would have 2,500,000,000 patches',
        ),
        ((checkpoint, 'attention', image, *config, '--arch', 'Ti/16'), 'give one of them'),
        (
            (checkpoint, 'attention', image, *config, '--blocks', '7'),
            'there is no block 7; this model has 6',
        ),
        (
            (checkpoint, 'attention', image, *config, '--heads', '-5'),
            'there is no head -5; this model has 4',
        ),
        (('none.pth', 'attention', image, *config), "There is no checkpoint file 'none.pth'"),
    ):
        options = WITH_TOKEN if '--config' in arguments else ()
        done = run_command('visualize', *arguments, '--out', tmp_path / 'out', *options)
        assert done.returncode == 1
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('picture', 'flag'),
    [
        ('cam', '--blocks'),
        ('rollout', '--heads'),
        ('attention', '--class'),
        ('posembed', '--img-size'),
    ],
)
def test_flags_of_other_pictures_raise(run_command, image, picture, flag):
    images = [] if picture == 'posembed' else [image]
    done = run_command('visualize', 'digits.pth', picture, *images, '--out', 'out', flag, '1')
    assert done.returncode == 1
    assert f'{flag} needs ' in done.stderr
    assert picture not in done.stderr


def test_pictures_of_images_with_one_stem_do_not_replace_each_other(monkeypatch):
    monkeypatch.setitem(pictures.PER_IMAGE, 'rollout', lambda model, image, blocks: image)
    names = ['a.jpg', 'a.png', 'b.png']
    flags = dict(picture='rollout', blocks=None, heads=None, img_size=None, images=names)
    targets = {name: Path('out', name) for name in names}
    args = SimpleNamespace(**flags, targets=targets, **{'class': None})
    reading = SimpleNamespace(read=lambda source, convert: source)
    drawn = draw_pictures(SimpleNamespace(classes=[], model=None), args, reading)
    assert [path.name for path, _ in drawn] == ['a.jpg_rollout', 'a.png_rollout', 'b_rollout']
