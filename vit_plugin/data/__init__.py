"""Datasets that the framework lacks."""

from .digits import Digits

__all__ = ['Digits']
