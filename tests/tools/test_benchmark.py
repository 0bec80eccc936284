import json
from functools import partial

import pytest
import torch
from PIL import Image


@pytest.fixture
def benchmark(run_tool):
    threads = torch.get_num_threads()
    yield partial(run_tool, 'benchmark', '--models', 'Ti/16', '--sizes', 32, '--batch', 1, '--rounds', 1,
                  '--threads', 1, '--device', 'cpu', '--peers', 'timm')
    torch.set_num_threads(threads)


def test_table_and_record(benchmark, tmp_path):
    done = benchmark('--modes', 'forward', 'train', '--out', tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'Ti/16 32px x1 forward float32 cls_token' in done.stdout
    assert 'time/ours' in done.stdout
    record = json.loads((tmp_path / 'benchmark.json').read_text())
    assert record['machine']['threads'] == 1
    assert [result['case']['mode'] for result in record['results']] == ['forward', 'train']
    for result in record['results']:
        assert [row['implementation'] for row in result['rows']] == [
            'vit_plugin', 'vit_plugin, no passes', 'timm']


@pytest.mark.nightly
def test_other_outputs_end_it_with_a_sentence(benchmark, tmp_path):
    done = benchmark('--options', 'numerics.base=timm', 'numerics.norm_cfg.eps=0.1', '--out', tmp_path / 'out')
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith('Error: timm ')
    assert not (tmp_path / 'out').exists()


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_pipelines_are_measured_on_the_same_files(benchmark, tmp_path):
    for i in range(2):
        Image.effect_noise((64, 48), 60).convert('RGB').save(tmp_path / f'{i}.jpg')
    done = benchmark('--images', tmp_path, '--out', tmp_path)
    assert done.returncode == 0, done.stderr
    rates = {row['name']: row['images_per_core_s'] for row in json.loads(
        (tmp_path / 'benchmark.json').read_text())['results']}
    assert {'decoding alone', 'worker: vit_plugin', 'complete: mmpretrain, cv2', 'complete: timm'} <= rates.keys()
    assert min(rates.values()) > 0
    assert all(name in done.stdout for name in rates)
    done = benchmark('--images', tmp_path / 'none')
    assert 'There are no JPEG files' in done.stderr.splitlines()[-1]


@pytest.mark.nightly
def test_what_the_runner_adds_is_measured_beside_a_plain_loop(benchmark, tmp_path):
    done = benchmark('--runner', 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py', '--rounds', 3,
                     '--out', tmp_path)
    assert done.returncode == 0, done.stderr
    result, = json.loads((tmp_path / 'benchmark.json').read_text())['results']
    assert result['runner_ms'] > 0
    assert result['plain_ms'] > 0
    assert f'overhead {result["overhead"]:.2%}' in done.stdout
