"""What plugs into MMEngine's runner."""

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .amp import AmpOptimWrapper
from .layer_decay import LayerDecayOptimWrapperConstructor
from .report import ReportHook
from .runtime_info import OptimWrapper, RuntimeInfoHook

__all__ = ['AmpOptimWrapper', 'LayerDecayOptimWrapperConstructor', 'OptimWrapper', 'ReportHook', 'RuntimeInfoHook']
