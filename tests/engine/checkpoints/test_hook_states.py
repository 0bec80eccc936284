"""What hooks have counted is in the checkpoints, whoever wrote the hooks."""

from types import SimpleNamespace

import pytest
from dying import DieHook
from mmengine.hooks import EarlyStoppingHook, Hook, IterTimerHook
from mmengine.logging import MMLogger
from mmengine.registry import HOOKS

from benchmarks.exactness import StoppedError, compare, train
from benchmarks.tiny_run import build, final_checkpoint, tiny_cfg
from vit_plugin.engine.checkpoints.hook_states import HOOK_STATES, HookStates
from vit_plugin.engine.runtime_info import RuntimeInfoHook

pytestmark = pytest.mark.filterwarnings('ignore')
# No validation is better by 200 %, so that the third one ends the run.
EARLY = dict(type='EarlyStoppingHook', monitor='accuracy/top1', min_delta=200.0, patience=2)


def early(folder, **options):
    return tiny_cfg(folder, **{'default_hooks.early_stopping': EARLY, **options})


def test_a_run_that_dies_stops_where_it_would_have(tmp_path):
    options = {'train_cfg.max_epochs': 8}
    whole = train(early(tmp_path / 'whole', **options))
    assert whole.epoch == 3
    for death in ((5, 'step'), (8, 'validation')):
        runner = build(early(tmp_path / 'killed', resume=True, **options))
        runner.register_hook(DieHook(*death))
        with pytest.raises(StoppedError):
            runner.train()
    assert train(early(tmp_path / 'killed', resume=True, **options)).epoch == 3
    assert compare(tmp_path / 'whole', tmp_path / 'killed') == []
    again = train(early(tmp_path / 'killed', resume=True, log_level='INFO', **options))
    assert again.epoch == 3
    said = max((tmp_path / 'killed').glob('*/*.log'), key=lambda path: path.stat().st_mtime_ns)
    assert 'Nothing was left to train: the run had ended at epoch 3 of 8' in said.read_text()
    assert compare(tmp_path / 'whole', tmp_path / 'killed') == []


@pytest.mark.nightly
def test_more_patience_trains_on(tmp_path):
    assert train(early(tmp_path, **{'train_cfg.max_epochs': 5})).epoch == 3
    options = {'train_cfg.max_epochs': 5, 'default_hooks.early_stopping.patience': 9}
    assert train(early(tmp_path, resume=True, **options)).epoch == 5


@HOOKS.register_module()
class TinyCountingHook(Hook):
    """As a user writes one: it begins to count when the training begins."""

    def before_train(self, runner) -> None:
        self.steps, self.losses, self.switched, self.phase = 0, {}, False, 'first'
        self.began = runner.iter

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None) -> None:
        self.steps += 1
        self.losses[self.steps] = float(outputs['loss'])
        self.switched = True
        if self.steps == 10:
            runner.train_loop.stop_training = True


@HOOKS.register_module()
class TinyTellingHook(Hook):
    """It says what its state is."""

    def __init__(self) -> None:
        self.state = object()

    def state_dict(self) -> dict:
        return dict(answer=42)

    def load_state_dict(self, state: dict) -> None:
        self.state = state


@pytest.mark.nightly
def test_the_state_of_a_hook_of_a_user(tmp_path):
    hooks = [dict(type='TinyCountingHook'), dict(type='TinyTellingHook')]
    options = {'custom_hooks': hooks, 'default_hooks.checkpoint.format': 'folder'}
    first = train(tiny_cfg(tmp_path, **options), 6)
    counted = next(hook for hook in first.hooks if type(hook) is TinyCountingHook)
    state = first.message_hub.get_info(HOOK_STATES)
    assert state['TinyCountingHook.1'] == dict(steps=6, losses=counted.losses)
    said = next(tmp_path.glob('*/*.log')).read_text()
    assert 'TinyCountingHook.1: switched changes in training and is not saved' in said
    assert not [name for name in state if 'Timer' in name or 'Checkpoint' in name]

    second = train(tiny_cfg(tmp_path, resume=True, **options))
    again = next(hook for hook in second.hooks if type(hook) is TinyCountingHook)
    assert (again.steps, again.began, again.phase) == (12, 6, 'first')
    assert {step: again.losses[step] for step in counted.losses} == counted.losses
    told = next(hook for hook in second.hooks if type(hook) is TinyTellingHook)
    assert told.state == dict(answer=42)
    # It asked to stop within the last epoch, which a run by epochs completes.
    assert second.iter == 12
    assert train(tiny_cfg(tmp_path, resume=True, **options)).iter == 12


@pytest.mark.nightly
@pytest.mark.parametrize('stop', [10, 11])
def test_a_run_that_was_told_to_stop_ends_its_epoch_first(tmp_path, stop):
    options = {'custom_hooks': [dict(type='TinyCountingHook')], 'train_cfg.max_epochs': 5}
    assert train(tiny_cfg(tmp_path / 'whole', **options)).iter == 12
    train(tiny_cfg(tmp_path / 'stopped', **options), stop)
    assert train(tiny_cfg(tmp_path / 'stopped', resume=True, **options)).iter == 12
    same = [final_checkpoint(tmp_path / name).name for name in ('whole', 'stopped')]
    assert same[0] == same[1] == 'epoch_3.pth'


def test_a_state_whose_hook_is_gone_is_told(tmp_path):
    train(early(tmp_path), 5)
    train(tiny_cfg(tmp_path, resume=True, **{'train_cfg.max_epochs': 2}))
    logs = ''.join(path.read_text() for path in tmp_path.glob('*/*.log'))
    assert 'has a state of EarlyStoppingHook.1, which this run does not have' in logs


def test_two_hooks_of_a_class_and_the_skipped_steps():
    def run(*hooks, iteration=3, info=None):
        loop = SimpleNamespace(stop_training=False)
        hub = SimpleNamespace(runtime_info=info or {})
        logger = MMLogger.get_current_instance()
        return SimpleNamespace(
            hooks=hooks, message_hub=hub, iter=iteration, train_loop=loop, logger=logger, cfg={}
        )

    def hooks():
        monitors = ('loss_a', 'loss_b')
        return [*map(EarlyStoppingHook, monitors), RuntimeInfoHook('skip'), IterTimerHook()]

    first, second, info, timer = hooks()
    states = HookStates(run(first, second, info, timer))
    assert states.now() == {}  # the training has not begun
    states.begin()
    first.wait_count, second.wait_count, info._policy.skipped_in_a_row = 1, 2, 3
    timer.time_sec_tot = 100.0
    saved = {HOOK_STATES: states.now()}
    others = hooks()
    HookStates(run(*others, info=saved)).begin()
    assert [hook.wait_count for hook in others[:2]] == [1, 2]
    assert others[2]._policy.skipped_in_a_row == 3
    assert others[3].time_sec_tot == 0
    fresh = hooks()
    HookStates(run(*fresh, iteration=0, info=saved)).begin()  # the hub of another run
    assert fresh[0].wait_count == 0
