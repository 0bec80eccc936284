"""Runs that are stopped and resumed, beside one that is not.

The campaign stops after every iteration.
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

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """Gives the folder of a run that nothing has disturbed, by the kind of its loop."""

    @cache
    def folder(loop: str) -> Path:
        path = tmp_path_factory.mktemp(f'whole_{loop}')
        train(tiny_cfg(path, loop))
        return path

    return folder


# Inside an epoch, at an epoch's last iteration, and with other workers afterward.
@pytest.mark.parametrize(
    ('loop', 'stop', 'workers', 'after'),
    [
        ('epoch', 8, 0, 0),
        *(
            pytest.param(*other, marks=pytest.mark.nightly)
            for other in (('epoch', 6, 2, 0), ('iter', 7, 0, 2))
        ),
    ],
)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    whole, tmp_path, loop, stop, workers, after
):
    stop_and_resume(tmp_path, stop, loop, workers, after)
    assert compare(whole(loop), tmp_path) == []


@pytest.mark.nightly
def test_a_run_of_a_wider_model_with_the_passes(tmp_path):
    train(tiny_cfg(tmp_path / 'whole', **WIDE))
    stop_and_resume(tmp_path / 'stopped', 6, 'epoch', **WIDE)
    assert compare(tmp_path / 'whole', tmp_path / 'stopped') == []


@pytest.mark.nightly
def test_the_line_of_a_validation_tells_its_own_iteration(tmp_path):
    build(tiny_cfg(tmp_path, log_level='INFO')).train()
    lines = re.findall(
        r'Epoch\(val\) +\[(\d)\].* iter: (\d+)', next(tmp_path.rglob('*.log')).read_text()
    )
    assert lines == [('1', '4'), ('2', '8'), ('3', '12')]


@pytest.mark.nightly
def test_an_iteration_based_run_over_data_that_end(tmp_path):
    """MMEngine's and our samplers in turn: the order is the same."""
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
def test_a_validation_that_was_cut_short_is_made_up_for(whole, tmp_path, loop):
    runner = build(tiny_cfg(tmp_path, loop))
    runner.register_hook(DieHook(8, 'validation'))
    with pytest.raises(StoppedError):
        runner.train()
    train(tiny_cfg(tmp_path, loop, resume=True))
    assert compare(whole(loop), tmp_path) == []


@pytest.mark.nightly
def test_a_decay_from_a_stable_phase_is_that_of_a_run_of_its_length(tmp_path):
    """WSD: a longer run is stopped before its decay, and another decay follows."""

    def lasting(iterations: int) -> dict:
        warm_up = dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=3)
        decay = dict(type='LinearLR', start_factor=1.0, end_factor=0.0, by_epoch=False)
        decay |= dict(begin=iterations - 4, end=iterations)
        return {'train_cfg.max_iters': iterations, 'param_scheduler': [warm_up, decay]}

    train(tiny_cfg(tmp_path / 'whole', 'iter', **lasting(12)))
    train(tiny_cfg(tmp_path / 'stable', 'iter', **lasting(40)), 7)
    train(tiny_cfg(tmp_path / 'stable', 'iter', resume=True, **lasting(12)))
    assert compare(tmp_path / 'whole', tmp_path / 'stable') == []


@pytest.mark.nightly
def test_no_checkpoint_cuts_a_window_of_accumulated_gradients(tmp_path):
    """One is due after 5 and 10 iterations, and the optimizer steps after 6 and 12."""
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
def test_a_seed_that_was_drawn_is_kept_in_the_checkpoint(tmp_path):
    """In short epochs too, for which MMEngine cuts the data set."""
    drawn = {
        'randomness.seed': None,
        'train_cfg.max_epochs': 2,
        'train_dataloader.num_batch_per_epoch': 3,
    }
    first = train(tiny_cfg(tmp_path / 'stopped', **drawn), 5)
    train(tiny_cfg(tmp_path / 'stopped', resume=True, **drawn))
    train(tiny_cfg(tmp_path / 'whole', **{**drawn, 'randomness.seed': first.base_seed}))
    assert compare(tmp_path / 'whole', tmp_path / 'stopped') == []


@pytest.mark.nightly
def test_an_epoch_of_another_length_is_refused(tmp_path):
    train(tiny_cfg(tmp_path), 6)
    options = {'train_dataloader.dataset.indices': 128}
    with rejects('dataset.indices: 64, now 128'):
        build_runner(tiny_cfg(tmp_path, resume=True, **options)).train()
    state = torch.load(tmp_path / 'iter_6.pth', weights_only=False)
    state['meta'].update(run={}, cfg='')  # of a runner that records nothing
    torch.save(state, tmp_path / 'iter_6.pth')
    with rejects('at iteration 6 in epoch 2, but an epoch has 8 iterations here'):
        build_runner(tiny_cfg(tmp_path, resume=True, **options)).train()


@pytest.mark.nightly
def test_a_loop_of_another_class_stays_as_it_is(tmp_path):
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
