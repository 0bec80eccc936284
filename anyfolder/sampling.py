"""Sample a long list."""

import numpy as np


def evenly_spaced(count: int, max_count: int) -> list[int]:
    """At most ``max_count`` evenly spaced indices of ``count`` items, with both ends."""
    return list(
        dict.fromkeys(np.linspace(0, count - 1, min(count, max_count)).round().astype(int).tolist())
    )
