"""What a built data set says of itself, and which of its samples to look at."""

from typing import Any

import numpy as np


def classes_of(dataset: Any) -> tuple[str, ...]:
    """The names of the classes of a data set; empty if it has none."""
    classes = (getattr(dataset, 'metainfo', None) or {}).get('classes') or ()
    return tuple(map(str, (classes,) if isinstance(classes, str) else classes))


def evenly_spaced(count: int, most: int) -> list[int]:
    """At most so many numbers below ``count``, evenly spaced from 0 on."""
    return list(
        dict.fromkeys(np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist())
    )
