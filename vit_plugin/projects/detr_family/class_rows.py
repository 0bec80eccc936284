"""Rows of a published classification layer that do not stand for a class."""

from collections.abc import Sequence

import torch
from torch import Tensor

from vit_plugin.errors import ConfigError


def class_rows(owner: str, num_classes: int, unused: Sequence[int]) -> Tensor:
    """The rows (num_classes,) of a layer that stand for a class: all but ``unused``.

    Raises:
        ConfigError: if ``unused`` are not different rows of the layer.
    """
    rows = range(num_classes + len(unused))
    classes = [row for row in rows if row not in unused]
    if len(classes) != num_classes:
        raise ConfigError(
            f'{owner}: unused_rows={list(unused)} must be different rows from 0 to '
            f'{len(rows) - 1}, for num_classes={num_classes}.'
        )
    return torch.tensor(classes)
