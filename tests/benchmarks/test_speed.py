"""The campaign ``speed``: its table, its record, and the sentences for wrong flags."""

import json
from functools import partial

import pytest
import torch


@pytest.fixture
def benchmark(run_campaign):
    threads = torch.get_num_threads()
    yield partial(
        run_campaign,
        'speed --arch Ti/16 --img-size 32 --batch-size 1 --rounds 1 --threads 1 --device cpu '
        '--peers timm',
    )
    torch.set_num_threads(threads)


def test_speed_prints_a_table_and_writes_a_record(benchmark, tmp_path):
    done = benchmark('--modes', 'forward', 'train', '--out', tmp_path / 'speed.json')
    assert done.returncode == 0, done.stderr
    assert 'Ti/16 32px x1 forward float32 cls_token' in done.stdout
    assert 'time/ours' in done.stdout
    record = json.loads((tmp_path / 'speed.json').read_text())
    assert record['machine']['threads'] == 1
    assert [result['case']['mode'] for result in record['results']] == ['forward', 'train']
    for result in record['results']:
        assert [row['implementation'] for row in result['rows']] == [
            'vit_plugin',
            'vit_plugin, no passes',
            'timm',
        ]


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['--modes', 'train'], '--modes does not go with --latency; it is for the comparison'),
        (['--device', 'cuda'], '--latency measures a CPU'),
    ],
)
def test_flags_that_latency_does_not_use_raise(run_campaign, arguments, words):
    done = run_campaign('speed', '--latency', *arguments)
    assert done.returncode == 1
    assert words in done.stderr


@pytest.mark.nightly
def test_latency_is_measured_for_several_models(run_campaign, tmp_path):
    pytest.importorskip('onnxruntime')
    models = ['timm://test_vit', 'timm://test_vit2']
    done = run_campaign(
        f'speed --latency --img-size 32 --rounds 1 --out {tmp_path}/speed.json --arch', *models
    )
    assert done.returncode == 0, done.stderr
    assert [line.split(' | ')[0] for line in done.stdout.splitlines() if '`' in line] == [
        f'| `{model}`' for model in models
    ]
    record = json.loads((tmp_path / 'speed.json').read_text())
    assert [row['model'] for row in record['results']] == models


@pytest.mark.nightly
def test_different_outputs_raise_and_write_nothing(benchmark, tmp_path):
    done = benchmark(
        '--out',
        tmp_path / 'out.json',
        '--cfg-options',
        'numerics.base=timm',
        'numerics.norm_cfg.eps=0.1',
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith('Error: timm ')
    assert not (tmp_path / 'out.json').exists()


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['--arch', 'B/17'], 'B/1'),
        (['--arch', 'X'], 'X'),
        (['--img-size', '0'], 'img-size'),
        (['--modes', 'sleep'], '--modes'),
        (['--batch-size', '0'], 'batch'),
        (['--rounds', '0'], 'rounds'),
        (['--device', 'cuda'], 'device'),
        (['--cfg-options', 'depth=3'], 'depth'),
        (['--threads', '0'], 'threads'),
        (['--out', 'absent/speed.txt'], 'must end in .json'),
    ],
)
def test_invalid_values_raise(benchmark, arguments, words):
    done = benchmark(*arguments)
    assert done.returncode
    assert words in done.stderr.splitlines()[-1]
