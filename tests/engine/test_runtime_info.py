"""Losses are read from the device only when logged, and a NaN ends the run or skips the step."""

import json
from pathlib import Path

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner
from ranks import on_ranks
from rejection import rejects

from benchmarks.tiny_run import build, tiny_cfg


def history(cfg, name: str, monkeypatch, **changes) -> tuple[dict[str, list[float]], list[int]]:
    """The recorded scalars of a run, and the iterations in which Python read values of tensors."""
    cfg = cfg.copy()
    cfg.merge_from_dict(
        {
            'experiment_name': name,
            'val_cfg': None,
            'val_dataloader': None,
            'val_evaluator': None,
            'default_hooks.logger.interval': 3,
            'default_hooks.checkpoint.save_best': None,
            **changes,
        }
    )
    runner = Runner.from_cfg(cfg)
    reads = []
    for method in ('item', '__float__', 'tolist', '__bool__'):
        original = getattr(torch.Tensor, method)

        def record(tensor, original=original):
            if tensor.dtype.is_floating_point:
                reads.append(runner.iter)
            return original(tensor)

        monkeypatch.setattr(torch.Tensor, method, record)
    runner.train()
    monkeypatch.undo()
    scalars = runner.message_hub.log_scalars
    return {key: scalars[key].data[0].tolist() for key in ('train/loss', 'train/grad_norm')}, reads


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_values_are_read_only_to_log_and_are_those_of_mmengine(digits_config, monkeypatch):
    steps = 3 * 4  # epochs of 64 images in batches of 16
    values, reads = history(digits_config, 'deferred', monkeypatch)
    expected, mmengine_reads = history(
        digits_config,
        'mmengine',
        monkeypatch,
        **{
            'default_hooks.runtime_info.type': 'mmengine.RuntimeInfoHook',
            'optim_wrapper.type': 'mmengine.OptimWrapper',
        },
    )
    assert values == expected
    assert [len(scalars) for scalars in values.values()] == [steps, steps]
    # The first iteration, and in each epoch of 4 the third, which is logged, and the last.
    assert set(reads) == {0, 2, 3, 6, 7, 10, 11}
    assert set(mmengine_reads) == set(range(steps))


class ExplodingHead(torch.nn.Module):
    """A head whose losses are NaN after ``last_good`` steps."""

    def __init__(self, head: torch.nn.Module, last_good: int) -> None:
        super().__init__()
        self.head, self.last_good, self.num_classes = head, last_good, head.num_classes

    def loss(self, *args, **kwargs) -> dict:
        self.last_good -= 1
        return {
            name: value if self.last_good >= 0 else value * float('nan')
            for name, value in self.head.loss(*args, **kwargs).items()
        }

    def predict(self, *args, **kwargs) -> list:
        return self.head.predict(*args, **kwargs)


@pytest.mark.filterwarnings('ignore')
def test_nan_loss_ends_the_run_with_a_report(digits_config):
    runner = Runner.from_cfg(digits_config)
    runner.model.head = ExplodingHead(runner.model.head, 5)
    with rejects('The loss is nan at step 6, near a learning rate of .*: the run ends here'):
        runner.train()
    names = {path.name for path in Path(digits_config.work_dir).glob('epoch*')}
    assert names == {'epoch_1.pth'}
    report = json.loads(Path(digits_config.work_dir, 'non_finite_step_6.json').read_text())
    assert report['step'] == 6
    assert report['processes'][0]['losses']['loss'] == 'nan'
    assert len(report['processes'][0]['files']) == 16  # numbers, since digits are not in files
    state = torch.load(Path(digits_config.work_dir, 'epoch_1.pth'), weights_only=False)[
        'state_dict'
    ]
    assert all(value.isfinite().all() for value in state.values())


@pytest.mark.filterwarnings('ignore')
def test_too_many_skipped_steps_in_a_row_raise(digits_config):
    digits_config.default_hooks.runtime_info.update(non_finite='skip', max_skipped=2)
    runner = Runner.from_cfg(digits_config)
    runner.model.head = ExplodingHead(runner.model.head, 5)
    with rejects('3 steps in a row were skipped up to step 8'):
        runner.train()
    assert runner.message_hub.get_info('skipped_steps') == 3
    assert all(value.isfinite().all() for value in runner.model.state_dict().values())
    assert len(list(Path(digits_config.work_dir).glob('non_finite_step_*.json'))) == 3


class SpoilImagesHook(Hook):
    """Makes the images of step 5 NaN on rank 1."""

    priority = 'VERY_HIGH'

    def before_train_iter(self, runner, batch_idx: int, data_batch: dict) -> None:
        if runner.iter == 4 and torch.distributed.get_rank() == 1:
            data_batch['inputs'] = data_batch['inputs'] * float('nan')


def train_with_a_bad_batch(work_dir: str) -> None:
    """Train on two ranks with images of NaN on one of them, before the first save."""
    runner = build(
        tiny_cfg(
            work_dir,
            'iter',
            launcher='pytorch',
            experiment_name='tiny',
            custom_hooks=[],
            **{
                'train_dataloader.batch_size': 8,
                'train_cfg.val_interval': 12,
                'default_hooks.logger.interval': 4,
                'default_hooks.checkpoint.interval': 5,
                'default_hooks.checkpoint.max_keep_ckpts': 1,
            },
        )
    )
    runner.register_hook(SpoilImagesHook())
    with rejects('The loss is nan at step 5'):
        runner.train()


@pytest.mark.filterwarnings('ignore')
def test_nan_loss_on_another_rank_prevents_the_save(tmp_path, launched):
    on_ranks(2, tmp_path, train_with_a_bad_batch, str(tmp_path / 'work'))
    assert not list((tmp_path / 'work').glob('iter_*'))
    assert not (tmp_path / 'work' / 'last_checkpoint').exists()


def test_skipping_needs_our_optimizer_wrapper(digits_config):
    digits_config.default_hooks.runtime_info.non_finite = 'skip'
    digits_config.optim_wrapper.type = 'mmengine.OptimWrapper'
    with rejects(r"needs an optimizer wrapper .*'vit_plugin.OptimWrapper'"):
        Runner.from_cfg(digits_config).train()
