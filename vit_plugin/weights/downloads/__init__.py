"""Weights from addresses: fetched once on a host, within bounds, and kept only when they are whole."""

from .bounds import Bounds
from .cache import download, kept_if_whole, place

__all__ = ['Bounds', 'download', 'kept_if_whole', 'place']
