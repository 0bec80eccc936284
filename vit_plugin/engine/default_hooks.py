"""The default hooks of a run, which ``default_hooks`` in its config changes."""

from collections.abc import Mapping
from typing import Any

from mmengine.hooks import CheckpointHook as EagerCheckpointHook

from .checkpoints.hook import CheckpointHook
from .faults.preemption import PreemptionHook
from .runtime_info import RuntimeInfoHook

# A config may change or disable each by default_hooks.NAME.
OF_THIS_PACKAGE = {
    'runtime_info': RuntimeInfoHook,
    'checkpoint': CheckpointHook,
    'preemption': PreemptionHook,
}
# MMEngine's own hooks. A config that changes a setting must repeat the type, so it is added here.
OF_MMENGINE = {
    'timer': 'IterTimerHook',
    'sampler_seed': 'DistSamplerSeedHook',
    'logger': 'LoggerHook',
    'param_scheduler': 'ParamSchedulerHook',
}
PLAIN_CHECKPOINT_HOOKS = ('CheckpointHook', 'mmengine.CheckpointHook', EagerCheckpointHook)


def with_default_hooks(hooks: Mapping[str, Any] | None) -> dict[str, Any]:
    """Complete ``default_hooks`` with ours, and replace MMEngine's checkpoint hook by ours."""
    complete: dict[str, Any] = {name: dict(type=kind) for name, kind in OF_THIS_PACKAGE.items()}
    for name, hook in (hooks or {}).items():
        known = complete.get(name) or (dict(type=OF_MMENGINE[name]) if name in OF_MMENGINE else {})
        complete[name] = {**known, **hook} if isinstance(hook, Mapping) else hook
    if (
        isinstance(complete['checkpoint'], Mapping)
        and complete['checkpoint']['type'] in PLAIN_CHECKPOINT_HOOKS
    ):
        complete['checkpoint'] = {**complete['checkpoint'], 'type': CheckpointHook}
    return complete
