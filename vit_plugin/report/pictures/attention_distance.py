"""Mean attention distance of each head, by depth."""

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from vit_plugin.models.loading import find_backbone

from .attention_maps import attention_weights
from .style import charts


def attention_distances(model: nn.Module, images: Tensor) -> Tensor:
    """Mean attention distance of patches (arXiv:2010.11929, Figure 7 right, Appendix D.7).

    This is the mean distance between a patch and the patches that it attends to.

    Args:
        model, images: see :func:`~vit_plugin.report.pictures.attention_maps.attention_weights`.

    Returns:
        Distances in pixels (blocks, heads), the mean over images and patches. A patch is at its
        center. The tokens before the patches have no position and are left out, and so is the
        padding of windows.

    Raises:
        ConfigError: see ``attention_weights``.
    """
    _, backbone = find_backbone(model)
    stride = backbone.patch_embed.stride

    def mean_distance(weights: Tensor, grid: tuple[int, int]) -> Tensor:
        centers = torch.cartesian_prod(
            *(torch.arange(size, device=weights.device) for size in grid)
        ).to(weights.dtype)
        distances = stride * torch.cdist(centers, centers)  # (h*w, h*w)
        weights = weights[:, :, -len(centers) :, -len(centers) :]
        means = (weights * distances).sum(dim=-1) / weights.sum(dim=-1)  # (B, heads, h*w)
        return means.mean(dim=(0, 2))  # (heads,)

    return torch.stack(attention_weights(model, images, mean_distance))


def draw_attention_distances(distances: Tensor) -> Figure:
    """Draw one dot for each head of each block, as in the paper's Figure 7.

    Args:
        distances: distances in pixels (blocks, heads).
    """
    figure, (axes,) = charts(5.5, 3.8)
    labels = ['a head', *[None] * (distances.shape[1] - 1)]  # one legend entry for all heads
    blocks = range(1, len(distances) + 1)
    axes.plot(
        blocks,
        distances.cpu().numpy(),
        'o',
        markersize=5,
        alpha=0.6,
        color='C0',
        markeredgewidth=0,
        label=labels,
    )
    means = distances.cpu().mean(dim=1).numpy()
    axes.plot(blocks, means, color='0.3', linewidth=1, label='mean of the heads')
    axes.set(xlabel='block', ylabel='mean attention distance in pixels', ylim=(0, None))
    axes.locator_params(axis='x', integer=True)
    axes.legend(frameon=False)
    return figure
