"""Runs that are resumed on a different number of ranks."""

from itertools import chain
from pathlib import Path

import pytest
import torch
from engine.test_runtime_info import SpoilImagesHook
from mmengine.dist import all_gather_object, get_world_size, is_main_process
from mmengine.hooks import Hook
from ranks import on_ranks

from benchmarks.exactness import StopHook, StoppedError
from benchmarks.tiny_run import BATCH, build, differences, final_checkpoint, tiny_cfg
from vit_plugin.engine.runtime_info import sample_files
from vit_plugin.weights.reading.folders import read_folder

pytestmark = pytest.mark.filterwarnings('ignore')

# Settings with which a run has no randomness that depends on the number of ranks.
OPTIONS = {
    'model.train_cfg': None,
    'model.backbone.drop_rate': 0.0,
    'model.backbone.drop_path_rate': 0.0,
    'custom_hooks': [dict(type='vit_plugin.EMAHook', momentum=0.3)],
    'train_cfg.val_interval': 9,
}


class WitnessHook(Hook):
    """Asserts that a loaded state is saved unchanged, and records the samples of each step."""

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.samples: dict[int, list] = {}

    def before_train(self, runner) -> None:
        if runner.iter:
            position = dict(epoch=runner.epoch, iter=runner.iter)
            runner.saver.save(runner.work_dir, 'again', meta=position, folder=True)
            if is_main_process():
                assert (
                    differences(final_checkpoint(runner.work_dir), Path(runner.work_dir, 'again'))
                    == []
                )

    def before_train_iter(self, runner, batch_idx: int, data_batch: dict) -> None:
        self.samples[runner.iter] = sorted(chain(*all_gather_object(sample_files(data_batch))))


def resume_until(work_dir: str, stop: int | None, **options: object) -> dict[int, list]:
    """Resume the run of a folder until an iteration, or to its end. Returns the samples."""
    runner = build(
        tiny_cfg(
            work_dir,
            resume=True,
            experiment_name=f'after_{stop}',
            **{**OPTIONS, 'train_dataloader.batch_size': BATCH // get_world_size(), **options},
        )
    )
    witness = WitnessHook()
    runner.register_hook(witness)
    if stop is None:
        runner.train()
    else:
        runner.register_hook(StopHook(stop))
        with pytest.raises(StoppedError):
            runner.train()
    if is_main_process():
        torch.save(witness.samples, Path(work_dir, f'samples_{stop}'))
    return witness.samples


def resume_sharded(work_dir: str, stop: int | None) -> None:
    resume_until(work_dir, stop, sharding=dict())


@pytest.mark.nightly
def test_two_sharded_ranks_then_one_process_then_two(tmp_path):
    whole = resume_until(str(tmp_path / 'whole'), None)
    work_dir = tmp_path / 'run'
    for number, stop in enumerate((5, 9, None)):  # the middle part runs in one process
        (folder := tmp_path / f'ranks_{number}').mkdir()
        if stop == 9:
            resume_until(str(work_dir), stop)
        else:
            on_ranks(2, folder, resume_sharded, str(work_dir), stop)
    samples = {}
    for stop in (5, 9, None):
        samples |= torch.load(work_dir / f'samples_{stop}', weights_only=False)
    assert samples == whole
    expected = torch.load(final_checkpoint(tmp_path / 'whole'), weights_only=False)['state_dict']
    for name, value in read_folder(final_checkpoint(work_dir))['state_dict'].items():
        # Rounding in float32, at a learning rate of 1e-2.
        torch.testing.assert_close(value, expected[name], rtol=0, atol=2e-3)


def skip_a_step(work_dir: str) -> None:
    """Train on sharded ranks; SpoilImagesHook makes the loss of one rank NaN in one step."""
    runner = build(
        tiny_cfg(
            work_dir,
            sharding=dict(),
            experiment_name='bad',
            **{
                **OPTIONS,
                'train_dataloader.batch_size': BATCH // 2,
                'train_cfg.max_epochs': 2,
                'default_hooks.runtime_info.non_finite': 'skip',
            },
        )
    )
    runner.register_hook(SpoilImagesHook())
    runner.train()
    assert runner.iter == 8
    assert runner.message_hub.get_info('skipped_steps') == 1
    assert all(value.full_tensor().isfinite().all() for value in runner.model.parameters())


@pytest.mark.nightly
def test_sharded_ranks_skip_a_step_with_a_bad_loss(tmp_path):
    on_ranks(2, tmp_path, skip_a_step, str(tmp_path / 'work'))
    assert (tmp_path / 'work/non_finite_step_5.json').is_file()
