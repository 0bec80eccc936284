"""Passes make a finished model faster on its device.

A pass is a function that changes a model in place and can be undone. Names, parameters and state
dict stay the same. Nothing applies a pass unless it is called. The models do not depend on passes.
:func:`optimize` applies those for inference on a CPU. The context managers in
:mod:`~vit_plugin.passes.precompute` and :mod:`~vit_plugin.passes.open_sizes` are for exports.
"""

from .optimize import optimize, restore

__all__ = ['optimize', 'restore']
