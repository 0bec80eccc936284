"""Several views of each image through one model."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError


def outputs_of_views(model: nn.Module, views: Sequence[Tensor]) -> Tensor:
    """Views (B, C, H_v, W_v) -> their outputs (V, B, K) in the same order.

    Views of one size that follow each other are computed at once.

    Args:
        model: returns a tuple, whose last tensor is (B, K).
        views: the views, each of all images.
    """
    groups = [torch.cat(list(group)) for _, group in groupby(views, key=lambda view: view.shape)]
    return torch.cat([model(group)[-1] for group in groups]).unflatten(0, (len(views), -1))


def check_views(algorithm: str, views: Any, num_large: int) -> None:
    """Check that there are views of each image.

    Raises:
        ConfigError: if they are fewer than two, or fewer than the large ones.
    """
    if not isinstance(views, (list, tuple)) or len(views) < max(2, num_large):
        raise ConfigError(
            f'{algorithm}: num_large={num_large} large views and at least two views of each '
            'image are needed; give them by views of data_preprocessor, or by MultiView in '
            'the pipeline.'
        )
