"""Several images on one page, with what is drawn on them, titles and a legend of classes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from anyfolder.pictures.drawn_labels import background_of
from anyfolder.pictures.palette import hex_of

from .annotate import annotated
from .annotations import ERRORS, IGNORED_PIXEL, Annotations, class_name
from .style import GAP, panels, shortened

GRID_COLUMNS = 4
TITLE = 44  # letters
LEGEND = 24  # classes
PANEL, TITLE_LINE, HEADING = 3.2, 0.17, 0.28  # inches


class Panel(NamedTuple):
    """An image of a page.

    Attributes:
        image: RGB pixels (H, W, 3).
        annotations: what is drawn on it.
        title: a line above it.
        good: False draws the title in red.
        file: another line above it.
    """

    image: np.ndarray
    annotations: Annotations
    title: str
    good: bool = True
    file: str = ''


def draw_grid(
    panel_list: Sequence[Panel],
    classes: Sequence[str] = (),
    heading: str = '',
    columns: int = GRID_COLUMNS,
) -> Figure:
    """Draw images next to each other.

    Maps and boxes get a legend of at most 24 classes, and error maps a legend of errors.

    Args:
        panel_list: the images.
        classes: names of the classes.
        heading: a line above all.
        columns: images in a row.
    """
    columns = min(columns, len(panel_list))
    rows = -(-len(panel_list) // columns)
    aspects = [panel.image.shape[1] / panel.image.shape[0] for panel in panel_list]
    aspect = float(np.clip(np.median(aspects), 0.6, 1.8))
    lines = TITLE_LINE * max(bool(panel.file) + bool(panel.title) for panel in panel_list) + 2 * GAP
    untinted = {IGNORED_PIXEL, *background_of(enumerate(classes))}
    shown = [
        one for one in _classes_of(one.annotations for one in panel_list) if one not in untinted
    ]
    wrong = ERRORS if any(panel.annotations.errors is not None for panel in panel_list) else {}
    entries = min(len(shown), LEGEND + 1) + len(wrong)
    top, bottom = HEADING * bool(heading), TITLE_LINE * 1.5 * -(-entries // (2 * columns))
    figure, places = panels([aspect] * rows, columns, PANEL, lines, top, bottom + GAP)
    for one, panel in zip(panel_list, places, strict=False):
        panel.imshow(annotated(one.image, one.annotations, classes), interpolation='antialiased')
        titles = [
            shortened(one.file[::-1], TITLE)[::-1],
            shortened(one.title, TITLE),
        ]  # files differ at the end
        panel.set_title(
            '\n'.join(filter(None, titles)),
            fontsize='small',
            pad=3,
            y=1,
            color='black' if one.good else 'firebrick',
        )
    if heading:
        figure.suptitle(heading, y=1 - GAP / figure.get_figheight(), fontsize='medium')
    if shown or wrong:
        _add_legend(figure, shown, classes, wrong, 2 * columns)
    return figure


def _classes_of(annotations: Iterable[Annotations]) -> list[int]:
    """The classes of pixels and boxes, the most frequent first."""
    arrays = [np.empty(0, int)]
    for annotation in annotations:
        arrays += [] if annotation.map is None else [annotation.map.ravel()]
        arrays += [] if annotation.instances is None else [annotation.instances.labels]
    labels, counts = np.unique(np.concatenate(arrays), return_counts=True)
    return labels[np.argsort(-counts, kind='stable')].tolist()


def _add_legend(
    figure: Figure,
    shown: Sequence[int],
    classes: Sequence[str],
    wrong: Mapping[str, str],
    columns: int,
) -> None:
    handles = [
        Patch(color=hex_of(label), label=shortened(class_name(label, classes), 18))
        for label in sorted(shown[:LEGEND])
    ]
    if len(shown) > LEGEND:
        handles.append(Patch(color='none', label=f'and {len(shown) - LEGEND} more'))
    handles += [Patch(fc=color, ec='0.5', label=kind) for kind, color in wrong.items()]
    figure.legend(
        handles=handles,
        loc='lower center',
        ncols=columns,
        frameon=False,
        fontsize='small',
        borderpad=0,
        borderaxespad=0.2,
    )
