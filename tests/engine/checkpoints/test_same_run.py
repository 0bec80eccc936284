"""Resuming from a checkpoint of another run, or with a damaged state, raises what is wrong."""

import math
import re
from collections.abc import Callable

import pytest
import torch
from mmengine.registry import init_default_scope
from rejection import rejects

from benchmarks.tiny_run import build, tiny_cfg

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """A checkpoint of the tiny run after its first epoch."""
    folder = tmp_path_factory.mktemp('saved')
    build(tiny_cfg(folder, custom_hooks=[])).train()
    return folder / 'epoch_1.pth'


@pytest.fixture(scope='module')
def runner(tmp_path_factory):
    """A runner of that run. Tests share it, since rejecting a checkpoint leaves it unchanged."""
    return build(tiny_cfg(tmp_path_factory.mktemp('refusing'), custom_hooks=[]))


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (
            {'model.backbone.arch.num_layers': 3},
            'it has no backbone.blocks.2.*, which the model has',
        ),
        (
            {'model.backbone.arch.num_layers': 1},
            'it has backbone.blocks.1.*, which the model lacks',
        ),
        (
            {'model.backbone.arch.feedforward_channels': 48},
            r"has the shape \(64, 32\), but the model's has \(48, 32\)",
        ),
    ],
)
def test_checkpoint_of_another_model_raises(tmp_path, saved, options, words):
    runner = build(tiny_cfg(tmp_path, custom_hooks=[], **options))
    with rejects(f'{re.escape(str(saved))}.*{words}.*load_from=FILE'):
        runner.resume(str(saved))


def remove_states(state: dict) -> None:
    """Keep the states of three parameters."""
    for number in list(state['optimizer']['state'])[3:]:
        del state['optimizer']['state'][number]


def change_shape_of_moments(state: dict) -> None:
    state['optimizer']['state'][0]['exp_avg'] = torch.zeros(3)


def remove_moments(state: dict) -> None:
    del state['optimizer']['state'][0]['exp_avg_sq']


@pytest.mark.parametrize(
    ('damage', 'words'),
    [
        (lambda state: state.pop('optimizer'), 'no state of the optimizer'),
        (lambda state: state.update(optimizer=None), 'no state of the optimizer'),
        (remove_states, 'has the state of 3 parameters, but [0-9]+ were saved'),
        (change_shape_of_moments, r"state of the form .*'exp_avg': \(\(3,\).* where AdamW has"),
        (remove_moments, "state of the form .* where AdamW has .*'exp_avg_sq'"),
        (
            lambda state: state['optimizer']['param_groups'][0].update(lr=math.nan),
            'its optimizer has lr=nan',
        ),
        (
            lambda state: state['optimizer']['param_groups'][0].update(lr='x'),
            "its optimizer has lr='x'",
        ),
        (
            lambda state: state['optimizer']['state'][0].update(
                exp_avg=state['optimizer']['state'][0]['exp_avg'].char()
            ),
            "'int'.* where AdamW has",
        ),
        (
            lambda state: state['optimizer']['state'][0]['exp_avg'].fill_(math.nan),
            'its optimizer.0.exp_avg is not finite',
        ),
        (
            lambda state: state['optimizer']['state'][0].update(step=torch.tensor(math.nan)),
            'its optimizer.0.step is not finite',
        ),
        (
            lambda state: (state['meta'].pop('run'), state['optimizer'].update(state={})),
            'no state of any parameter',
        ),
        (
            lambda state: state['state_dict']['backbone.norm.weight'].fill_(math.inf),
            'had diverged: its state_dict.backbone.norm.weight is not finite; resume from',
        ),
        (
            lambda state: state.update(param_schedulers=[]),
            'the state of 0 param_schedulers, and this config has 2',
        ),
        (lambda state: state.pop('param_schedulers'), 'the state of 0 param_schedulers'),
        (lambda state: state['param_schedulers'][0].pop('last_step'), 'other param_schedulers'),
        (
            lambda state: state['param_schedulers'][0].update(last_step=math.inf),
            'param_schedulers have last_step=inf',
        ),
        (
            lambda state: state['param_schedulers'][0].update(last_step='x'),
            "param_schedulers have last_step='x'",
        ),
        (
            lambda state: state['param_schedulers'][0].update(last_step=10**12),
            'param_schedulers have last_step=1000',
        ),
        (lambda state: state['meta'].update(iter=0), 'at epoch 1 after 0 iterations'),
        (
            lambda state: state['meta'].update(epoch=10**12),
            'is at epoch 1000000000000, but this run ends at 3',
        ),
        (
            lambda state: state['meta'].update(epoch=math.nan),
            'meta has epoch=nan, which is not a position',
        ),
        (lambda state: state['meta'].update(iter=-1), 'meta has iter=-1'),
        (lambda state: state['meta'].update(iter=10**12), 'is at iter 1000000000000'),
        (
            lambda state: state['state_dict'].update(
                {'backbone.norm.weight': torch.ones(32, dtype=torch.int8)}
            ),
            'backbone.norm.weight as int8',
        ),
    ],
)
def test_incomplete_and_invalid_states_raise(
    tmp_path, saved, runner, damage: Callable[[dict], object], words
):
    state = torch.load(saved, weights_only=False)
    damage(state)
    torch.save(state, tmp_path / 'damaged.pth')
    init_default_scope('mmpretrain')  # resuming builds the data of MMPretrain
    before = {name: value.clone() for name, value in runner.model.state_dict().items()}
    with rejects(words):
        runner.resume(str(tmp_path / 'damaged.pth'))
    assert all(
        torch.equal(value, before[name]) for name, value in runner.model.state_dict().items()
    )


