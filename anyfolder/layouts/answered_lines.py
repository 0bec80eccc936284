"""Propose the keys of a layout for files with a box in each line, for :mod:`.answers`."""

import re
from pathlib import Path
from typing import Any

from anyfolder.readers.findings import Findings
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.likely_boxes import cells_of, sizes_of
from anyfolder.readers.paired_files import pair_files
from anyfolder.readers.table_columns import find_table
from anyfolder.readers.tables import TABLE_SUFFIXES
from anyfolder.sampling import evenly_spaced

from .columns import NOTHING
from .likely_columns import likely_columns

TEXT_SUFFIXES = ('.txt', '.csv', '.tsv', '')  # suffixes of text files with a box in each line
GAP = re.compile(r'[,;\s]+')  # between values
WIDTH_TITLE = re.compile(r'(^|[ _-])w(idth)?$', re.IGNORECASE)
SIDE_FOR_EDGE = dict(right='width', bottom='height')
MAX_FILES = 50  # files whose lines are read

Keys = dict[str, Any]  # the values of some keys of a layout; files are paths, not yet patterns


def lines_with_boxes(tree: Tree) -> Keys:
    """The keys ``labels``, ``columns`` and maybe ``units`` for files with a box in each line.

    The lines are in one file per image, or in a table that names the image of each row.

    Raises:
        ValueError: if no file seems to have boxes.
    """
    if keys := _keys_for_file_per_image(tree):
        return keys
    for file in tree.others:
        if keys := _keys_for_table(tree, file):
            return keys
    raise ValueError('no lines with boxes')


def _keys_for_file_per_image(tree: Tree) -> Keys | None:
    """The keys for text files that belong to one image each; None if they seem to have no boxes."""
    texts = [file for file in tree.others if file.suffix.lower() in TEXT_SUFFIXES]
    discarded = Findings(skip_invalid=True)
    pairs = pair_files(tree.index, {file: [file.stem] for file in texts}, discarded)
    matches = list(pairs.image_of.items())
    chosen = [matches[i] for i in evenly_spaced(len(matches), MAX_FILES)]
    sizes = sizes_of([image for _, image in chosen], tree)
    lines = [
        (GAP.split(line.strip(' ,;')), size)
        for (file, _), size in zip(chosen, sizes, strict=True)
        for line in tree.contents.lines(file)
    ]
    columns = likely_columns([values for values, _ in lines], [size for _, size in lines])
    return dict(labels=[*pairs.image_of], **columns) if columns else None


def _keys_for_table(tree: Tree, file: Path) -> Keys | None:
    """The keys for a table that names an image in each row; None if it seems to have no boxes."""
    table = find_table(tree, file) if file.suffix.lower() in TABLE_SUFFIXES else None
    if table is None or table.of_folders:
        return None
    cells = cells_of(table, tree)
    columns = likely_columns(cells.rows, cells.sizes)
    if not columns:
        return None
    title_of = dict(zip(columns['columns'], cells.titles, strict=True))
    # The widths of large boxes can pass for right edges; the title tells them apart.
    if WIDTH_TITLE.search(title_of.get('right', '')):
        title_of = {SIDE_FOR_EDGE.get(name, name): title for name, title in title_of.items()}
    columns['columns'] = {name: title for name, title in title_of.items() if name != NOTHING}
    return dict(labels=[file], **columns)
