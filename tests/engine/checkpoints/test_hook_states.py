"""The state of hooks is saved in checkpoints, also that of MMEngine's and of users' hooks."""

from types import SimpleNamespace

import numpy as np
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
# No validation improves by 200 percentage points, so the third one ends the run.
EARLY = dict(type='EarlyStoppingHook', monitor='accuracy/top1', min_delta=200.0, patience=2)


def early_stopping_cfg(folder, **options):
    return tiny_cfg(folder, **{'default_hooks.early_stopping': EARLY, **options})


@pytest.mark.nightly
def test_killed_run_stops_at_the_same_epoch(tmp_path):
    options = {'train_cfg.max_epochs': 8}
    whole = train(early_stopping_cfg(tmp_path / 'whole', **options))
    assert whole.epoch == 3
    for death in ((5, 'step'), (8, 'validation')):
        runner = build(early_stopping_cfg(tmp_path / 'killed', resume=True, **options))
        runner.register_hook(DieHook(*death))
        with pytest.raises(StoppedError):
            runner.train()
    assert train(early_stopping_cfg(tmp_path / 'killed', resume=True, **options)).epoch == 3
    assert compare(tmp_path / 'whole', tmp_path / 'killed') == []
    again = train(early_stopping_cfg(tmp_path / 'killed', resume=True, log_level='INFO', **options))
    assert again.epoch == 3
    log = max((tmp_path / 'killed').glob('*/*.log'), key=lambda path: path.stat().st_mtime_ns)
    assert 'Nothing was left to train: the run had ended at epoch 3 of 8' in log.read_text()
    assert compare(tmp_path / 'whole', tmp_path / 'killed') == []


@pytest.mark.nightly
def test_more_patience_continues_a_stopped_run(tmp_path):
    assert train(early_stopping_cfg(tmp_path, **{'train_cfg.max_epochs': 5})).epoch == 3
    options = {'train_cfg.max_epochs': 5, 'default_hooks.early_stopping.patience': 9}
    assert train(early_stopping_cfg(tmp_path, resume=True, **options)).epoch == 5


@HOOKS.register_module()
class TinyCountingHook(Hook):
    """A user's hook without methods for its state, which counts from the start of the training."""

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
class TinyStatefulHook(Hook):
    """A user's hook with methods for its state."""

    def __init__(self) -> None:
        self.state = object()

    def state_dict(self) -> dict:
        return dict(answer=42)

    def load_state_dict(self, state: dict) -> None:
        self.state = state


@pytest.mark.nightly
def test_states_of_users_hooks_are_saved_and_restored(tmp_path):
    hooks = [dict(type='TinyCountingHook'), dict(type='TinyStatefulHook')]
    options = {'custom_hooks': hooks, 'default_hooks.checkpoint.format': 'folder'}
    first = train(tiny_cfg(tmp_path, **options), 6)
    counted = next(hook for hook in first.hooks if type(hook) is TinyCountingHook)
    state = first.message_hub.get_info(HOOK_STATES)
    assert state['TinyCountingHook.1'] == dict(steps=6, losses=counted.losses)
    log = next(tmp_path.glob('*/*.log')).read_text()
    assert 'TinyCountingHook.1: switched changes in training and is not saved' in log
    assert not [name for name in state if 'Timer' in name or 'Checkpoint' in name]

    second = train(tiny_cfg(tmp_path, resume=True, **options))
    resumed = next(hook for hook in second.hooks if type(hook) is TinyCountingHook)
    assert (resumed.steps, resumed.began, resumed.phase) == (12, 6, 'first')
    assert {step: resumed.losses[step] for step in counted.losses} == counted.losses
    stateful = next(hook for hook in second.hooks if type(hook) is TinyStatefulHook)
    assert stateful.state == dict(answer=42)
    # The hook asks to stop within the last epoch, which an epoch-based run completes.
    assert second.iter == 12
    assert train(tiny_cfg(tmp_path, resume=True, **options)).iter == 12


@pytest.mark.nightly
@pytest.mark.parametrize('stop', [10, 11])
def test_run_that_is_asked_to_stop_completes_its_epoch(tmp_path, stop):
    options = {'custom_hooks': [dict(type='TinyCountingHook')], 'train_cfg.max_epochs': 5}
    assert train(tiny_cfg(tmp_path / 'whole', **options)).iter == 12
    train(tiny_cfg(tmp_path / 'stopped', **options), stop)
    assert train(tiny_cfg(tmp_path / 'stopped', resume=True, **options)).iter == 12
    names = [final_checkpoint(tmp_path / name).name for name in ('whole', 'stopped')]
    assert names[0] == names[1] == 'epoch_3.pth'


def test_state_of_a_missing_hook_is_logged(tmp_path):
    train(early_stopping_cfg(tmp_path), 5)
    train(tiny_cfg(tmp_path, resume=True, **{'train_cfg.max_epochs': 2}))
    logs = ''.join(path.read_text() for path in tmp_path.glob('*/*.log'))
    assert 'has a state of EarlyStoppingHook.1, which this run does not have' in logs


def test_hooks_of_one_class_keep_separate_states():
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
    assert states.capture() == {}  # the training has not begun
    states.begin()
    first.wait_count, second.wait_count, info._policy.skipped_in_a_row = 1, 2, 3
    first.best_score = np.float64(0.25)  # as the scores of MMSegmentation are
    timer.time_sec_tot = 100.0
    saved = {HOOK_STATES: states.capture()}
    others = hooks()
    HookStates(run(*others, info=saved)).begin()
    assert [hook.wait_count for hook in others[:2]] == [1, 2]
    assert (others[0].best_score, type(others[0].best_score)) == (0.25, float)
    assert others[2]._policy.skipped_in_a_row == 3
    assert others[3].time_sec_tot == 0
    fresh = hooks()
    HookStates(run(*fresh, iteration=0, info=saved)).begin()  # the hub of another run
    assert fresh[0].wait_count == 0
