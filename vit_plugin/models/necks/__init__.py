from .token_pooling import TokenPooling

__all__ = ['TokenPooling']
