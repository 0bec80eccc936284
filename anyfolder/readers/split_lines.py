"""Read the lines of lists of images: the split and the possible names of each.

A list is text with a name on each line, a table, or JSON. The split is given by the name of the
list, or on each line.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.errors import InputError
from anyfolder.text import LONGEST_IN_LIST, read_lines

from .column_titles import label_column
from .findings import Findings
from .image_tree import Tree
from .named_folders import NamedFolders
from .split_columns import SPLIT_CODES, fold_note
from .splits import FILLERS, Split, split_in, split_of, words_in
from .table_columns import find_table
from .tables import TABLE_SUFFIXES

LIST_SUFFIXES = ('.txt', '.lst', '.csv', '.tsv', '')
NAME_GAP = re.compile(r'[\s,;]+')  # separators of name and label
LAST_WORD = re.compile(r'(?<=[\s,;])[^\W_]+$')  # the last word of a line, after the name
# Words in names of files with a split on each line, and other words in names of lists.
LINE_BY_LINE = {'split', 'splits', 'partition', 'partitions'}
LIST_WORDS = {'list', 'lists', 'name', 'names', 'id', 'ids', 'file', 'files', 'filelist', 'index'}
CODED_LIST = 'list_eval_partition'  # CelebA's list, whose lines end in split codes


class SplitLine(NamedTuple):
    """A line of a list.

    Attributes:
        split: the split of its images.
        names: the possible names of an image or folder in the line, the likeliest first. The value
            of each is the label that follows it, or empty.
    """

    split: Split
    names: Mapping[str, str]


def is_list_name(stem: str) -> bool:
    """True if all words of a file name are those of lists, as in ``test_list_2``."""
    words = words_in(stem)
    return split_in(stem) is not None and all(
        split_of(word) or word in LIST_WORDS | FILLERS for word in words
    )


def split_lines(
    tree: Tree, file: Path, folders: NamedFolders, findings: Findings
) -> Iterator[SplitLine]:
    """The lines of a file; empty if it is not a list.

    Args:
        tree: the files of the folder.
        file: one of them.
        folders: the folders of images, which a table can name instead of images.
        findings: collects a column of folds.

    Raises:
        InputError: if the file cannot be read.
    """
    suffix = file.suffix.lower()
    if suffix == '.json':
        yield from _lines_of_json(tree, file)
    elif suffix in TABLE_SUFFIXES and (rows := [*_lines_of_table(tree, file, folders, findings)]):
        yield from rows
    elif suffix in LIST_SUFFIXES and (suffix or is_list_name(file.stem)):
        with nullcontext() if suffix else suppress(InputError):  # a file of another kind
            yield from _lines_of_text(file)


def _lines_of_json(tree: Tree, file: Path) -> Iterator[SplitLine]:
    """Names under the key of a split, names with a split as their value, or all names in a file."""
    content, file_split = tree.contents.json(file), split_in(file.stem)
    named = content.items() if isinstance(content, Mapping) else ()
    values = [(split, value) for key, value in named if (split := split_of(key))]
    of_image = ((name, value) for name, value in named if isinstance(value, str))
    values += [(split, name) for name, value in of_image if (split := split_of(value))]
    if file_split and not values:
        values = [(file_split, content)]
    for split, value in values:
        yield from (SplitLine(split, {name: ''}) for name in _strings(value))


def _strings(value: Any) -> Iterator[str]:
    """All text in a JSON value except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(item)


def _lines_of_table(
    tree: Tree, file: Path, folders: NamedFolders, findings: Findings
) -> Iterator[SplitLine]:
    """The rows of a table of images, or of folders of images."""
    split, table = split_in(file.stem), find_table(tree, file, folders)
    if not table or not (table.splits or split):
        return
    if table.splits and (note := fold_note(file, table.rows)):
        findings.warn(*note)
    label = label_column(table.other_columns)
    for row in table.rows:
        row_split = table.stated_split(row) if table.splits else split
        if row_split:
            name = '/'.join(
                row[column] for column in (table.folder_column, table.image_column) if column
            )
            yield SplitLine(row_split, {name: row[label] if label else ''})


def _lines_of_text(file: Path) -> Iterator[SplitLine]:
    """Lines with a name, maybe followed by a label or a split.

    Where a name ends is only known later, since names and labels can have spaces: each line without
    a split is a possible name, and so is each of its beginnings.
    """
    split, words = split_in(file.stem), {*words_in(file.stem)}
    if not (split or words & LINE_BY_LINE):
        return
    lines = read_lines(file, LONGEST_IN_LIST)
    coded = SPLIT_CODES if file.stem.casefold() == CODED_LIST else {}
    ends = [match[0] if (match := LAST_WORD.search(line)) else '' for line in lines]
    split_of_line = [coded.get(end) or split_of(end) for end in ends]
    if 2 * sum(map(bool, split_of_line)) > len(lines):
        for line, end, line_split in zip(lines, ends, split_of_line, strict=True):
            if line_split:
                yield SplitLine(line_split, {line[: -len(end)].rstrip(' ,;\t'): ''})
    elif split:
        for line in lines:
            gaps = reversed([*NAME_GAP.finditer(line)])
            shorter = {line[: gap.start()]: NAME_GAP.split(line[gap.end() :])[0] for gap in gaps}
            yield SplitLine(split, {line: '', **shorter})
