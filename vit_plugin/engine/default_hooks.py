"""The default hooks of a run: MMEngine's and ours, changed by ``default_hooks`` in the config."""

from collections.abc import Mapping
from typing import Any

from mmengine.hooks import CheckpointHook as EagerCheckpointHook

from .checkpoints.hook import CheckpointHook
from .faults.preemption import PreemptionHook
from .runtime_info import RuntimeInfoHook

# A config may change each by default_hooks.NAME, or disable it with None there.
OUR_DEFAULT_HOOKS = {
    'runtime_info': RuntimeInfoHook,
    'checkpoint': CheckpointHook,
    'preemption': PreemptionHook,
}
# MMEngine's own default hooks. It requires their type in a config that changes one of their
# settings; we add the type if it is missing.
MMENGINE_DEFAULT_HOOKS = {
    'timer': 'IterTimerHook',
    'sampler_seed': 'DistSamplerSeedHook',
    'logger': 'LoggerHook',
    'param_scheduler': 'ParamSchedulerHook',
}
# MMEngine's checkpoint hook, as a config may name it.
PLAIN_CHECKPOINT_HOOKS = ('CheckpointHook', 'mmengine.CheckpointHook', EagerCheckpointHook)


def with_default_hooks(hooks: Mapping[str, Any] | None) -> dict[str, Any]:
    """Complete ``default_hooks`` with ours, and replace MMEngine's checkpoint hook by ours.

    A hook that the config disables by None is None, or left out if MMEngine does not know it.
    """
    hooks = hooks or {}
    complete: dict[str, Any] = {
        name: dict(type=hook_class) for name, hook_class in OUR_DEFAULT_HOOKS.items()
    }
    if 'checkpoint' not in hooks:
        complete['checkpoint']['interval'] = 1  # MMEngine's default; the hook's own is never
    for name, hook in hooks.items():
        default = complete.get(name, {})
        if name in MMENGINE_DEFAULT_HOOKS:
            default = dict(type=MMENGINE_DEFAULT_HOOKS[name])
        complete[name] = {**default, **hook} if isinstance(hook, Mapping) else hook
    if (
        isinstance(complete['checkpoint'], Mapping)
        and complete['checkpoint']['type'] in PLAIN_CHECKPOINT_HOOKS
    ):
        complete['checkpoint'] = {**complete['checkpoint'], 'type': CheckpointHook}
    # MMEngine takes None only for its own default hooks.
    known = ('runtime_info', 'checkpoint', *MMENGINE_DEFAULT_HOOKS)
    return {name: hook for name, hook in complete.items() if hook is not None or name in known}
