"""Parts for MMEngine's runner."""

# isort: off
# First, since it says what to install where MMEngine is missing.
from vit_plugin.registry import HOOKS, METRICS, later_of
# isort: on

from .checkpoints.hook import CheckpointHook
from .exact.randomness import SeedHook
from .faults.preemption import PreemptionHook
from .faults.unreadable_hook import UnreadableHook
from .optim.layer_decay import LayerDecayOptimWrapperConstructor
from .optim.muon import Muon
from .optim.wrappers import AmpOptimWrapper, OptimWrapper
from .optimize_hook import OptimizeHook
from .progress import ProgressHook
from .runner import Runner
from .runtime_info import RuntimeInfoHook
from .sharding import EMAHook
from .throughput import ThroughputHook

# Not a location of its own: vit_plugin.detection must be imported before MMDetection.
METRICS.import_later({'FasterCocoMetric': 'vit_plugin.detection.coco_metric'})
__getattr__ = later_of(__name__, HOOKS, METRICS)
__all__ = [
    'AmpOptimWrapper',
    'CheckpointHook',
    'EMAHook',
    'LayerDecayOptimWrapperConstructor',
    'Muon',
    'OptimWrapper',
    'OptimizeHook',
    'PreemptionHook',
    'ProgressHook',
    'Runner',
    'RuntimeInfoHook',
    'SeedHook',
    'ThroughputHook',
    'UnreadableHook',
]
