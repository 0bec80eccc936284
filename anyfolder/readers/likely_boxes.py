"""Guess which columns are boxes; the guess is only proposed to the user."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from anyfolder.sampling import evenly_spaced

from .column_titles import BOX_TITLES
from .image_tree import Tree
from .table_columns import ImageTable
from .tables import NUMBER

MIN_FITTING_SHARE = 0.95  # fraction of the rows whose box lies in the image
ROUNDED = 2.0  # pixels by which a box may exceed its image
ROUNDED_SHARE = 0.01  # fraction of the image by which a box of fractions may exceed it
MAX_ROWS = 50  # rows of a table that are checked
Names = tuple[str, str, str, str]  # the words of a layout for the four numbers of a box
# Boxes in pixels are corners, or a corner and the size. In fractions, they are as in YOLO.
EDGES: tuple[Names, Names] = ('left', 'top', 'right', 'bottom'), ('left', 'top', 'width', 'height')
CENTER = ('x', 'y', 'width', 'height')


class Cells(NamedTuple):
    """Some rows of a table whose images exist.

    Attributes:
        titles: the titles of the columns except those for images and their sizes.
        rows: the values of each row in these columns.
        sizes: width and height in pixels of each row's image, 0 if it cannot be read.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    sizes: Sequence[Sequence[int]]


def cells_of(table: ImageTable, tree: Tree) -> Cells:
    """The cells next to image names in at most :data:`MAX_ROWS` rows."""
    # Without a header, the first row also serves as titles. `read_rows` adds a number to repeated
    # titles, so values of this row may be wrong.
    rows = table.rows if table.has_header else table.rows[1:]
    rows = [rows[i] for i in evenly_spaced(len(rows), MAX_ROWS)]
    matched = [(row, images[0]) for row in rows if (images := table.match(row, tree.index))]
    sizes = sizes_of([image for _, image in matched], tree)
    titles = [
        title
        for title in table.rows[0]
        if title != table.image_column and not _are_sizes([row[title] for row, _ in matched], sizes)
    ]
    return Cells(titles, [[row[title] for title in titles] for row, _ in matched], sizes)


def sizes_of(images: Sequence[Path], tree: Tree) -> list[Sequence[int]]:
    """Width and height of images in pixels, (0, 0) for those that cannot be read."""
    return [probe.size if probe else (0, 0) for probe in tree.probes.probe(images)]


def may_have_boxes(table: ImageTable, tree: Tree) -> bool:
    """True for a table with box titles, or without titles but with four matching numbers."""
    if table.has_header:
        return not BOX_TITLES.isdisjoint(map(str.casefold, table.other_columns))
    cells = cells_of(table, tree)
    return bool(cells.rows) and likely_box(np.array(cells.rows), cells.sizes) is not None


def likely_box(texts: np.ndarray, sizes: Sequence[Sequence[int]]) -> tuple[int, Names] | None:
    """The index of the first of four box columns, and their names; None without such columns.

    Four consecutive columns may be boxes if nearly all of these lie in their images. Those with the
    largest boxes on average are chosen.

    Args:
        texts: the values (N, C).
        sizes: width and height in pixels of each line's image (N, 2).
    """
    numeric, candidates = are_numeric(texts), []
    for start in range(texts.shape[1] - 3):
        if all(numeric[start : start + 4]):
            numbers = texts[:, start : start + 4].astype(float)
            if boxes := _boxes(numbers, np.array(sizes, float)):
                names, area = boxes
                candidates.append((area, start, names))
    return max(candidates)[1:] if candidates else None


def are_numeric(texts: np.ndarray) -> list[bool]:
    """Whether all values of a column are numbers, for each column of (N, C)."""
    return [all(map(NUMBER.fullmatch, column)) for column in texts.T]


def _are_sizes(cells: Sequence[str], sizes: Sequence[Sequence[int]]) -> bool:
    """True for the cells of a column with image widths or heights."""
    return any(
        all(cell == str(size[side]) for cell, size in zip(cells, sizes, strict=True))
        for side in (0, 1)
    )


def _boxes(numbers: np.ndarray, sizes: np.ndarray) -> tuple[Names, float] | None:
    """The form of boxes (N, 4) in images of these sizes (N, 2), and their mean area.

    The area is a fraction of the image. For boxes in fractions, which are always boxes if they fit,
    it is 1. None if the numbers are not boxes.
    """
    first, second = numbers[:, :2], numbers[:, 2:]
    if (numbers <= 1).all():
        # A center c and a side s are within 0 to 1 if |2 c - 1| + s <= 1.
        within = (second > 0) & (np.abs(2 * first - 1) + second <= 1 + 2 * ROUNDED_SHARE)
        return (CENTER, 1.0) if within.all(axis=1).mean() >= MIN_FITTING_SHARE else None
    readable = sizes.all(axis=1)  # the size of other images is 0
    if not readable.any():
        return None
    first, second, sizes = first[readable], second[readable], sizes[readable]
    are_corners = (second > first).all()  # rarely true for sizes
    names, sides = (EDGES[0], second - first) if are_corners else (EDGES[1], second)
    within = (first >= -ROUNDED) & (sides > 0) & (first + sides <= sizes + ROUNDED)
    if within.all(axis=1).mean() < MIN_FITTING_SHARE:
        return None
    return names, float((sides.prod(axis=1) / sizes.prod(axis=1)).mean())
