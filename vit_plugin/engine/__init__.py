"""Parts for MMEngine's runner."""

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .checkpoints.hook import CheckpointHook
from .exact.randomness import SeedHook
from .faults.preemption import PreemptionHook
from .faults.unreadable import UnreadableHook
from .mask_annealing import MaskAnnealingHook
from .optim.amp import AmpOptimWrapper
from .optim.layer_decay import LayerDecayOptimWrapperConstructor
from .optim.muon import Muon
from .optim.wrapper import OptimWrapper
from .optimize import OptimizeHook
from .pictures import PicturesHook
from .progress import ProgressHook
from .report import ReportHook
from .runner import Runner
from .runtime_info import RuntimeInfoHook
from .sharding import EMAHook
from .surface_metric import SurfaceMetric
from .throughput import ThroughputHook

__all__ = [
    'AmpOptimWrapper',
    'CheckpointHook',
    'EMAHook',
    'LayerDecayOptimWrapperConstructor',
    'MaskAnnealingHook',
    'Muon',
    'OptimWrapper',
    'OptimizeHook',
    'PicturesHook',
    'PreemptionHook',
    'ProgressHook',
    'ReportHook',
    'Runner',
    'RuntimeInfoHook',
    'SeedHook',
    'SurfaceMetric',
    'ThroughputHook',
    'UnreadableHook',
]
