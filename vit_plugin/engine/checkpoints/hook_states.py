"""The state of a run's hooks, saved among MMEngine's runtime information."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch.distributed.checkpoint.stateful import Stateful

HOOK_STATES = 'hook_states'
LOOP = 'train_loop'  # the loop's entry, which a hook may have stopped
# Our hooks have a `state_dict`, save themselves as EMAHook does, or depend only on the position.
OWN_PACKAGE = 'vit_plugin'
CLOCKS = ('IterTimerHook',)  # these count within one process
FRAMEWORK_PACKAGES = (
    'mmengine',
    'mmpretrain',
    'mmdet',
    'mmseg',
)  # their flags describe this process


class HookStates:
    """Saves and restores the counters of the hooks.

    A hook may define its state by ``state_dict()`` and ``load_state_dict(state)``. For any other
    hook, the state is those numbers, or containers of numbers, that have changed since the training
    began, such as ``wait_count`` and ``best_score`` of MMEngine's ``EarlyStoppingHook``. Flags and
    strings are not restored, since they may describe what was done to the model or the data in this
    process: ``_has_switched`` of MMDetection's ``PipelineSwitchHook`` would keep a resumed run on
    the first pipeline. A warning names attributes that change and are not saved.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._first: dict[str, dict[str, Any]] | None = None
        self._named: set[str] = set()  # hooks already named in the log

    def begin(self) -> None:
        """Restore the states of a resumed checkpoint, after the hooks' ``before_train``."""
        runner, hooks = self._runner, dict(self._hooks())
        self._first = {name: deepcopy(_plain(hook)) for name, hook in hooks.items()}
        info = runner.message_hub.runtime_info
        # A new run may reuse the message hub of an old one.
        saved = info.get(HOOK_STATES, {}) if runner.iter else {}
        for name in saved.keys() & hooks.keys():
            state, hook = deepcopy(saved[name]), hooks[name]
            if isinstance(hook, Stateful):
                hook.load_state_dict(state)
            else:
                vars(hook).update(state)
                runner.logger.info(f'{name} continues with {_as_text(state)}.')
        if gone := sorted(saved.keys() - hooks.keys() - {LOOP}):
            runner.logger.warning(
                f'The checkpoint has a state of {", ".join(gone)}, which this run does not have.'
            )
        if LOOP in saved and not runner.cfg.get('resume_changed'):
            runner.train_loop.stop_training = True

    def now(self) -> dict[str, dict[str, Any]]:
        """The states to save, by class and order of the hooks."""
        if self._first is None:
            return {}
        states = {}
        for name, hook in self._hooks():
            if isinstance(hook, Stateful):
                states[name] = hook.state_dict()
                continue
            first = self._first.get(name, {})
            changed = {
                key: value
                for key, value in _plain(hook).items()
                if key not in first or first[key] != value
            }
            states[name] = {key: value for key, value in changed.items() if _is_number(value)}
            self._warn(name, hook, changed.keys() - states[name].keys())
        if getattr(self._runner.train_loop, 'stop_training', False):
            states[LOOP] = dict(stop_training=True)
        return {name: state for name, state in states.items() if state}

    def _hooks(self) -> Iterator[tuple[str, Any]]:
        numbers: dict[str, int] = {}
        for hook in self._runner.hooks:
            kind = type(hook)
            numbers[kind.__name__] = number = numbers.get(kind.__name__, 0) + 1
            is_ours = kind.__module__.partition('.')[0] == OWN_PACKAGE or kind.__name__ in CLOCKS
            if isinstance(hook, Stateful) or not is_ours:
                yield f'{kind.__name__}.{number}', hook

    def _warn(self, name: str, hook: Hook, unsaved: set[str]) -> None:
        foreign = type(hook).__module__.partition('.')[0] not in FRAMEWORK_PACKAGES
        if unsaved and foreign and name not in self._named:
            self._named.add(name)
            self._runner.logger.warning(
                f'{name}: {", ".join(sorted(unsaved))} changes in training and is not saved, since '
                'it is not a number; if a resumed run needs it, give the hook state_dict() and '
                'load_state_dict(state).'
            )


def _plain(hook: Hook) -> dict[str, Any]:
    """The attributes of a hook that are plain values or containers of them."""
    return {
        name: value
        for name, value in vars(hook).items()
        if _is_number(value) or isinstance(value, (bool, str))
    }


def _is_number(value: Any) -> bool:
    """True for a number, None, and lists, tuples and dicts of them."""
    if type(value) in (list, tuple):
        return all(map(_is_number, value))
    if type(value) is dict:
        return all(map(_is_number, value.values()))
    return value is None or type(value) in (int, float)


def _as_text(state: Mapping[str, Any]) -> str:
    return ', '.join(f'{name}={value!r:.50}' for name, value in state.items())
