"""What happens to long runs: signals, lost ranks, files that cannot be read."""

from .lost import naming_lost_ranks
from .preemption import PreemptionHook
from .unreadable import UnreadableHook

__all__ = ['PreemptionHook', 'UnreadableHook', 'naming_lost_ranks']
