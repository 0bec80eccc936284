"""Changed settings that determine a run raise at a resume, or apply with `resume_changed`."""

import pytest
import torch
from ranks import on_ranks
from rejection import rejects

from benchmarks.exactness import compare, train
from benchmarks.tiny_run import EMA_HOOKS, build, tiny_cfg

pytestmark = pytest.mark.filterwarnings('ignore')
SCHEDULE = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=3),
    dict(type='PolyLR', by_epoch=False, begin=3, end=12, eta_min=0.0, power=1.0),
]


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """The checkpoint of the tiny run after 6 of 12 iterations, within its second epoch."""
    folder = tmp_path_factory.mktemp('saved')
    train(tiny_cfg(folder, custom_hooks=[]), 6)
    return folder / 'iter_6.pth'


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        ({'optim_wrapper.optimizer.lr': 0.02}, ['optim_wrapper.optimizer.lr: 0.01, now 0.02']),
        ({'optim_wrapper.optimizer': dict(type='SGD', lr=0.1)}, ['type: AdamW, now SGD']),
        ({'optim_wrapper.paramwise_cfg': dict(norm_decay_mult=0.0)}, ['norm_decay_mult: left out']),
        ({'optim_wrapper.clip_grad': None}, ['clip_grad.max_norm: 1.0, now left out']),
        ({'optim_wrapper.type': 'vit_plugin.AmpOptimWrapper'}, ['OptimWrapper, now AmpOptimWr']),
        ({'model.backbone.drop_rate': 0.2}, ['model.backbone.drop_rate: 0.1, now 0.2']),
        ({'param_scheduler': SCHEDULE}, ['param_scheduler']),
        ({'randomness.seed': 8}, ['randomness.seed: 7, now 8']),
        (
            {'train_dataloader.dataset.indices': 48},
            ['indices: 64, now 48', 'in an epoch: 4, now 3', 'samples of train_.*: 64, now 48'],
        ),
        ({'train_dataloader.batch_size': 8}, ['samples in an iteration: 16, now 8']),
        ({'custom_hooks': EMA_HOOKS}, ['hooks.EMAHook.momentum: left']),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else '',
)
def test_changes_raise_with_both_values(tmp_path, saved, options, words):
    runner = build(tiny_cfg(tmp_path, **{'custom_hooks': [], **options}))
    for word in words:
        with rejects(f'{word}.*add --resume-changed .*load_from=FILE'):
            runner.resume(str(saved))


def test_free_settings_may_change(tmp_path, saved):
    options = {
        'val_dataloader.batch_size': 8,
        'train_cfg.val_interval': 3,
        'default_hooks.logger.interval': 1,
        'default_hooks.checkpoint.max_keep_ckpts': 1,
        'train_dataloader.num_workers': 1,
        'model.backbone.with_cp': True,
        'optim_wrapper.type': 'OptimWrapper',
        'train_dataloader.sampler.type': 'vit_plugin.DefaultSampler',
        'custom_hooks': [dict(type='vit_plugin.ReportHook')],
    }
    runner = build(tiny_cfg(tmp_path, **options))
    runner.resume(str(saved))
    assert runner.iter == 6


def resume_accepting(tmp_path, saved, options):
    """Resume with changed settings, which ``resume_changed`` accepts. Return the runner."""
    runner = build(tiny_cfg(tmp_path, custom_hooks=[], resume_changed=True, **options))
    runner.resume(str(saved))
    return runner


@pytest.mark.parametrize(
    'options',
    [
        {'optim_wrapper.optimizer.lr': 0.02, 'optim_wrapper.optimizer.weight_decay': 0.1},
        {'param_scheduler': SCHEDULE},
        {'param_scheduler': SCHEDULE[:1]},
        {'train_cfg.max_epochs': 6, 'schedule_length': 3},
    ],
    ids=['lr', 'schedule', 'one', 'longer'],
)
def test_accepted_change_gives_rates_of_a_run_that_began_with_it(tmp_path, saved, options):
    runner = resume_accepting(tmp_path / 'a', saved, options)
    other = train(tiny_cfg(tmp_path / 'b', custom_hooks=[], **options), 6)

    def groups_of(runner):
        return [
            {name: value for name, value in group.items() if name != 'params'}
            for group in runner.optim_wrapper.optimizer.param_groups
        ]

    def schedules_of(runner):
        return [{**scheduler.state_dict()} for scheduler in runner.param_schedulers]

    assert groups_of(runner) == groups_of(other)
    assert schedules_of(runner) == schedules_of(other)
    before = torch.load(saved, weights_only=False)['optimizer']['state']
    after = runner.optim_wrapper.optimizer.state_dict()['state']
    assert before.keys() == after.keys()
    assert all(torch.equal(before[i]['exp_avg'], after[i]['exp_avg']) for i in before)


def test_moments_stay_with_their_parameters(tmp_path, saved):
    """Also if parameters move to groups with other rates and decays."""
    options = {
        'optim_wrapper.constructor': 'vit_plugin.LayerDecayOptimWrapperConstructor',
        'optim_wrapper.paramwise_cfg': dict(layer_decay_rate=0.5),
    }
    runner = resume_accepting(tmp_path, saved, options)
    optimizer = runner.optim_wrapper.optimizer
    assert len({group['lr'] for group in optimizer.param_groups}) > 2
    names = {parameter: name for name, parameter in runner.model.named_parameters()}
    checkpoint = torch.load(saved, weights_only=False)
    recorded = [name for group in checkpoint['meta']['run']['parameters'] for name in group]
    assert len(optimizer.state) == len(recorded)
    for parameter, moments in optimizer.state.items():
        expected = checkpoint['optimizer']['state'][recorded.index(names[parameter])]
        assert torch.equal(moments['exp_avg'], expected['exp_avg'])
    runner.train()
    assert runner.iter == 12


