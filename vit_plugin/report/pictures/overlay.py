"""Draw maps of patches, such as attention, over an image."""

import math
from collections.abc import Sequence
from textwrap import fill

import numpy as np
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

from anyfolder.terminal import printable

from .style import DPI, panels

LINE_INCHES = 0.2  # height of a title's line
LETTERS_PER_INCH = 14  # letters of a title in an inch
MAX_DPI = 300  # limit for a photograph
HEAT = 'inferno'  # the color map
OPACITY = 0.65
# A few patches can have most of the weight, so values above this quantile are clipped.
BRIGHTEST_QUANTILE = 0.995
OVERLAY_COLUMNS = (5, 4, 3)  # candidates; the one with the fewest empty panels is chosen


def draw_over(
    image: np.ndarray,
    maps: Sequence[Tensor],
    titles: Sequence[str],
    covered_size: tuple[int, int],
    min_brightest: float = 0.0,
    with_image: bool = True,
) -> Figure:
    """Draw an image, then each map over the image in gray.

    The colors of a map begin at 0, or at its lowest value if that is negative.

    Args:
        image: the image (H, W, 3) in RGB.
        maps: maps (h, w) of patches.
        titles: what each map shows.
        covered_size: height and width in pixels that a map covers. The patches may reach beyond the
            image.
        min_brightest: the lowest value that may be drawn brightest. Smaller ones are darker, even
            if they are the highest.
        with_image: whether the image itself comes before the maps.
    """
    height, width = image.shape[:2]
    count = len(maps) + (1 if with_image else 0)
    # -count % columns is the number of empty panels.
    columns = min(min(OVERLAY_COLUMNS, key=lambda columns: -count % columns), count)
    rows = math.ceil(count / columns)
    side = 8 / max(columns, 2.5)
    texts = [
        fill(printable(text), int(LETTERS_PER_INCH * side))
        for text in (['image', *titles] if with_image else titles)
    ]
    line = LINE_INCHES * (1 + max(text.count('\n') for text in texts))
    figure, axes = panels([width / height] * rows, columns, side, line)
    # Use one dot per image pixel, within DPI and MAX_DPI.
    figure.dpi = np.clip(width / side, DPI, MAX_DPI)
    for panel, text in zip(axes, texts, strict=False):
        panel.set_title(text, fontsize='small', pad=3)
    if with_image:
        axes.pop(0).imshow(image)
    for panel, values in zip(axes, maps, strict=False):
        panel.imshow(image.mean(axis=-1), cmap='gray', vmin=0, vmax=255)
        heat = F.interpolate(values[None, None].float().cpu(), covered_size, mode='bilinear')[
            0, 0, :height, :width
        ].numpy()
        highest = max(np.quantile(heat, BRIGHTEST_QUANTILE), min_brightest)
        panel.imshow(heat, cmap=HEAT, alpha=OPACITY, vmin=min(0, heat.min()), vmax=highest)
    return figure
