"""Checkpoints of a run: what they hold, how they are written, which are kept."""

from .hook import CheckpointHook
from .saver import Saver

__all__ = ['CheckpointHook', 'Saver']
