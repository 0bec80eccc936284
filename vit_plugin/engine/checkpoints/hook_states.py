"""The state of a run's hooks, saved among MMEngine's runtime information."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch.distributed.checkpoint.stateful import Stateful

HOOK_STATES = 'hook_states'
LOOP = 'train_loop'  # key of an entry that exists if a hook has stopped the loop
# Our hooks have a `state_dict`, save themselves as EMAHook does, or depend only on the position.
OWN_PACKAGE = 'vit_plugin'
PROCESS_TIMERS = ('IterTimerHook',)  # these count within one process
# The flags of their hooks describe this process, and are not worth a warning.
FRAMEWORK_PACKAGES = ('mmengine', 'mmpretrain', 'mmdet', 'mmseg')


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
        # The plain attributes of each hook when training began.
        self._initial: dict[str, dict[str, Any]] | None = None
        self._warned_of: set[str] = set()  # names of hooks

    def begin(self) -> None:
        """Restore the states of a resumed checkpoint, after the hooks' ``before_train``."""
        runner, hooks = self._runner, dict(self._hooks())
        self._initial = {name: deepcopy(_plain_attributes(hook)) for name, hook in hooks.items()}
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
        # A run that a hook has stopped stays stopped, unless it is resumed with changes.
        if LOOP in saved and not runner.cfg.get('resume_changed'):
            runner.train_loop.stop_training = True

    def capture(self) -> dict[str, dict[str, Any]]:
        """The states to save, by name, see :meth:`_hooks`. Empty before :meth:`begin`."""
        if self._initial is None:
            return {}
        states = {}
        for name, hook in self._hooks():
            if isinstance(hook, Stateful):
                states[name] = hook.state_dict()
                continue
            initial = self._initial.get(name, {})
            changed = {
                key: value
                for key, value in _plain_attributes(hook).items()
                if key not in initial or initial[key] != value
            }
            states[name] = {key: value for key, value in changed.items() if _is_numeric(value)}
            self._warn_of_unsaved(name, hook, changed.keys() - states[name].keys())
        if getattr(self._runner.train_loop, 'stop_training', False):
            states[LOOP] = dict(stop_training=True)
        return {name: state for name, state in states.items() if state}

    def _hooks(self) -> Iterator[tuple[str, Any]]:
        """The hooks that may have a state, with names such as ``EarlyStoppingHook.1``."""
        numbers: dict[str, int] = {}
        for hook in self._runner.hooks:
            hook_class = type(hook)
            class_name = hook_class.__name__
            numbers[class_name] = number = numbers.get(class_name, 0) + 1
            is_ours = hook_class.__module__.partition('.')[0] == OWN_PACKAGE
            if isinstance(hook, Stateful) or not (is_ours or class_name in PROCESS_TIMERS):
                yield f'{class_name}.{number}', hook

    def _warn_of_unsaved(self, name: str, hook: Hook, unsaved: set[str]) -> None:
        is_foreign = type(hook).__module__.partition('.')[0] not in FRAMEWORK_PACKAGES
        if unsaved and is_foreign and name not in self._warned_of:
            self._warned_of.add(name)
            self._runner.logger.warning(
                f'{name}: {", ".join(sorted(unsaved))} changes in training and is not saved, since '
                'it is not a number; if a resumed run needs it, give the hook state_dict() and '
                'load_state_dict(state).'
            )


def _plain_attributes(hook: Hook) -> dict[str, Any]:
    """The attributes of a hook that are plain values or containers of them.

    Numbers of numpy, such as the scores of MMSegmentation, become plain ones.
    """
    return {
        name: _without_numpy(value)
        for name, value in vars(hook).items()
        if _is_numeric(value) or isinstance(value, (bool, str))
    }


def _without_numpy(value: Any) -> Any:
    """A value with plain numbers in place of those of numpy, in lists, tuples and dicts too."""
    if isinstance(value, np.number):
        return value.item()
    if type(value) in (list, tuple):
        return type(value)(map(_without_numpy, value))
    if type(value) is dict:
        return {name: _without_numpy(item) for name, item in value.items()}
    return value


def _is_numeric(value: Any) -> bool:
    """True for a number, None, and lists, tuples and dicts of them."""
    if type(value) in (list, tuple):
        return all(map(_is_numeric, value))
    if type(value) is dict:
        return all(map(_is_numeric, value.values()))
    return value is None or type(value) in (int, float) or isinstance(value, np.number)


def _as_text(state: Mapping[str, Any]) -> str:
    return ', '.join(f'{name}={value!r:.50}' for name, value in state.items())
