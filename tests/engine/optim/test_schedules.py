"""Schedules are scaled to the length of a run, and follow the config when it is resumed."""

from copy import deepcopy
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmengine.optim import LinearLR, OptimWrapper
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop
from rejection import rejects
from test_configs import recipes

from vit_plugin.config import read_config
from vit_plugin.engine import Runner
from vit_plugin.engine.optim.schedules import follow_config, replay, scale_schedules


def schedulers_of(cfg, epoch_length: int) -> list:
    """The schedulers that a runner builds, without its model and data."""
    if cfg.train_cfg.get('by_epoch') or 'max_epochs' in cfg.train_cfg:
        loop = EpochBasedTrainLoop.__new__(EpochBasedTrainLoop)
    else:
        loop = IterBasedTrainLoop.__new__(IterBasedTrainLoop)
    loop._max_epochs = cfg.train_cfg.get('max_epochs', 1)
    loop._max_iters = cfg.train_cfg.get('max_iters') or loop._max_epochs * epoch_length
    loop.dataloader = range(epoch_length)
    runner = Runner.__new__(Runner)
    runner.cfg, runner._train_loop, runner.logger = (
        cfg,
        loop,
        SimpleNamespace(info=print, debug=print),
    )
    runner.optim_wrapper = OptimWrapper(torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0))
    return runner.build_param_scheduler(cfg.param_scheduler)


def rates(schedulers: list, steps: int, epoch_length: int) -> list[float]:
    """The learning rate of every step of a run."""
    group = schedulers[0].optimizer.param_groups[0]
    values = []
    for step in range(steps):
        values.append(group['lr'])
        for scheduler in schedulers:
            if not scheduler.by_epoch or (step + 1) % epoch_length == 0:
                scheduler.step()
    return values


@recipes()
@pytest.mark.filterwarnings('ignore')
def test_runs_of_any_length_reach_the_configured_rate(path):
    recipe = read_config(path)
    field = 'max_epochs' if 'max_epochs' in recipe.train_cfg else 'max_iters'
    for length, epoch_length in product((1, 3, recipe.train_cfg[field]), (1, 7)):
        if length > 1000:  # a run that counts iterations, shortened to save time
            length, epoch_length = 1000, 1
        cfg = deepcopy(recipe)
        cfg.train_cfg[field] = length
        schedulers = schedulers_of(cfg, epoch_length)
        steps = length * (epoch_length if field == 'max_epochs' else 1)
        peak = max(rates(schedulers, steps, epoch_length))
        expected = (
            cfg.param_scheduler.get('eta_max') if isinstance(cfg.param_scheduler, dict) else 1.0
        )
        assert peak == pytest.approx(expected, rel=1e-4), (length, epoch_length)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('epochs', [5, 25, 100])
def test_warm_up_and_decay_keep_their_shares(epochs):
    path, per_epoch = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py', 50
    cfg = read_config(path, {'train_cfg.max_epochs': epochs})
    values = rates(schedulers_of(cfg, per_epoch), epochs * per_epoch, per_epoch)
    peak = values.index(max(values))
    assert max(values) == pytest.approx(1.0)
    assert peak / len(values) == pytest.approx(2 / 25, abs=0.01)
    assert values[0] == pytest.approx(0.01)
    assert values[-1] < 0.01


@given(
    st.integers(1, 400),
    st.integers(1, 50),
    st.lists(st.integers(0, 200), min_size=2, max_size=2, unique=True),
    st.booleans(),
    st.booleans(),
)
def test_scaled_schedules_keep_valid_bounds(length, epoch_length, ends, by_epoch, converted):
    begin, end = sorted(ends)
    schedule = dict(
        type='LinearLR',
        begin=begin,
        end=end,
        by_epoch=by_epoch or converted,
        convert_to_iter_based=converted,
    )
    before = dict(schedule)
    (scaled_schedule,) = scale_schedules([schedule], length, 200, True, epoch_length)
    assert schedule == before
    assert 0 <= scaled_schedule['begin'] < scaled_schedule['end']
    assert all(isinstance(scaled_schedule[name], int) for name in ('begin', 'end'))


