"""Rows of a published classification layer that do not stand for a class."""

from collections.abc import Sequence

import torch
from torch import Tensor

from vit_plugin.errors import ConfigError


def class_rows(owner: str, num_classes: int, unused: Sequence[int]) -> Tensor:
    """The other rows (num_classes,) of a layer that has both.

    Raises:
        ConfigError: if there are no such rows.
    """
    every = range(num_classes + len(unused))
    classes = [row for row in every if row not in unused]
    if len(classes) != num_classes:
        raise ConfigError(
            f'{owner}: unused_rows={list(unused)} must be different rows from 0 to '
            f'{len(every) - 1}, for num_classes={num_classes}.'
        )
    return torch.tensor(classes)
