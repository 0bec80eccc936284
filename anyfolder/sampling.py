"""Sample a long list."""

import numpy as np


def evenly_spaced(count: int, most: int) -> list[int]:
    """At most ``most`` numbers below ``count``, evenly spaced from 0 on."""
    return list(
        dict.fromkeys(np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist())
    )