def test_warm_up_in_iterations_is_not_stretched():
    warm_up = dict(type='LinearLR', begin=0, end=500, by_epoch=False)
    assert scale_schedules(warm_up, 400, 100, True, 10)['end'] == 500
    assert scale_schedules(warm_up, 50, 100, True, 10)['end'] == 250
    assert scale_schedules(warm_up, 50, 100, True, 1)['end'] == 25  # at most half of the run


@pytest.mark.parametrize(
    'schedule',
    [
        dict(type='CosineAnnealingLR', T_max=1000),
        dict(type='LinearLR', start_factor=1.0, end_factor=0.0),
        dict(type='LinearLR', start_factor=0.5, begin=400),
    ],
)
def test_other_schedules_in_iterations_take_the_whole_run(schedule):
    schedule = dict(schedule, end=1000, by_epoch=False)
    assert scale_schedules(schedule, 100, 100, True, 10) == schedule
    assert scale_schedules(schedule, 200, 100, True, 10)['end'] == 2000


def test_only_schedules_of_epochs_are_converted():
    schedule = dict(type='LinearLR', end=500, by_epoch=False, convert_to_iter_based=True)
    assert scale_schedules(schedule, 100, 100, True, 10) == schedule  # MMEngine rejects it


@pytest.mark.parametrize('factor', [7, -1, 'word'])
def test_invalid_factors_are_kept_for_later_checks(factor):
    schedule = dict(type='LinearLR', start_factor=factor, end=2)
    assert scale_schedules(schedule, 1, 25, True, 10)['start_factor'] == factor


@pytest.mark.parametrize('in_list', [False, True])
def test_a_wrong_schedule_raises_with_its_settings(in_list):
    cfg = read_config('configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py')
    schedule = dict(type='LinearLR', start_factor=7.0)
    cfg.param_scheduler = [schedule] if in_list else schedule
    with rejects(r'^param_scheduler.*start_factor.*\(ValueError\)'):
        schedulers_of(cfg, 3)


def decay(begin: int, end: int) -> LinearLR:
    """A linear decay to zero between two iterations."""
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
    return LinearLR(optimizer, 1.0, 0.0, begin=begin, end=end, by_epoch=False)


@pytest.mark.filterwarnings('ignore:Detected call')
@pytest.mark.parametrize(
    ('begin', 'end', 'step', 'kept'),
    [
        (6, 10, 5, {}),  # has not begun
        (6, 9, 7, dict(end=(20, 9), total_iters=(13, 2))),
        (2, 5, 7, dict(begin=(6, 2), end=(20, 5), total_iters=(13, 2))),  # over with new settings
        (6, 20, 7, {}),  # the same settings
    ],
)
def test_schedule_that_has_begun_keeps_its_settings(begin, end, step, kept):
    saved = decay(6, 20)
    rates([saved], step, 1)
    state = saved.state_dict()
    differences = follow_config([decay(begin, end)], [state])
    assert differences == {f'param_scheduler.0.{name}': pair for name, pair in kept.items()}
    assert (state['begin'], state['end']) == ((6, 20) if kept else (begin, end))


@pytest.mark.filterwarnings('ignore:Detected call')
def test_warm_up_that_is_over_may_change():
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
    saved, fresh = (LinearLR(optimizer, 0.1, end=end, by_epoch=False) for end in (3, 5))
    rates([saved], 7, 1)
    assert follow_config([fresh], [saved.state_dict()]) == {}


@pytest.mark.filterwarnings('ignore:Detected call')
@pytest.mark.parametrize(('epochs', 'iterations'), [(0, 0), (1, 3), (2, 7), (2, 9)])
def test_replayed_schedules_equal_stepped_ones(epochs, iterations):
    """The last position is after the last iteration of an epoch, but before the epoch's end."""
    cfg = read_config('configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py')
    cfg.param_scheduler.append(dict(type='StepLR', step_size=1, gamma=0.9))
    stepped, replayed = schedulers_of(cfg, 3), schedulers_of(cfg, 3)
    rates(stepped, 3 * epochs, 3)
    for _ in range(iterations - 3 * epochs):
        for scheduler in stepped[:2]:  # the third steps by epoch
            scheduler.step()
    replay(replayed, iterations, epochs, 3)
    lrs = [schedulers[0].optimizer.param_groups[0]['lr'] for schedulers in (stepped, replayed)]
    assert lrs[0] == lrs[1]
    assert [scheduler.last_step for scheduler in stepped] == [
        scheduler.last_step for scheduler in replayed
    ]
