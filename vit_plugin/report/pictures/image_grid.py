"""A figure of several images with their annotations, titles and a legend of classes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from anyfolder.pictures.drawn_labels import background_of
from anyfolder.pictures.palette import hex_of

from .annotate import draw_annotations
from .annotations import ERRORS, IGNORED_PIXEL, Annotations, class_name
from .style import GAP, panels, shortened

GRID_COLUMNS = 4
MAX_TITLE_LETTERS = 44
MAX_LEGEND_CLASSES = 24
PANEL_WIDTH = 3.2  # inches
LINE_HEIGHT = 0.17  # inches of a line of a title or the legend
HEADING_HEIGHT = 0.28  # inches


class Panel(NamedTuple):
    """An image of a page.

    Attributes:
        image: RGB pixels (H, W, 3).
        annotations: what is drawn on it.
        title: a line above it.
        is_right: whether the prediction is right. If not, the title is red.
        file: a line above the title.
    """

    image: np.ndarray
    annotations: Annotations
    title: str
    is_right: bool = True
    file: str = ''


def draw_grid(
    panel_list: Sequence[Panel],
    classes: Sequence[str] = (),
    heading: str = '',
    columns: int = GRID_COLUMNS,
) -> Figure:
    """Draw images next to each other.

    Label maps and boxes get a legend of at most 24 classes, and error maps a legend of errors.

    Args:
        panel_list: the images.
        classes: names of the classes.
        heading: a line above all.
        columns: images in a row.
    """
    columns = min(columns, len(panel_list))
    rows = math.ceil(len(panel_list) / columns)
    aspects = [panel.image.shape[1] / panel.image.shape[0] for panel in panel_list]
    aspect = float(np.clip(np.median(aspects), 0.6, 1.8))
    title_lines = max(len([*filter(None, (panel.file, panel.title))]) for panel in panel_list)
    untinted = [IGNORED_PIXEL, *background_of(enumerate(classes))]
    present_classes = _classes_of((panel.annotations for panel in panel_list), untinted)
    errors = ERRORS if any(panel.annotations.errors is not None for panel in panel_list) else {}
    entries = min(len(present_classes), MAX_LEGEND_CLASSES + 1) + len(errors)
    figure, all_axes = panels(
        [aspect] * rows,
        columns,
        panel_width=PANEL_WIDTH,
        line=LINE_HEIGHT * title_lines + 2 * GAP,
        top=HEADING_HEIGHT if heading else 0.0,
        bottom=LINE_HEIGHT * 1.5 * math.ceil(entries / (2 * columns)) + GAP,
    )
    for panel, axes in zip(panel_list, all_axes, strict=False):
        axes.imshow(
            draw_annotations(panel.image, panel.annotations, classes), interpolation='antialiased'
        )
        # Names of files differ at the end.
        file = shortened(panel.file, MAX_TITLE_LETTERS, keep_end=True)
        title = shortened(panel.title, MAX_TITLE_LETTERS)
        axes.set_title(
            '\n'.join(filter(None, (file, title))),
            fontsize='small',
            pad=3,
            y=1,
            color='black' if panel.is_right else 'firebrick',
        )
    if heading:
        figure.suptitle(heading, y=1 - GAP / figure.get_figheight(), fontsize='medium')
    if present_classes or errors:
        _add_legend(figure, present_classes, classes, errors, 2 * columns)
    return figure


def _classes_of(annotations: Iterable[Annotations], untinted: Sequence[int]) -> list[int]:
    """The classes of pixels and boxes, the most frequent first.

    Pixels of the classes in ``untinted`` have no color, and boxes of all classes have one.
    """
    arrays = [np.empty(0, int)]
    for annotation in annotations:
        if annotation.map is not None:
            arrays.append(annotation.map[~np.isin(annotation.map, untinted)])
        arrays += [] if annotation.instances is None else [annotation.instances.labels]
    labels, counts = np.unique(np.concatenate(arrays), return_counts=True)
    return labels[np.argsort(-counts, kind='stable')].tolist()


def _add_legend(
    figure: Figure,
    present_classes: Sequence[int],
    classes: Sequence[str],
    errors: Mapping[str, str],
    columns: int,
) -> None:
    """Add the most frequent classes, in order of their numbers, and the kinds of errors."""
    handles = [
        Patch(color=hex_of(label), label=shortened(class_name(label, classes), 18))
        for label in sorted(present_classes[:MAX_LEGEND_CLASSES])
    ]
    if len(present_classes) > MAX_LEGEND_CLASSES:
        handles.append(
            Patch(color='none', label=f'and {len(present_classes) - MAX_LEGEND_CLASSES} more')
        )
    handles += [Patch(fc=color, ec='0.5', label=kind) for kind, color in errors.items()]
    figure.legend(
        handles=handles,
        loc='lower center',
        ncols=columns,
        frameon=False,
        fontsize='small',
        borderpad=0,
        borderaxespad=0.2,
    )
