"""Sample a long list."""

import numpy as np


def evenly_spaced(count: int, max_count: int) -> list[int]:
    """Evenly spaced numbers from 0 to ``count`` - 1, with both ends; at most ``max_count``."""
    return list(
        dict.fromkeys(np.linspace(0, count - 1, min(count, max_count)).round().astype(int).tolist())
    )
