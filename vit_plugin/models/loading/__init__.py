"""Load a checkpoint of any format into a model, through hooks of ``load_state_dict``."""

from .loadable import check_start, find_backbone, load_trained, load_weights
from .value_checks import check_floating_point

__all__ = ['check_floating_point', 'check_start', 'find_backbone', 'load_trained', 'load_weights']
