"""A run that can begin anywhere and ends as if it had never stopped."""

from .loops import resumable
from .randomness import SeedHook

__all__ = ['SeedHook', 'resumable']
