"""The default hooks of a run: MMEngine's and ours, changed by ``default_hooks`` in the config."""

from collections.abc import Mapping
from typing import Any

from mmengine.hooks import CheckpointHook as EagerCheckpointHook

from .checkpoints.hook import CheckpointHook
from .faults.preemption import PreemptionHook
from .runtime_info import RuntimeInfoHook

# A config may change or disable each by default_hooks.NAME.
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
    """Complete ``default_hooks`` with ours, and replace MMEngine's checkpoint hook by ours."""
    complete: dict[str, Any] = {
        name: dict(type=hook_class) for name, hook_class in OUR_DEFAULT_HOOKS.items()
    }
    for name, hook in (hooks or {}).items():
        default = complete.get(name, {})
        if name in MMENGINE_DEFAULT_HOOKS:
            default = dict(type=MMENGINE_DEFAULT_HOOKS[name])
        complete[name] = {**default, **hook} if isinstance(hook, Mapping) else hook
    if (
        isinstance(complete['checkpoint'], Mapping)
        and complete['checkpoint']['type'] in PLAIN_CHECKPOINT_HOOKS
    ):
        complete['checkpoint'] = {**complete['checkpoint'], 'type': CheckpointHook}
    return complete
