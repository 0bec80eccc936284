"""What happens to long runs: signals, dead processes, files that cannot be read."""

from .preemption import PreemptionHook
from .unreadable import UnreadableHook
from .watch_hook import WatchHook

__all__ = ['PreemptionHook', 'UnreadableHook', 'WatchHook']
