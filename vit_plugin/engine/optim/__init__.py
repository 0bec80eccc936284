"""How a step changes the weights: optimizer wrappers, layer-wise decay, schedules."""

from .amp import AmpOptimWrapper
from .layer_decay import LayerDecayOptimWrapperConstructor
from .muon import Muon
from .schedules import scaled
from .wrapper import OptimWrapper, in_window

__all__ = ['AmpOptimWrapper', 'LayerDecayOptimWrapperConstructor', 'Muon', 'OptimWrapper', 'in_window',
           'scaled']
