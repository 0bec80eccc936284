"""Propose the keys of a layout for files with a box in each line."""

import re
from functools import partial
from pathlib import Path
from typing import Any

from anyfolder.readers.findings import Findings
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.likely_boxes import cells_of, sizes_of
from anyfolder.readers.table_columns import find_table
from anyfolder.readers.tables import TABLE_SUFFIXES
from anyfolder.sampling import evenly_spaced

from .columns import NOTHING
from .likely_columns import likely_columns

TEXTS = ('.txt', '.csv', '.tsv', '')  # suffixes of text files with a box in each line
GAP = re.compile(r'[,;\s]+')  # between values
OF_WIDTHS = re.compile(r'(^|[ _-])w(idth)?$', re.IGNORECASE)  # the title of a column
SIZES = dict(right='width', bottom='height')
MOST_FILES = 50  # files whose lines are probed

Keys = dict[str, Any]


def lines_with_boxes(tree: Tree) -> Keys:
    """The keys ``labels``, ``columns``, ``units`` for files of lines, one per image or for all.

    Raises:
        ValueError: if no file seems to have boxes.
    """
    found = _lines_of_one(tree) or next(
        filter(None, map(partial(_rows_of, tree), tree.others)), None
    )
    if not found:
        raise ValueError('no lines with boxes')
    return found


def _lines_of_one(tree: Tree) -> Keys | None:
    """The text files that belong to one image each, with their columns."""
    texts = [file for file in tree.others if file.suffix.lower() in TEXTS]
    found = tree.index.pair({file: [file.stem] for file in texts}, Findings(skip_invalid=True))
    images = list(found.image_of.items())
    chosen = [images[i] for i in evenly_spaced(len(images), MOST_FILES)]
    sizes = sizes_of([image for _, image in chosen], tree)
    lines = [
        (GAP.split(line.strip(' ,;')), size)
        for (file, _), size in zip(chosen, sizes, strict=True)
        for line in tree.contents.lines(file)
    ]
    columns = likely_columns([values for values, _ in lines], [size for _, size in lines])
    return dict(labels=[*found.image_of], **columns) if columns else None


def _rows_of(tree: Tree, file: Path) -> Keys | None:
    """A table that names an image in each row, with its other columns."""
    table = find_table(tree, file) if file.suffix.lower() in TABLE_SUFFIXES else None
    if table is None or table.of_folders:
        return None
    cells = cells_of(table, tree)
    columns = likely_columns(cells.rows, cells.sizes)
    if not columns:
        return None
    named = dict(zip(columns['columns'], cells.titles, strict=True))
    if OF_WIDTHS.search(named.get('right', '')):  # large boxes may also be corners
        named = {SIZES.get(name, name): title for name, title in named.items()}
    columns['columns'] = {name: title for name, title in named.items() if name != NOTHING}
    return dict(labels=[file], **columns)
