"""The command line that compares backbones by dense probes."""

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

from benchmarks.dense_probe import DENSE_PROBES
from benchmarks.dense_probing import DENSE_PROBES as PROBES


def test_the_flag_has_the_names_of_all_probes():
    assert (*PROBES,) == DENSE_PROBES


@pytest.fixture
def shapes(tmp_path) -> Path:
    """Images with a bright square, and their masks."""
    rng, folder = np.random.default_rng(0), tmp_path / 'shapes'
    for split, number in (('train', 6), ('val', 2)):
        for name in ('images', 'masks'):
            (folder / name / split).mkdir(parents=True)
        for i in range(number):
            mask = np.zeros((64, 80), np.uint8)
            y, x = rng.integers(0, 40, 2)
            mask[y : y + 24, x : x + 24] = 1
            Image.fromarray(mask).save(folder / 'masks' / split / f'{i}.png')
            image = mask[..., None] * 150 + rng.integers(0, 60, (64, 80, 3))
            Image.fromarray(image.astype(np.uint8)).save(folder / 'images' / split / f'{i}.png')
    return folder


def test_backbones_are_compared_by_probes_of_their_maps(run_campaign, tmp_path, shapes):
    paths = []
    for seed in range(2):
        torch.manual_seed(seed)
        cfg = Config.fromfile('configs/vit/vit-base-p16_8xb64-20k_in1k.py')
        cfg.model.backbone.arch = TINY
        cfg.model.backbone.img_size, cfg.model.head.in_channels = 32, 32
        model = MODELS.build(dict(cfg.model, _scope_='mmpretrain'))
        paths.append(str(tmp_path / f'{seed}.pth'))
        torch.save(dict(state_dict=model.state_dict(), meta=dict(cfg=cfg.pretty_text)), paths[-1])
    done = run_campaign(
        'dense_probe',
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
        tmp_path / 'scores.json',
    )
    assert not done.returncode, done.stderr
    rows = json.loads((tmp_path / 'scores.json').read_text())
    assert len(rows) == 2 * 2 * 2 * 2  # models, sizes, depths, probes
    assert done.stdout.count('rank correlation between draws') == 2
    assert f'| {paths[0]} | 64 |' in done.stdout
    assert max(mean(row['scores']) for row in rows if row['size'] == 64) > 75


def test_invalid_calls_raise(run_campaign, shapes, tmp_path):
    file = tmp_path / 'x.pth'
    file.touch()
    done = run_campaign(f'dense_probe {file} --masks {shapes} --probes fewshot')
    assert "invalid choice: 'fewshot'" in done.stderr
    assert 'required: --masks' in run_campaign('dense_probe', file).stderr