def test_huge_position_raises_before_schedules_are_replayed_to_it(tmp_path, saved):
    state = torch.load(saved, weights_only=False)
    state['meta']['iter'] = 10**12
    torch.save(state, tmp_path / 'damaged.pth')
    changes = {'optim_wrapper.optimizer.lr': 5e-4, 'resume_changed': True}
    runner = build(tiny_cfg(tmp_path, custom_hooks=[], **changes))
    with rejects('is at iter 1000000000000, but this run ends at'):
        runner.resume(str(tmp_path / 'damaged.pth'))


@pytest.mark.parametrize(
    'optimizer',
    [
        dict(type='AdamW', lr=1e-3, fused=True),
        *(
            pytest.param(other, marks=pytest.mark.nightly)
            for other in (
                dict(type='SGD', lr=0.1, momentum=0.9),
                dict(type='Adagrad', lr=0.1),
                dict(type='vit_plugin.Muon', lr=1e-3),
                dict(type='RMSprop', lr=1e-3),
            )
        ),
    ],
    ids=lambda optimizer: optimizer['type'],
)
def test_states_of_other_optimizers_are_resumed(tmp_path, optimizer):
    options = {'optim_wrapper.optimizer': dict(optimizer, _delete_=True), 'custom_hooks': []}
    build(tiny_cfg(tmp_path, **options)).train()
    resumed = build(tiny_cfg(tmp_path, **options))
    resumed.resume(str(tmp_path / 'epoch_2.pth'))
    assert resumed.epoch == 2


def test_infinite_buffers_are_accepted(tmp_path, saved):
    runner = build(tiny_cfg(tmp_path, custom_hooks=[]))
    # A buffer may be infinite from the start.
    runner.model.register_buffer('mask', torch.tensor(-math.inf))
    state = torch.load(saved, weights_only=False)
    state['state_dict']['mask'] = runner.model.mask
    torch.save(state, tmp_path / 'masked.pth')
    runner.resume(str(tmp_path / 'masked.pth'))
    assert (runner.epoch, runner.iter) == (1, 4)


@pytest.mark.nightly
def test_run_is_resumed_before_a_schedule_has_begun(tmp_path):
    options = {
        'param_scheduler': [
            dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=8),
            dict(type='CosineAnnealingLR', by_epoch=False, begin=8, end=12),
        ],
        'custom_hooks': [],
    }
    build(tiny_cfg(tmp_path, **options)).train()
    resumed = build(tiny_cfg(tmp_path, **options))
    resumed.resume(str(tmp_path / 'epoch_1.pth'))
    assert [schedule.last_step for schedule in resumed.param_schedulers] == [4, -1]


def test_checkpoint_of_mmengine_is_compared(tmp_path, saved):
    """It does not record the run, so the text of its config is compared.

    Without that text, the state of the optimizer is compared.
    """
    checkpoint = torch.load(saved, weights_only=False)
    del checkpoint['meta']['run']
    torch.save(checkpoint, tmp_path / 'mmengine.pth')
    build(tiny_cfg(tmp_path / 'a', custom_hooks=[])).resume(str(tmp_path / 'mmengine.pth'))
    other = build(
        tiny_cfg(
            tmp_path / 'b',
            custom_hooks=[],
            **{'optim_wrapper.optimizer': dict(type='SGD', lr=0.1, momentum=0.9)},
        )
    )
    with rejects('optim_wrapper.optimizer.type: AdamW, now SGD'):
        other.resume(str(tmp_path / 'mmengine.pth'))
    checkpoint['meta']['cfg'] = ''
    torch.save(checkpoint, tmp_path / 'mmengine.pth')
    with rejects('its optimizer has no momentum, which SGD has'):
        other.resume(str(tmp_path / 'mmengine.pth'))
    assert not other.resuming


@pytest.mark.nightly
def test_one_cycle_schedule_is_resumed(tmp_path):
    cycle = dict(type='OneCycleLR', eta_max=1e-3, by_epoch=True, convert_to_iter_based=True)
    cfg = tiny_cfg(tmp_path, custom_hooks=[], param_scheduler=[cycle])
    build(cfg).train()
    resumed = build(tiny_cfg(tmp_path, custom_hooks=[], param_scheduler=[cycle]))
    # In MMEngine, the state of this schedule contains a function.
    resumed.resume(str(tmp_path / 'epoch_1.pth'))
    assert resumed.epoch == 1
