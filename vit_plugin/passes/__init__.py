"""Passes make a finished model faster on its device.

A pass is a function that changes a model in place and can be undone. Names, parameters and state
dict stay the same. Nothing applies a pass unless it is called. The models do not depend on passes.
"""

from .optimize import optimize, restore

__all__ = ['optimize', 'restore']
