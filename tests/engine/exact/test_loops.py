"""Runs that are stopped and resumed end as uninterrupted ones.

``benchmarks/exactness.py`` stops after every iteration.
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest
import torch
from dying import DieHook
from rejection import rejects

from benchmarks.exactness import StoppedError, compare, stop_and_resume, train
from benchmarks.tiny_run import WIDE, build, final_checkpoint, tiny_cfg
from vit_plugin.commands.command_line import build_runner
from vit_plugin.engine.exact.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    use_resumable_loop,
)

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """A function that returns the folder of an uninterrupted run for the kind of a loop."""

    @cache
    def folder(loop: str) -> Path:
        path = tmp_path_factory.mktemp(f'whole_{loop}')
        train(tiny_cfg(path, loop))
        return path

    return folder


@pytest.mark.parametrize(
    ('loop', 'stop', 'workers', 'workers_after'),
    [
        ('epoch', 8, 0, 0),  # stopped after the last of the 4 iterations of an epoch
        pytest.param('epoch', 6, 2, 0, marks=pytest.mark.nightly),  # within an epoch
        pytest.param('iter', 7, 0, 2, marks=pytest.mark.nightly),
    ],
)
def test_resumed_run_ends_as_an_uninterrupted_one(
    whole, tmp_path, loop, stop, workers, workers_after
):
    stop_and_resume(tmp_path, stop, loop, workers, workers_after)
    assert compare(whole(loop), tmp_path) == []


@pytest.mark.nightly
def test_resumed_run_with_passes_ends_as_an_uninterrupted_one(tmp_path):
    train(tiny_cfg(tmp_path / 'whole', **WIDE))
    stop_and_resume(tmp_path / 'stopped', 6, 'epoch', **WIDE)
    assert compare(tmp_path / 'whole', tmp_path / 'stopped') == []


@pytest.mark.nightly
def test_validation_is_logged_with_its_iteration(tmp_path):
    build(tiny_cfg(tmp_path, log_level='INFO')).train()
    lines = re.findall(
        r'Epoch\(val\) +\[(\d)\].* iter: (\d+)', next(tmp_path.rglob('*.log')).read_text()
    )
    assert lines == [('1', '4'), ('2', '8'), ('3', '12')]


@pytest.mark.nightly
def test_iteration_based_run_over_finite_data_is_resumed(tmp_path):
    """One run uses MMEngine's sampler and the other ours, which gives the same order."""
    options = {'train_dataloader.sampler': dict(type='DefaultSampler', shuffle=True)}
    train(tiny_cfg(tmp_path / 'whole', 'iter', **options))
    stop_and_resume(
        tmp_path / 'ours',
        6,
        'iter',
        **{'train_dataloader.sampler': dict(type='vit_plugin.DefaultSampler', shuffle=True)},
    )
    assert compare(tmp_path / 'whole', tmp_path / 'ours') == []


@pytest.mark.nightly
@pytest.mark.parametrize('loop', ['epoch', 'iter'])
def test_interrupted_validation_is_repeated(whole, tmp_path, loop):
    runner = build(tiny_cfg(tmp_path, loop))
    runner.register_hook(DieHook(8, 'validation'))
    with pytest.raises(StoppedError):
        runner.train()
    train(tiny_cfg(tmp_path, loop, resume=True))
    assert compare(whole(loop), tmp_path) == []


@pytest.mark.nightly
def test_decay_from_a_stable_phase_equals_a_run_of_that_length(tmp_path):
    """Warmup-stable-decay: a run is stopped before its decay, and resumed with an earlier one."""

    def options_for(iterations: int) -> dict:
        warm_up = dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=3)
        decay = dict(type='LinearLR', start_factor=1.0, end_factor=0.0, by_epoch=False)
        decay |= dict(begin=iterations - 4, end=iterations)
        return {'train_cfg.max_iters': iterations, 'param_scheduler': [warm_up, decay]}

    train(tiny_cfg(tmp_path / 'whole', 'iter', **options_for(12)))
    train(tiny_cfg(tmp_path / 'stable', 'iter', **options_for(40)), 7)
    train(tiny_cfg(tmp_path / 'stable', 'iter', resume=True, **options_for(12)))
    assert compare(tmp_path / 'whole', tmp_path / 'stable') == []


@pytest.mark.nightly
def test_checkpoints_wait_for_accumulated_gradients(tmp_path):
    """Saves are due after 5 and 10 iterations, but the optimizer steps after 6 and 12."""
    options = {'optim_wrapper.accumulative_counts': 3, 'default_hooks.checkpoint.interval': 5}
    train(tiny_cfg(tmp_path / 'whole', 'iter', **options))
    runner = build(tiny_cfg(tmp_path / 'killed', 'iter', **options))
    runner.register_hook(DieHook(8, 'step'))
    with pytest.raises(StoppedError):
        runner.train()
    assert [path.name for path in (tmp_path / 'killed').glob('iter_*')] == ['iter_6.pth']
    train(tiny_cfg(tmp_path / 'killed', 'iter', resume=True, **options))
    assert compare(tmp_path / 'whole', tmp_path / 'killed') == []


@pytest.mark.nightly
def test_drawn_seed_is_kept_in_the_checkpoint(tmp_path):
    """It is kept with ``num_batch_per_epoch`` too, for which MMEngine cuts the data set."""
    options = {
        'randomness.seed': None,
        'train_cfg.max_epochs': 2,
        'train_dataloader.num_batch_per_epoch': 3,
    }
    first = train(tiny_cfg(tmp_path / 'stopped', **options), 5)
    train(tiny_cfg(tmp_path / 'stopped', resume=True, **options))
    train(tiny_cfg(tmp_path / 'whole', **{**options, 'randomness.seed': first.base_seed}))
    assert compare(tmp_path / 'whole', tmp_path / 'stopped') == []


@pytest.mark.nightly
def test_epoch_of_another_length_raises(tmp_path):
    train(tiny_cfg(tmp_path), 6)
    options = {'train_dataloader.dataset.indices': 128}
    with rejects('dataset.indices: 64, now 128'):
        build_runner(tiny_cfg(tmp_path, resume=True, **options)).train()
    state = torch.load(tmp_path / 'iter_6.pth', weights_only=False)
    state['meta'].update(run={}, cfg='')  # as from a runner that records neither
    torch.save(state, tmp_path / 'iter_6.pth')
    with rejects('at iteration 6 in epoch 2, but an epoch has 8 iterations here'):
        build_runner(tiny_cfg(tmp_path, resume=True, **options)).train()


@pytest.mark.nightly
def test_loop_of_a_user_is_not_replaced(tmp_path):
    from mmengine.registry import LOOPS
    from mmengine.runner import EpochBasedTrainLoop

    @LOOPS.register_module(force=True)
    class OwnLoop(EpochBasedTrainLoop):
        pass

    cfg = tiny_cfg(tmp_path)
    cfg.train_cfg = dict(type='OwnLoop', max_epochs=1)
    runner = train(cfg)
    assert type(runner.train_loop) is OwnLoop
    assert json.loads((tmp_path / 'metrics.json').read_text())['iterations'] == 4
    assert torch.load(final_checkpoint(tmp_path), weights_only=False)['meta']['iter'] == 4


def test_a_loop_without_by_epoch_counts_epochs():
    assert use_resumable_loop(dict(max_epochs=3)) == dict(type=EpochBasedTrainLoop, max_epochs=3)
    loop = dict(by_epoch=False, max_iters=3)
    assert use_resumable_loop(loop) == dict(type=IterBasedTrainLoop, max_iters=3)
