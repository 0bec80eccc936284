"""``plan`` as a command: its table and JSON, its errors, and planning in several processes."""

import json
import shlex
import subprocess
import sys
from itertools import product

import pytest
import torch.distributed as dist

PURE = 'configs/vit/vit-mini-p2_1xb16_digits.py'
STRATEGIES, RECOMPUTE_MODES = ('DDP', 'FSDP2 of 2'), (False, 'selective', True)


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """torch cannot be forked after a backward, which another test may have run here."""
    monkeypatch.setattr('anyfolder.cores.cores', lambda: 1)


@pytest.mark.nightly
def test_a_plan_is_printed_and_written_as_json(run_command, tmp_path):
    out = tmp_path / 'plan.json'
    done = run_command(
        f'plan {PURE} --gpus 2 --gpu-memory 0.1 --num-images 1000 --price 2 --out {out} '
        '--cfg-options model.backbone.arch.num_layers=2'
    )
    assert done.returncode == 0, done.stderr
    for words in (*STRATEGIES, 'GPU-days', 'TPUv3-core-days', 'parameters, computes in float32'):
        assert words in done.stdout
    record = json.loads(out.read_text())
    rows = {(row['name'], row['recompute']): row for row in record['layouts']}
    assert {*rows} == {*product(STRATEGIES, RECOMPUTE_MODES)}
    for strategy in STRATEGIES:
        plain, selective, full = (rows[strategy, recompute] for recompute in RECOMPUTE_MODES)
        assert plain['peak'] > selective['peak'] > full['peak']
        assert 0 < plain['largest_batch'] < selective['largest_batch'] < full['largest_batch']
        assert plain['flops'] <= selective['flops'] < full['flops']
    replicated, sharded = (rows[strategy, False]['memory']['optimizer'] for strategy in STRATEGIES)
    assert sharded < replicated
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (f'{PURE} --gpus 12', '--gpus 12 does not fill machines of --gpus-per-node 8'),
        (
            f'{PURE} --gpus 1 --cfg-options model.head.in_channels=7',
            'does not fit the backbone',
        ),
        (
            f'{PURE} --gpus 1 --cfg-options model.backbone.out_type=featmap '
            'model.neck.type=GlobalAveragePooling model.head.in_channels=7',
            'model.head.in_channels=7 does not fit the neck',
        ),
        (
            'configs/detection/mask-rcnn_hybrid-vit-base-r50-p16_fpn_8xb2-1x_coco.py --gpus 1',
            'MaskRCNN is not a classifier',
        ),
        (f'{PURE} --gpus 1 --out setup.py/x.json', 'is a file; give another folder'),
    ],
)
def test_invalid_calls_raise_one_sentence(run_command, arguments, words):
    done = run_command(f'plan --gpu-memory 1 {arguments}')
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.nightly
def test_plans_that_do_not_fit_state_the_missing_memory(run_command):
    done = run_command(
        f'plan {PURE} --gpus 1 --gpu-memory 0.1 --reserved 0.9 --batch-size 1 --num-images 1000 '
        '--cfg-options model.backbone.img_size=256'
    )
    assert done.returncode == 1
    assert (
        'does not fit even with one image on a GPU: DDP with recomputing takes the least'
        in done.stderr
    )
    assert 'GiB more than the usable 0.01' in done.stderr


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != 'linux', reason='plans in one process')
def test_several_processes_give_the_plan_and_the_errors_of_one(run_command, tmp_path):
    def command(number: int) -> list[str]:
        out = tmp_path / f'{number}.json'
        small = ['--cfg-options', 'model.backbone.arch.num_layers=1']
        return [*f'plan {PURE} --gpus 2 --gpu-memory 0.1 --out {out}'.split(), *small]

    def in_processes(*arguments: str) -> subprocess.CompletedProcess:
        code = (
            'import anyfolder.cores; anyfolder.cores.cores = lambda: 2; '
            'from vit_plugin.__main__ import main; main()'
        )
        words = [sys.executable, '-W', 'ignore', '-c', code, *arguments]
        return subprocess.run(words, capture_output=True, text=True)

    assert run_command(shlex.join(command(1))).returncode == 0
    assert in_processes(*command(2)).returncode == 0
    assert (tmp_path / '1.json').read_text() == (tmp_path / '2.json').read_text()
    done = in_processes(*command(3), 'sharding.cpu_offload=True')
    assert done.returncode == 1
    assert 'sharding.cpu_offload=True is not planned' in done.stderr
    assert 'Traceback' not in done.stderr
