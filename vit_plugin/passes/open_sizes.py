"""Replace layers that would fix the image size of an exported graph."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from timm.layers import to_2tuple
from torch import Tensor, nn


class OpenPool(nn.Module):
    """``nn.AdaptiveAvgPool2d`` as matrix products, which can be exported for maps of any size.

    A side of None keeps its length. Shape: (B, C, H, W) -> (B, C, h, w).
    """

    def __init__(self, size: tuple[int | None, int | None]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = (
            bin_weights(side, side if count is None else count, x)
            for side, count in zip(x.shape[2:], self.size, strict=True)
        )
        return rows @ x @ columns.transpose(0, 1)


def bin_weights(side: int, count: int, like: Tensor) -> Tensor:
    """The weights (count, side) with which ``count`` bins average the elements of a side.

    The bins are those of ``nn.AdaptiveAvgPool2d``. Neighboring bins may share one element.
    """
    bins = torch.arange(count, device=like.device)
    start, stop = bins * side // count, ((bins + 1) * side + count - 1) // count  # rounded up
    elements = torch.arange(side, device=like.device)
    inside = (elements >= start[:, None]) & (elements < stop[:, None])
    return inside.to(like.dtype) / (stop - start)[:, None].to(like.dtype)


@contextmanager
def open_sizes(model: nn.Module) -> Iterator[None]:
    """Within this context, tracing the model does not fix the size of the example image.

    Adaptive pools become :class:`OpenPool`, and MMSegmentation's ``resize`` does not compare sizes
    for its warnings. Afterward the model is restored.
    """
    pools = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        # A pool to 1 x 1 is a mean, which is exported for any size.
        if type(child) is nn.AdaptiveAvgPool2d and to_2tuple(child.output_size) != (1, 1)
    ]
    # Only if MMSegmentation is in use. Its modules import `resize` by name, so each is patched.
    wrappers = sys.modules.get('mmseg.models.utils.wrappers')
    resize: Any = getattr(wrappers, 'resize', None)
    importers: list[Any] = [
        module
        for name, module in sys.modules.items()
        if resize and name.startswith('mmseg.') and vars(module).get('resize') is resize
    ]
    try:
        for parent, name, pool in pools:
            setattr(parent, name, OpenPool(to_2tuple(pool.output_size)))
        for module in importers:
            module.resize = partial(resize, warning=False)
        yield
    finally:
        for parent, name, pool in pools:
            setattr(parent, name, pool)
        for module in importers:
            module.resize = resize
