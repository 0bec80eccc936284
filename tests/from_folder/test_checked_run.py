"""A run that is only checked begins as any other, and takes no step."""

from pathlib import Path

import pytest

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.from_folder.checked_run import check_run

pytestmark = pytest.mark.filterwarnings('ignore')


def test_a_checked_run_is_built_and_takes_no_step(tmp_path, capsys):
    runner = build(tiny_cfg(tmp_path))
    check_run(runner)
    assert runner.iter == 0
    assert not list(tmp_path.rglob('*.pth'))
    said = 'The run was checked up to its first step, and nothing was trained.'
    shown = capsys.readouterr().out
    assert said in shown
    assert 'torch computes with ' in shown
    assert not Path(runner.work_dir, '.running.json').exists()


def test_a_batch_that_cannot_be_made_is_an_error_of_the_check(tmp_path):
    cfg = tiny_cfg(tmp_path)
    cfg.train_dataloader.num_workers = 0
    runner = build(cfg)
    runner.train_loop.dataloader.dataset.pipeline.transforms.insert(0, lambda sample: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        check_run(runner)
