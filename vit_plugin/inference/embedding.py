"""Compute the features of images as vectors, and write them to a file to search and compare."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from anyfolder.complete import replacing

from .inputs import Frame, Input, Reading
from .trained_model import TrainedModel

READER_THREADS = 4  # threads that read images while the model computes


def embed(
    trained: TrainedModel, reading: Reading, batch_size: int = 32
) -> Iterator[tuple[list[str], np.ndarray]]:
    """The names and features (N, C) of each batch of images in order, without unreadable images.

    Raises:
        ConfigError: see :meth:`TrainedModel.features`.
    """

    def sample(source: Input) -> tuple[str, dict[str, Any]] | None:
        # A reader of the config's own takes the file in place of the pixels.
        prepared = reading.read(
            source,
            lambda pixels: trained.sample(trained.sample_argument(Frame(source, None, pixels))),
        )
        return None if prepared is None else (source.name, prepared)

    inputs = reading.inputs
    with ThreadPoolExecutor(READER_THREADS) as pool:
        waiting: Iterable[tuple[str, dict[str, Any]] | None] = ()
        # One round more than there are batches: each round yields the batch that the previous one
        # began to read.
        for i in range(0, len(inputs) + batch_size, batch_size):
            ready = list(filter(None, waiting))
            waiting = pool.map(sample, inputs[i : i + batch_size])
            if ready:  # the next images are read while these are computed
                names, samples = zip(*ready, strict=True)
                yield list(names), trained.features(samples)


def save_embeddings(target: str | Path, names: Sequence[str], features: Tensor) -> None:
    """Write ``names`` (N, ) and ``features`` (N, C) in float32 as a ``.npz``.

    Raises:
        ConfigError: see :func:`~anyfolder.complete.replacing`.
    """
    with replacing(target) as path:
        np.savez(path, names=np.array(names), features=features.float().numpy())
