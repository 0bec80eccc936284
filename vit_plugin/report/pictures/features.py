"""Principal components of patch features, as colors."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from vit_plugin.models.loading import find_backbone

from .attention_maps import eval_mode
from .style import panels

# Values of a component outside these quantiles get the darkest and the brightest color.
COLOR_QUANTILES = (0.01, 0.99)


def patch_features(model: nn.Module, images: Tensor) -> Tensor:
    """The normed features of the patches after the last block, as maps (B, C, h, w).

    For a ViT-Adapter or an EoMT, only the transformer runs.

    Args:
        model: a :class:`~vit_plugin.models.VisionTransformer`, or a model that contains one.
        images: normalized images (B, C, H, W).
    """
    _, backbone = find_backbone(model)
    with eval_mode(model):
        tokens, grid = backbone.features(images)
    return tokens[-1][:, -math.prod(grid) :].transpose(1, 2).unflatten(2, grid)


def feature_colors(features: Sequence[Tensor]) -> list[Tensor]:
    """Colors from the first three principal components of all patches together, as in DINOv2.

    Args:
        features: maps (C, h, w) of one or more images. They may differ in size.

    Returns:
        For each map its colors (h, w, 3) between 0 and 1. The largest loading of a component is
        positive.
    """
    patches = torch.cat([feature.flatten(1).T for feature in features]).float()  # (patches, C)
    patches = patches - patches.mean(dim=0)
    components = torch.linalg.svd(patches, full_matrices=False).Vh[:3]  # (3, C)
    # The sign of a component is arbitrary; fix it, so that colors do not flip between runs.
    components = (
        components * components.gather(1, components.abs().argmax(dim=1, keepdim=True)).sign()
    )
    values = patches @ components.T  # (patches, 3)
    low, high = torch.quantile(values, torch.tensor(COLOR_QUANTILES, device=values.device), dim=0)
    colors = ((values - low) / (high - low).clamp(min=1e-12)).clamp(0, 1)
    per_map = colors.split([feature[0].numel() for feature in features])
    return [
        flat.unflatten(0, feature.shape[1:])
        for flat, feature in zip(per_map, features, strict=True)
    ]


def draw_feature_colors(
    images: Sequence[np.ndarray],
    *models: Sequence[Tensor],
    with_image: bool = True,
    titles: Sequence[str] = (),
) -> Figure:
    """Draw the colors of each image's patches, a row for each image and a column for each model.

    Args:
        images: images (H, W, 3) in RGB.
        models: for each model the colors (h, w, 3) of each image's patches.
        with_image: whether the image itself comes first.
        titles: titles of the columns.
    """
    columns = [list(images)] if with_image else []
    columns += [[color.cpu().numpy() for color in colors] for colors in models]
    shapes = [image.shape[:2] for image in images]
    aspects = [width / height for height, width in shapes]
    figure, axes = panels(aspects, len(columns), panel_width=3, line=0.3 if titles else 0.0)
    for number, column in enumerate(columns):
        for panel, picture, shape in zip(axes[number :: len(columns)], column, shapes, strict=True):
            # The grid of patches has another aspect ratio than the image.
            panel.imshow(picture, interpolation='bicubic', extent=(0, shape[1], shape[0], 0))
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(title, pad=3)
    return figure
