import json
from functools import partial

import pytest
import torch


@pytest.fixture
def benchmark(run_tool):
    threads = torch.get_num_threads()
    yield partial(
        run_tool,
        'benchmark',
        '--models',
        'Ti/16',
        '--sizes',
        32,
        '--batch',
        1,
        '--rounds',
        1,
        '--threads',
        1,
        '--device',
        'cpu',
        '--peers',
        'timm',
    )
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
            'vit_plugin',
            'vit_plugin, no passes',
            'timm',
        ]


@pytest.mark.nightly
def test_other_outputs_end_it_with_a_sentence(benchmark, tmp_path):
    done = benchmark(
        '--options', 'numerics.base=timm', 'numerics.norm_cfg.eps=0.1', '--out', tmp_path / 'out'
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith('Error: timm ')
    assert not (tmp_path / 'out').exists()
