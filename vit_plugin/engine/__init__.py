"""Parts for MMEngine's runner."""

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .amp import AmpOptimWrapper
from .checkpoints import CheckpointHook
from .ema import EMAHook
from .layer_decay import LayerDecayOptimWrapperConstructor
from .optim_wrapper import OptimWrapper
from .optimize import OptimizeHook
from .preemption import PreemptionHook
from .randomness import SeedHook
from .report import ReportHook
from .resuming import SavedConfigHook
from .runner import Runner
from .runtime_info import RuntimeInfoHook
from .unreadable import UnreadableHook
from .watch import WatchHook

__all__ = ['AmpOptimWrapper', 'CheckpointHook', 'EMAHook', 'LayerDecayOptimWrapperConstructor', 'OptimWrapper',
           'OptimizeHook', 'PreemptionHook', 'ReportHook', 'Runner', 'RuntimeInfoHook', 'SavedConfigHook', 'SeedHook',
           'UnreadableHook', 'WatchHook']
