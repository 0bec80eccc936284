"""Components for MMEngine's runner.

They are imported lazily, since commands that do not train need none of them.
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
    later_of,
)
# isort: on

HOOKS.import_later(
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
OPTIMIZERS.import_later({'Muon': 'vit_plugin.engine.optim.muon'})
OPTIM_WRAPPERS.import_later(
    dict.fromkeys(('AmpOptimWrapper', 'OptimWrapper'), 'vit_plugin.engine.optim.wrappers')
)
OPTIM_WRAPPER_CONSTRUCTORS.import_later(
    {'LayerDecayOptimWrapperConstructor': 'vit_plugin.engine.optim.layer_decay'}
)
RUNNERS.import_later({'Runner': 'vit_plugin.engine.runner'})
METRICS.import_later({'FasterCocoMetric': 'vit_plugin.detection.coco_metric'})
__getattr__ = later_of(
    __name__, HOOKS, METRICS, OPTIMIZERS, OPTIM_WRAPPERS, OPTIM_WRAPPER_CONSTRUCTORS, RUNNERS
)
