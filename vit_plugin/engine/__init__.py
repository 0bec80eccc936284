"""The runner, and the hooks, optimizers and wrappers that this package adds to MMEngine.

They are registered by name and imported lazily, since commands that do not train need none of them.
"""

# isort: off
# This import comes first, since its error says what to install if MMEngine is missing.
from vit_plugin.registry import (
    HOOKS,
    METRICS,
    OPTIM_WRAPPER_CONSTRUCTORS,
    OPTIM_WRAPPERS,
    OPTIMIZERS,
    RUNNERS,
    lazy_getattr,
)
# isort: on

HOOKS.register_lazily(
    {
        'CheckpointHook': 'vit_plugin.engine.checkpoints.hook',
        'EMAHook': 'vit_plugin.engine.sharding.ema',
        'OptimizeHook': 'vit_plugin.engine.optimize_hook',
        'PreemptionHook': 'vit_plugin.engine.faults.preemption',
        'ProgressHook': 'vit_plugin.engine.progress',
        'RuntimeInfoHook': 'vit_plugin.engine.runtime_info',
        'SeedHook': 'vit_plugin.engine.exact.randomness',
        'ThroughputHook': 'vit_plugin.engine.throughput',
        'UnreadableHook': 'vit_plugin.engine.faults.unreadable_hook',
    }
)
OPTIMIZERS.register_lazily({'Muon': 'vit_plugin.engine.optim.muon'})
OPTIM_WRAPPERS.register_lazily(
    dict.fromkeys(('AmpOptimWrapper', 'OptimWrapper'), 'vit_plugin.engine.optim.wrappers')
)
OPTIM_WRAPPER_CONSTRUCTORS.register_lazily(
    {'LayerDecayOptimWrapperConstructor': 'vit_plugin.engine.optim.layer_decay'}
)
RUNNERS.register_lazily({'Runner': 'vit_plugin.engine.runner'})
METRICS.register_lazily({'FasterCocoMetric': 'vit_plugin.detection.coco_metric'})
__getattr__ = lazy_getattr(
    __name__, HOOKS, METRICS, OPTIMIZERS, OPTIM_WRAPPERS, OPTIM_WRAPPER_CONSTRUCTORS, RUNNERS
)
