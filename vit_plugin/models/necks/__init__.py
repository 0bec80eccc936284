from .simple_fpn import SimpleFPN
from .token_pooling import TokenPooling

__all__ = ['SimpleFPN', 'TokenPooling']