def test_another_optimizer_starts_without_moments(tmp_path, saved):
    sgd = dict(type='SGD', lr=0.1, momentum=0.9, _delete_=True)
    runner = resume_accepting(tmp_path, saved, {'optim_wrapper.optimizer': sgd})
    assert not runner.optim_wrapper.optimizer.state
    runner.train()
    assert runner.iter == 12


@pytest.mark.parametrize(
    ('options', 'position'),
    [
        # The iterations of the first epoch, and those for the 32 samples seen of the second.
        ({'train_dataloader.dataset.indices': 48}, 3 + 2),
        ({'train_dataloader.batch_size': 8}, 8 + 4),
        ({'train_dataloader.dataset.indices': 160}, 10 + 2),
    ],
    ids=['fewer', 'batch', 'more'],
)
def test_position_keeps_the_samples_seen_in_the_epoch(tmp_path, saved, options, position):
    runner = resume_accepting(tmp_path, saved, options)
    assert (runner.epoch, runner.iter) == (1, position)
    # The second schedule begins after 3 steps and ends after 12, so its last step is 8.
    assert runner.param_schedulers[1].last_step == min(position - 3, 8)
    runner.train()
    assert runner.iter == 3 * len(runner.train_dataloader)


def test_removing_the_averages_continues_with_trained_weights(tmp_path):
    first = train(tiny_cfg(tmp_path, custom_hooks=EMA_HOOKS), 6)
    runner = resume_accepting(tmp_path, tmp_path / 'iter_6.pth', {})
    assert all(map(torch.equal, runner.model.parameters(), first.model.parameters()))


def test_schedule_that_follows_a_metric_raises(tmp_path, saved):
    plateau = dict(type='ReduceOnPlateauLR', monitor='accuracy/top1', rule='greater')
    with rejects('ReduceOnPlateau follows a metric'):
        resume_accepting(tmp_path, saved, {'param_scheduler': [plateau]})


def test_accepted_seed_applies(tmp_path, saved):
    assert resume_accepting(tmp_path / 'a', saved, {}).base_seed == 7
    assert resume_accepting(tmp_path / 'b', saved, {'randomness.seed': 8}).base_seed == 8


@pytest.mark.nightly
def test_resume_changed_without_changes_has_no_effect(tmp_path):
    options = {
        'default_hooks.checkpoint.format': 'folder',
        'param_scheduler': [dict(type='MultiStepLR', milestones=[1, 2])],
    }
    train(tiny_cfg(tmp_path / 'whole', **options))
    train(tiny_cfg(tmp_path / 'stopped', **options), 6)
    train(tiny_cfg(tmp_path / 'stopped', resume=True, resume_changed=True, **options))
    assert compare(tmp_path / 'whole', tmp_path / 'stopped') == []


@pytest.mark.nightly
def test_longer_run_keeps_a_schedule_that_has_begun(tmp_path):
    options = dict(custom_hooks=[], param_scheduler=[dict(type='CosineAnnealingLR')])
    options |= dict(schedule_length=3)
    train(tiny_cfg(tmp_path, **options), 6)
    longer = {**options, 'train_cfg.max_epochs': 6}
    runner = build(tiny_cfg(tmp_path, **longer))
    runner.resume(str(tmp_path / 'iter_6.pth'))
    assert runner.param_schedulers[0].T_max == 3
    logs = ''.join(path.read_text() for path in tmp_path.glob('*/*.log'))
    assert 'T_max: 3, now 6; param_scheduler.0.end: 3, now 6); with --resume-changed' in logs
    runner = build(tiny_cfg(tmp_path, **longer, resume_changed=True))
    runner.resume(str(tmp_path / 'iter_6.pth'))
    assert runner.param_schedulers[0].T_max == 6


def train_two_ranks(work_dir: str) -> None:
    """Train on two ranks up to the middle of the second epoch, with the same batches as one."""
    options = {'train_dataloader.batch_size': 8, 'experiment_name': 'two'}
    train(tiny_cfg(work_dir, launcher='pytorch', custom_hooks=[], **options), 6)


@pytest.mark.nightly
def test_another_number_of_ranks_is_not_a_change(tmp_path, launched):
    on_ranks(2, tmp_path, train_two_ranks, str(tmp_path / 'work'))
    runner = build(tiny_cfg(tmp_path / 'work', custom_hooks=[]))
    runner.resume(str(tmp_path / 'work/iter_6.pth'))
    assert (runner.epoch, runner.iter) == (1, 6)


@pytest.mark.nightly
def test_iteration_based_run_keeps_its_iteration(tmp_path):
    train(tiny_cfg(tmp_path, 'iter', custom_hooks=[]), 6)
    options = dict(custom_hooks=[], resume_changed=True)
    options |= {'train_dataloader.dataset.indices': 48}
    runner = build(tiny_cfg(tmp_path, 'iter', **options))
    runner.resume(str(tmp_path / 'iter_6.pth'))
    assert runner.iter == 6
    runner.train()
    assert runner.iter == 12
    with rejects('it counts iterations, but this run counts epochs'):
        build(tiny_cfg(tmp_path, **options)).resume(str(tmp_path / 'iter_6.pth'))
