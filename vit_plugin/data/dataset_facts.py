"""Facts about built data sets: their classes, and images shared with the training set."""

import os
from hashlib import blake2b
from typing import Any

import numpy as np

MAX_SHARED_SAMPLES = 10_000  # larger data sets are not compared with another one


def classes_of(dataset: Any) -> tuple[str, ...]:
    """The names of the classes of a data set; empty if it has none."""
    classes = (getattr(dataset, 'metainfo', None) or {}).get('classes') or ()
    return tuple(map(str, (classes,) if isinstance(classes, str) else classes))


def count_shared_images(val: Any, train: Any) -> int | None:
    """The number of validation samples that are also training samples.

    None if that is unknown: images without an identity, or a data set of more than 10,000.
    """
    for dataset in (val, train):
        if not hasattr(dataset, '__len__') or not hasattr(dataset, 'get_data_info'):
            return None
        if len(dataset) > MAX_SHARED_SAMPLES:
            return None
    val_images = {image_identity(val.get_data_info(i)) for i in range(len(val))}
    train_images = {image_identity(train.get_data_info(i)) for i in range(len(train))}
    if None in val_images | train_images:
        return None
    return len(val_images & train_images)


def image_identity(info: dict[str, Any]) -> str | None:
    """The identity of an image: its path, or a digest of its pixels; None without either."""
    if path := info.get('img_path'):
        return os.path.abspath(path)
    pixels = info.get('img')
    return blake2b(pixels.tobytes()).hexdigest() if isinstance(pixels, np.ndarray) else None
