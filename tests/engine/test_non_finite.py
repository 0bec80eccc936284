"""A state with NaN or infinity is not saved, so the last finite checkpoint stays."""

import re

import pytest
import torch
from mmengine.hooks import Hook
from ranks import on_ranks
from rejection import rejects

from benchmarks.tiny_run import build, final_checkpoint, tiny_cfg
from vit_plugin.engine.non_finite import find_non_finite
from vit_plugin.weights.reading.files import read_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore')


class SpoilGradientsHook(Hook):
    """Makes a gradient NaN in one step, but not the loss."""

    priority = 'VERY_HIGH'

    def __init__(self, iteration: int, rank: int = 0) -> None:
        self.iteration, self.rank = iteration, rank

    def before_train_iter(self, runner, batch_idx: int, data_batch: dict) -> None:
        if runner.iter + 1 == self.iteration:
            weight = dict(runner.model.named_parameters())['head.layers.head.weight']

            def spoil(grad):
                handle.remove()
                return grad * float('nan')

            handle = weight.register_hook(spoil)


def spoiled_runner(folder, iteration=8, **options):
    """A runner whose weights become NaN in an iteration, by default the last of the second epoch.

    The next loss, which would show it, comes only after the save.
    """
    runner = build(tiny_cfg(folder, **{'optim_wrapper.clip_grad': None, **options}))
    runner.register_hook(SpoilGradientsHook(iteration))
    return runner


# How checkpoints are saved: in which format, and whether in the background.
FORMATS = [
    ('file', False),
    pytest.param('folder', True, marks=pytest.mark.nightly),
    pytest.param('file', True, marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(('checkpoint_format', 'background'), FORMATS)
def test_non_finite_weights_keep_the_last_checkpoint(tmp_path, checkpoint_format, background):
    options = {
        'default_hooks.checkpoint.max_keep_ckpts': 1,
        'default_hooks.checkpoint.format': checkpoint_format,
        'default_hooks.checkpoint.background': background,
    }
    with rejects(r'head\.weight is not finite after step 8, so nothing is saved'):
        spoiled_runner(tmp_path, **options).train()
    last = final_checkpoint(tmp_path)
    assert last.name.startswith('epoch_1')
    weights = read_checkpoint(last)['state_dict']
    assert all(value.isfinite().all() for value in weights.values())
    resumed = build(tiny_cfg(tmp_path, resume=True, **options, **{'optim_wrapper.clip_grad': None}))
    resumed.train()
    assert resumed.iter == 12


def test_run_that_ignores_non_finite_losses_saves_no_checkpoint(tmp_path):
    options = {
        'default_hooks.runtime_info.non_finite': 'ignore',
        'default_hooks.checkpoint.max_keep_ckpts': 1,
    }
    runner = spoiled_runner(tmp_path, **options)
    runner.train()
    assert runner.iter == 12
    assert final_checkpoint(tmp_path).name == 'epoch_1.pth'
    assert runner.message_hub.get_info('last_ckpt') == str(tmp_path / 'epoch_1.pth')
    (best,) = tmp_path.glob('best_*')
    assert re.fullmatch(r'best_.*_epoch_1\.pth', best.name)
    log = next(tmp_path.glob('*/*.log')).read_text()
    assert log.count('the last checkpoint is from before') == 2  # after the epochs 2 and 3


def test_save_by_the_user_raises(tmp_path):
    runner = build(tiny_cfg(tmp_path, **{'train_cfg.max_epochs': 1}))
    runner.train()
    runner.model.head.layers.head.bias.data[0] = float('inf')
    with rejects('head.layers.head.bias is not finite'):
        runner.save_checkpoint(str(tmp_path), 'mine.pth')
    assert not (tmp_path / 'mine.pth').exists()


@pytest.mark.parametrize(
    ('change', 'name'),
    [
        (lambda state: None, None),
        (
            lambda state: state['state_dict'].update(w=torch.tensor([1, float('inf')])),
            'state_dict.w',
        ),
        (lambda state: state['state_dict'].update(mask=torch.tensor(float('-inf'))), None),
        (
            lambda state: state['state_dict'].update(mask=torch.tensor(float('nan'))),
            'state_dict.mask',
        ),
        (
            lambda state: state['ema_state_dict'].update({'module.w': torch.tensor(float('nan'))}),
            'ema_state_dict.module.w',
        ),
        (
            lambda state: state['optimizer']['state'][0].update(
                exp_avg=torch.full((2,), torch.inf)
            ),
            'optimizer.0.exp_avg',
        ),
        (lambda state: state.pop('optimizer'), None),
    ],
)
def test_find_non_finite_names_the_first_invalid_value(change, name):
    state = {
        'state_dict': dict(w=torch.ones(2), number=torch.ones(2, dtype=torch.int64)),
        'ema_state_dict': {'module.w': torch.ones(2), 'steps': torch.tensor(1)},
        'optimizer': dict(state={0: dict(exp_avg=torch.ones(2), step=torch.tensor(1.0))}),
    }
    change(state)
    assert find_non_finite(state, {'w'}) == name  # 'w' is a parameter; buffers may be infinite


class SpoilWeightHook(Hook):
    """Makes the last element of a sharded weight NaN, which only rank 1 has."""

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None) -> None:
        if runner.iter + 1 == 4:
            weight = dict(runner.model.named_parameters())['head.layers.head.weight']
            local = weight.detach().to_local()
            if torch.distributed.get_rank() == 1 and local.numel():
                local.view(-1)[-1] = float('nan')


def train_two_ranks(work_dir: str) -> None:
    """Train a sharded model; the save after the first epoch must raise on both ranks."""
    options = {
        'train_dataloader.batch_size': 8,
        'custom_hooks': [],
        'experiment_name': 'broken',
        'optim_wrapper.clip_grad': None,
    }
    runner = build(tiny_cfg(work_dir, launcher='pytorch', sharding=dict(), **options))
    runner.register_hook(SpoilWeightHook())
    with rejects('head.weight is not finite after step 4'):
        runner.train()


@pytest.mark.nightly
def test_non_finite_part_of_one_rank_raises_on_all(tmp_path):
    on_ranks(2, tmp_path, train_two_ranks, str(tmp_path / 'work'))
    assert not list((tmp_path / 'work').glob('epoch_*'))
