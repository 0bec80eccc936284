"""The tools take checkpoint folders in place of files."""

from pathlib import Path

import pytest
import torch

from benchmarks.tiny_run import EMA_HOOKS, build, tiny_cfg
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.reading.files import read_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='module')
def trained(tmp_path_factory) -> tuple[Path, Path]:
    """A config and the last checkpoint of its run, a folder."""
    folder = tmp_path_factory.mktemp('trained')
    options = {'default_hooks.checkpoint.format': 'folder', 'train_cfg.max_epochs': 1}
    cfg = tiny_cfg(folder / 'work', custom_hooks=EMA_HOOKS, **options)
    cfg.test_dataloader, cfg.test_evaluator, cfg.test_cfg = (
        cfg.val_dataloader,
        cfg.val_evaluator,
        {},
    )
    cfg.dump(folder / 'config.py')
    build(cfg).train()
    return folder / 'config.py', folder / 'work/epoch_1'


@pytest.mark.parametrize('target', ['out.pth', 'out.safetensors', 'out.npz'])
def test_convert_writes_a_folder_as_a_file(run_command, trained, tmp_path, target):
    done = run_command(f'convert {trained[1]} --out {tmp_path}/{target}')
    assert done.returncode == 0, done.stderr
    before, after = open_checkpoint(trained[1]).weights, open_checkpoint(tmp_path / target).weights
    assert set(before) == set(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    if target == 'out.pth':
        assert read_checkpoint(tmp_path / target)['meta']['iter'] == 4


@pytest.mark.nightly
def test_a_folder_is_tested_like_a_file(run_command, trained, tmp_path):
    run_command(f'convert {trained[1]} --out {tmp_path}/out.pth')
    for checkpoint in (trained[1], tmp_path / 'out.pth'):
        out = tmp_path / f'{Path(checkpoint).stem}.json'
        done = run_command(
            f'test {trained[0]} {checkpoint} --out {out} --out-item metrics --work-dir {tmp_path}'
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / 'epoch_1.json').read_text() == (tmp_path / 'out.json').read_text()


@pytest.mark.parametrize('tool', ['test', 'convert'])
def test_other_folders_raise_one_sentence(run_command, trained, tmp_path, tool):
    arguments = (
        (trained[0], tmp_path) if tool == 'test' else (tmp_path, '--out', tmp_path / 'out.pth')
    )
    done = run_command(tool, *arguments)
    assert done.returncode == 1
    assert 'has no manifest.json' in done.stderr
    assert 'Traceback' not in done.stderr
