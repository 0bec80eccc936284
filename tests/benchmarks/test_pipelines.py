"""The campaigns ``pipelines`` and ``plain_loop``, on a few images."""

import pytest
from PIL import Image

from benchmarks.pipelines import compare_pipelines
from benchmarks.plain_loop import runner_overhead
from vit_plugin.config import read_config

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings('ignore')]


def test_pipelines_are_measured_on_the_same_files(tmp_path):
    for i in range(2):
        Image.effect_noise((64, 48), 60).convert('RGB').save(tmp_path / f'{i}.jpg')
    rates = compare_pipelines(tmp_path, 32, 1)
    assert {
        'decoding alone',
        'worker: vit_plugin',
        'complete: mmpretrain, cv2',
        'complete: timm',
        'complete: torchvision',
    } <= rates.keys()
    assert min(rate['images_per_core_s'] for rate in rates.values()) > 0
    with pytest.raises(SystemExit, match='no JPEG files'):
        compare_pipelines(tmp_path / 'none', 32, 1)


def test_the_overhead_of_a_run_is_measured_against_a_plain_loop(tmp_path):
    cfg = read_config('configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py')
    cfg.work_dir, cfg.launcher = str(tmp_path), 'none'
    times = runner_overhead(cfg, 3)
    assert min(times['runner_ms'], times['plain_ms']) > 0
