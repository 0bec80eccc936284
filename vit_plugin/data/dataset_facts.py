"""Facts about built data sets: their classes, and images shared with the training set."""

import os
from hashlib import blake2b
from typing import Any

import numpy as np

COMPARED = 10_000  # most samples of a data set to compare with another one


def classes_of(dataset: Any) -> tuple[str, ...]:
    """The names of the classes of a data set; empty if it has none."""
    classes = (getattr(dataset, 'metainfo', None) or {}).get('classes') or ()
    return tuple(map(str, (classes,) if isinstance(classes, str) else classes))


def trained_on(val: Any, train: Any) -> int | None:
    """The number of validation samples that are also training samples.

    None if that is not known: a data set names no images, or one has more than 10,000.
    """
    if any(
        not hasattr(part, '__len__') or len(part) > COMPARED or not hasattr(part, 'get_data_info')
        for part in (val, train)
    ):
        return None
    names, others = (
        [image_identity(part.get_data_info(i)) for i in range(len(part))] for part in (val, train)
    )
    return None if None in {*names, *others} else len({*names} & {*others})


def image_identity(info: dict[str, Any]) -> str | None:
    """The identity of an image: its path, or a digest of its pixels; None without either."""
    if path := info.get('img_path'):
        return os.path.abspath(path)
    pixels = info.get('img')
    return blake2b(pixels.tobytes()).hexdigest() if isinstance(pixels, np.ndarray) else None
