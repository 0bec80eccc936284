"""What the first layer of a model looks for."""

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.models.loading import find_backbone

from .style import panels, show

NUM_SHOWN = 28  # as in the paper's figure
COLUMNS = 7


def principal_filters(model: nn.Module, count: int = NUM_SHOWN) -> Tensor:
    """The principal components of the filters that see the image (arXiv:2010.11929, Figure 7 left).

    In a pure model these are the filters of the patch embedding, and in a hybrid those of the CNN's first layer, as it
    applies them.

    Args:
        model: a :class:`~vit_plugin.models.VisionTransformer`, or a model that contains one.
        count: number of components. There are no more than filters, or values in a filter.

    Returns:
        Components (count, C, height, width) of unit length, the one with the largest variance first. Their sign is
        that of their largest value.

    Raises:
        ConfigError: if no layer of the stem sees more than one pixel at a time.
    """
    _, backbone = find_backbone(model)
    stem = backbone.patch_embed
    first = next((layer for layer in stem.modules()
                  if isinstance(layer, nn.Conv2d) and layer.in_channels == stem.in_channels), None)
    if first is None or first.kernel_size == (1, 1):
        raise ConfigError('patch_embed: the first layer of this stem sees one pixel at a time, so there are no filters '
                          'to draw.')
    with torch.no_grad():
        weight = first.kernel(first.weight) if hasattr(first, 'kernel') else first.weight
        filters = weight.float().flatten(1)
        components = torch.linalg.svd(filters - filters.mean(dim=0), full_matrices=False).Vh[:count]
        largest = components.gather(1, components.abs().argmax(dim=1, keepdim=True))
        return (components * largest.sign()).unflatten(1, weight.shape[1:])


def draw_filters(components: Tensor) -> Figure:
    """Draw filters as pictures, in colour if they have three channels. Grey is zero.

    Args:
        components: filters (count, C, height, width). Of other numbers of channels, the first is drawn.
    """
    count, channels, height, width = components.shape
    figure, axes = panels(-(-count // COLUMNS), min(count, COLUMNS), width / height, 0.9, titled=False)
    for component in components.cpu():
        picture = component / component.abs().max() / 2 + 0.5
        show(next(axes), picture.permute(1, 2, 0) if channels == 3 else picture[0], cmap='gray', vmin=0, vmax=1)
    return figure
