from .c2f_projector import C2fProjector
from .simple_fpn import SimpleFPN
from .token_pooling import TokenPooling

__all__ = ['C2fProjector', 'SimpleFPN', 'TokenPooling']
