"""Checkpoints that a user's hook saves in the main process only, as hooks for MMEngine do."""

from pathlib import Path

import pytest
import torch
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from ranks import on_ranks

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine.checkpoints import saver
from vit_plugin.errors import ConfigError

pytestmark = pytest.mark.filterwarnings('ignore')


class MainProcessSaveHook(Hook):
    """Saves in the main process after the second iteration, and keeps the error."""

    error: Exception | None = None

    def after_train_iter(self, runner, batch_idx: int, data_batch=None, outputs=None) -> None:
        if runner.iter == 1 and is_main_process():
            try:
                runner.save_checkpoint(runner.work_dir, 'mine.pth', by_epoch=False)
            except ConfigError as error:
                self.error = error


def train(work_dir: str, **options: object) -> MainProcessSaveHook:
    """Train one epoch with the hook, and return it."""
    runner = build(
        tiny_cfg(
            work_dir,
            launcher='pytorch',
            experiment_name='tiny',
            custom_hooks=[],
            **{
                'train_dataloader.batch_size': 8,
                'train_cfg.max_epochs': 1,
                'train_cfg.val_interval': 9,
                'default_hooks.checkpoint': None,
                **options,
            },
        )
    )
    hook = MainProcessSaveHook()
    runner.register_hook(hook)
    runner.train()
    assert runner.iter == 4
    return hook


def save_alone(work_dir: str) -> None:
    """Assert that the main process saves an unsharded model without an error."""
    assert train(work_dir).error is None


def save_sharded_alone(work_dir: str) -> None:
    """Assert that saving a sharded model in the main process only raises after a while."""
    saver.PART_OF_TIMEOUT = 0.05  # 3 s of the 60
    timeout = {'env_cfg.dist_cfg.timeout': 60.0}
    error = train(work_dir, sharding=dict(), **timeout).error
    if is_main_process():
        words = 'within 3 s (missing: 1), but each has a part of the sharded model; call'
        assert words in str(error)


def test_main_process_saves_an_unsharded_model_alone(tmp_path, launched):
    on_ranks(2, tmp_path, save_alone, str(tmp_path / 'work'))
    saved = torch.load(tmp_path / 'work/mine.pth', weights_only=False)
    assert saved['meta']['iter'] == 2
    assert {'state_dict', 'optimizer', 'param_schedulers'} <= saved.keys()


@pytest.mark.nightly
def test_main_process_saving_a_sharded_model_alone_raises(tmp_path: Path, launched):
    on_ranks(2, tmp_path, save_sharded_alone, str(tmp_path / 'work'))
    assert not (tmp_path / 'work/mine.pth').exists()
