"""Which rows of a published classification layer stand for a class.

Some published detectors have more outputs than classes: those trained on COCO often have 91, one
for each category id, and 11 of these ids are not used.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from vit_plugin.errors import ConfigError


def class_rows(owner: str, num_classes: int, unused: Sequence[int]) -> Tensor:
    """The indices (num_classes,) of a layer's rows that stand for a class: all but ``unused``.

    Args:
        owner: the class of the head, for the message.
        num_classes: number of classes.
        unused: indices of the other rows.

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
