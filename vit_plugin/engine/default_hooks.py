"""The hooks that a run has, as ``default_hooks`` in its config changes them."""

from collections.abc import Mapping
from typing import Any

from mmengine.hooks import CheckpointHook as EagerCheckpointHook

from .checkpoints.hook import CheckpointHook
from .faults.preemption import PreemptionHook
from .runtime_info import RuntimeInfoHook

# Each may be changed or left out as default_hooks.NAME in a config.
OF_THIS_PACKAGE = {
    'runtime_info': RuntimeInfoHook,
    'checkpoint': CheckpointHook,
    'preemption': PreemptionHook,
}
# MMEngine's own. It wants their types again where a config changes one of their settings.
OF_MMENGINE = {
    'timer': 'IterTimerHook',
    'sampler_seed': 'DistSamplerSeedHook',
    'logger': 'LoggerHook',
    'param_scheduler': 'ParamSchedulerHook',
}
PLAIN_CHECKPOINT_HOOKS = ('CheckpointHook', 'mmengine.CheckpointHook', EagerCheckpointHook)


def with_default_hooks(hooks: Mapping[str, Any] | None) -> dict[str, Any]:
    """``default_hooks`` with ours, and with our checkpoint hook in place of MMEngine's."""
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
