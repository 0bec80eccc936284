import json
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from PIL import Image
from tiny_models import TINY

CONFIG = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
FEW = (
    '--cfg-options',
    'train_dataloader.dataset.indices=200',
    'val_dataloader.dataset.indices=100',
)


def test_digits_are_told_apart_without_training(run_command, tmp_path):
    done = run_command(
        f'probe --config {CONFIG} --out {tmp_path}/found.json --shots 3 --seeds 2 '
        f'--work-dir {tmp_path}',
        *FEW,
    )
    assert not done.returncode, done.stderr
    found = json.loads((tmp_path / 'found.json').read_text())
    assert found.keys() == {'knn', 'linear', 'fewshot'}
    assert found['linear'] > 50  # of random weights; 10 classes
    assert len(found['fewshot']['3']) == 2
    assert f'linear: {found["linear"]:.2f} %' in done.stdout


def test_what_cannot_be_written_or_read_is_a_sentence(run_command, tmp_path):
    assert 'must end in .json' in run_command(f'probe --config {CONFIG} --out x.txt').stderr
    done = run_command(f'probe absent.pth --config {CONFIG} --work-dir {tmp_path}')
    assert "no checkpoint file 'absent.pth'" in done.stderr


@pytest.fixture
def shapes(tmp_path) -> Path:
    """Images with a bright square, and their masks."""
    rng, folder = np.random.default_rng(0), tmp_path / 'shapes'
    for part, number in (('train', 6), ('val', 2)):
        for kind in ('images', 'masks'):
            (folder / kind / part).mkdir(parents=True)
        for i in range(number):
            mask = np.zeros((64, 80), np.uint8)
            y, x = rng.integers(0, 40, 2)
            mask[y : y + 24, x : x + 24] = 1
            Image.fromarray(mask).save(folder / 'masks' / part / f'{i}.png')
            image = mask[..., None] * 150 + rng.integers(0, 60, (64, 80, 3))
            Image.fromarray(image.astype(np.uint8)).save(folder / 'images' / part / f'{i}.png')
    return folder


def test_backbones_are_compared_by_their_maps(run_command, tmp_path, shapes):
    paths = []
    for seed in range(2):
        torch.manual_seed(seed)
        cfg = Config.fromfile('configs/vit/vit-base-p16_8xb64-20k_in1k.py')
        cfg.model.backbone.arch = TINY
        cfg.model.backbone.img_size, cfg.model.head.in_channels = 32, 32
        model = MODELS.build(dict(cfg.model, _scope_='mmpretrain'))
        paths.append(str(tmp_path / f'{seed}.pth'))
        torch.save(dict(state_dict=model.state_dict(), meta=dict(cfg=cfg.pretty_text)), paths[-1])
    done = run_command(
        'probe',
        *paths,
        '--masks',
        shapes,
        '--depths',
        0.5,
        1,
        '--img-size',
        32,
        64,
        '--seeds',
        2,
        '--out',
        tmp_path / 'found.json',
    )
    assert not done.returncode, done.stderr
    rows = json.loads((tmp_path / 'found.json').read_text())
    assert len(rows) == 2 * 2 * 2 * 2  # models, sizes, depths, probes
    assert done.stdout.count('rank correlation between draws') == 2
    assert f'| {paths[0]} | 64 |' in done.stdout
    assert max(mean(row['scores']) for row in rows if row['size'] == 64) > 75


def test_what_does_not_go_with_masks_is_a_sentence(run_command, shapes, tmp_path):
    (file := tmp_path / 'x.pth').touch()
    done = run_command(f'probe {file} --masks {shapes} --probes fewshot')
    assert '--probes fewshot does not go with --masks' in done.stderr
    assert 'give checkpoints' in run_command('probe', '--masks', shapes).stderr
    assert 'compared on --masks' in run_command('probe', file, file).stderr
