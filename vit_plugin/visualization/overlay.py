"""Maps of patches over the image."""

from collections.abc import Sequence

import numpy as np
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

from .style import panels, show

HEAT = 'inferno'
OPACITY = 0.65
BRIGHTEST = 0.995  # a few patches can have most of the weight; all above this share of the pixels are equally bright
COLUMNS = (5, 4, 3)


def draw_over(image: np.ndarray, maps: Sequence[Tensor], titles: Sequence[str], covered: tuple[int, int]) -> Figure:
    """Draw an image, and then each map over the same image in grey.

    Every map has its own scale, from 0, or from its lowest value if that is negative.

    Args:
        image: the image (H, W, 3) in RGB.
        maps: maps (h, w) of patches.
        titles: what each map shows.
        covered: height and width in pixels that a map covers. The patches may reach beyond the image.
    """
    height, width = image.shape[:2]
    count = len(maps) + 1
    columns = min(min(COLUMNS, key=lambda columns: -count % columns), count)  # the fewest empty places
    figure, axes = panels(-(-count // columns), columns, width / height, 8 / max(columns, 2.5))
    show(next(axes), image, 'image')
    grey = image.mean(axis=-1)
    for values, title in zip(maps, titles, strict=True):
        panel = next(axes)
        show(panel, grey, title, cmap='gray', vmin=0, vmax=255)
        heat = F.interpolate(values[None, None].float().cpu(), covered, mode='bilinear')[0, 0, :height, :width].numpy()
        panel.imshow(heat, cmap=HEAT, alpha=OPACITY, vmin=min(0, heat.min()), vmax=np.quantile(heat, BRIGHTEST))
    return figure
