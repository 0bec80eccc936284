"""The features of images as vectors in a file, to search and compare them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from vit_plugin.files.complete import replacing

from .trained_model import TrainedModel

THREADS = 4  # that read images while the model computes


def embed(trained: TrainedModel, files: Sequence[str], batch_size: int = 32) -> Iterator[np.ndarray]:
    """The features (N, C) of each batch of image files, in their order.

    Raises:
        ConfigError: if an image cannot be read, or see :meth:`TrainedModel.features`.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        batches = (files[i:i + batch_size] for i in range(0, len(files), batch_size))
        begin = partial(pool.map, trained.sample)
        waiting = begin(next(batches))
        for batch in batches:
            ready, waiting = list(waiting), begin(batch)  # the next is read while this one is computed
            yield trained.features(ready)
        yield trained.features(list(waiting))


def save_embeddings(target: str | Path, names: Sequence[str], features: Tensor) -> None:
    """Write ``names`` (N, ) and ``features`` (N, C) in float32 as a ``.npz``.

    Raises:
        ConfigError: see :func:`~vit_plugin.files.complete.replacing`.
    """
    with replacing(target) as path:
        np.savez(path, names=np.array(names), features=features.float().numpy())
