"""A run that is only checked starts like any other, but takes no step."""

from pathlib import Path

import pytest

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.from_folder.checked_run import check_run

pytestmark = pytest.mark.filterwarnings('ignore')


def test_checked_run_takes_no_step(tmp_path, capsys):
    runner = build(tiny_cfg(tmp_path))
    check_run(runner)
    assert runner.iter == 0
    assert not list(tmp_path.rglob('*.pth'))
    shown = capsys.readouterr().out
    assert 'The run was checked up to its first step, and nothing was trained.' in shown
    assert 'torch computes with ' in shown
    assert not Path(runner.work_dir, '.running.json').exists()


def test_error_in_the_data_raises_in_the_check(tmp_path):
    cfg = tiny_cfg(tmp_path)
    cfg.train_dataloader.num_workers = 0
    runner = build(cfg)
    runner.train_loop.dataloader.dataset.pipeline.transforms.insert(0, lambda sample: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        check_run(runner)
