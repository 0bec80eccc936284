"""The first training images as a batch, optionally scaled down."""

import copy
from typing import Any

import numpy as np
from mmengine.registry import TRANSFORMS
from mmengine.runner import Runner

SIZE_ARGUMENTS = {'scale', 'crop_size'}  # arguments of transforms that resize or crop images


def first_batch(loader: Any, images: int) -> Any:
    """The first images of a data loader, collated."""
    return loader.collate_fn([loader.dataset[i] for i in range(images)])


def first_scaled_batch(runner: Runner, loader: Any, images: int, factor: float) -> Any:
    """The first ``images`` images as a batch, loaded with their sides scaled by ``factor``."""
    steps = copy.deepcopy(runner.cfg.train_dataloader.dataset.pipeline)
    for step in steps:
        for key in SIZE_ARGUMENTS & step.keys():
            if np.min(step[key]) > 1:  # smaller values are fractions of an image
                sides = np.broadcast_to(step[key], 2)
                step[key] = tuple(max(int(factor * side), 1) for side in sides)
    pipeline = loader.dataset.pipeline
    if hasattr(loader.dataset, 'pipeline_types'):  # MMDetection's MultiImageMixDataset
        loader.dataset.pipeline = [TRANSFORMS.build(step) for step in steps]
    else:
        loader.dataset.pipeline = type(pipeline)(steps)
    try:
        return first_batch(loader, images)
    finally:
        loader.dataset.pipeline = pipeline
