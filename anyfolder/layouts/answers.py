"""Propose the lines of ``anyfolder.yaml`` that resolve what is ambiguous in a folder.

A reader that finds a folder ambiguous raises an ``UnclearError`` with the keys of a layout that
would resolve it. This module completes them from the folder and appends them to the message.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from anyfolder.errors import InputError, UnclearError
from anyfolder.readers.box_formats import formats_of
from anyfolder.readers.depth_folders import depth_pairs
from anyfolder.readers.findings import Findings
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.mask_classes import NOT_LABELED
from anyfolder.readers.mask_pairs import masked_images
from anyfolder.readers.mask_values import values_of
from anyfolder.readers.name_files import find_names, find_settings
from anyfolder.readers.paired_files import pair_files
from anyfolder.readers.table_columns import find_table
from anyfolder.sampling import evenly_spaced

from .answered_lines import lines_with_boxes
from .class_codes import code_of
from .layout import FILE, layout_of
from .layout_keys import KEYS
from .layout_labels import key_of_format
from .layout_text import layout_as_yaml
from .patterns_of_files import paired_patterns, patterns_of

# The format of each task's folders, unless the error states another; boxes have several formats.
FORMAT_OF = dict(classification='folders', segmentation='masks', depth='depth', panoptic='panoptic')
# The order of the proposed lines.
ORDER = ['format', 'task', 'images', 'labels', 'columns', 'splits', 'classes', 'units']
assert {*ORDER} <= KEYS.keys()
MAX_LINES_LENGTH = 3000  # characters of the lines that are appended to a message
MAX_MASKS = 50  # masks whose values are read
CLASS_NUMBERS_BELOW = 100  # mask values below this are numbers of classes rather than grays

Content = dict[str, Any]  # the values of a layout's keys; files are paths until the end


@contextmanager
def answering(folder: str | Path, task: str) -> Iterator[None]:
    """Append the lines of a layout file that would resolve an ``UnclearError`` to its message.

    Args:
        folder: the folder of the data, where the patterns of the layout begin.
        task: the task to read the folder for.

    Raises:
        InputError: in place of the ``UnclearError``. The latter is raised unchanged if the folder
            has a layout file, or if no short layout resolves it.
    """
    try:
        yield
    except UnclearError as error:
        file = Path(folder, FILE)
        content = None if file.exists() else complete_layout(error.answer, Path(folder), task)
        lines = layout_as_yaml(content) if content else ''
        if not lines or len(lines) > MAX_LINES_LENGTH:
            raise
        raise InputError(
            f'{error} Or describe the folder in {str(file)!r}, such as:\n\n{lines}'
        ) from error


def complete_layout(answer: Mapping[str, Any], folder: Path, task: str) -> Content | None:
    """Complete the layout of a folder from some of its keys; None if that is impossible.

    Args:
        answer: keys and values as in YAML, with files as paths. The key ``pairs``, which is not one
            of a layout, has pairs of images and label files.
        folder, task: see :func:`answering`.
    """
    tree = Tree(folder)
    content = {key: value for key, value in answer.items() if value is not None}
    if 'format' not in content:
        content['format'] = FORMAT_OF.get(task, '')
    try:
        _complete_format(content, tree)
        if content['format'] == 'table' and not {'labels', 'pairs'} & content.keys():
            content |= lines_with_boxes(tree)
        _complete_labels(content, tree, folder)
        _complete_table(content, tree)
        if 'class' in content.get('columns', ()) and (
            named := find_names(tree, find_settings(tree))
        ):
            content.setdefault('classes', named[1])
        content = {key: _with_patterns(value, folder) for key, value in content.items()}
        content.setdefault('images', _image_patterns(content, tree, folder))
        layout = layout_of(content, FILE)
    except (InputError, ValueError, OSError):
        # The folder is ambiguous in further ways, no pattern describes it, or a file is damaged.
        return None
    if task in layout.tasks[1:]:  # the first task is the default of a layout
        content['task'] = task
    return {key: content[key] for key in ORDER if key in content}


def _complete_format(content: Content, tree: Tree) -> None:
    """Add the format and its files if the format is still unknown, as for boxes."""
    if not content['format']:
        format_files = formats_of(tree, with_tables=True)[0]
        content['format'] = key_of_format(format_files.format)
        content.setdefault('labels', [*format_files.files])


def _complete_labels(content: Content, tree: Tree, folder: Path) -> None:
    """Add patterns for images and label files that belong together, and the classes of masks.

    Raises:
        ValueError: if no rule relates the names of images and maps.
    """
    label_files = {file for file in content.get('labels', ()) if isinstance(file, Path)}
    pairs = content.pop('pairs', None) or _pair_files(content['format'], label_files, tree)
    pairs = [pair for pair in pairs if not label_files or pair[1] in label_files]
    is_map = content['format'] in ('masks', 'depth')
    if pairs and (patterns := paired_patterns(folder, pairs)):
        content['images'], content['labels'] = patterns
    elif is_map:
        raise ValueError('no rule pairs these files')
    if content['format'] == 'masks' and 'classes' not in content:
        content['classes'] = _names_of_values([label for _, label in pairs])


def _pair_files(format: str, files: Collection[Path], tree: Tree) -> list[tuple[Path, Path]]:
    """The images with their label files, if each file belongs to one image."""
    if format == 'depth':
        return depth_pairs(tree)
    if format == 'masks':
        masked = masked_images(tree, Findings(skip_invalid=True))
        records = masked.records if masked else []
        return [(record.path, record.mask) for record in records if record.mask]
    if len(files) < 2:
        return []
    discarded = Findings(skip_invalid=True)
    matches = pair_files(tree.index, {file: [file.stem] for file in files}, discarded)
    if matches.unmatched:
        return []
    return [(image, file) for file, image in matches.image_of.items()]


def _names_of_values(masks: Sequence[Path]) -> dict[str, str | None]:
    """A class name for each value in a sample of masks; None for 255 among class numbers."""
    chosen = [masks[i] for i in evenly_spaced(len(masks), MAX_MASKS)]
    values = sorted({value for mask in chosen for value in np.unique(values_of(mask)).tolist()})
    others = [value for value in values if value != NOT_LABELED]
    numbered = len(others) > 1 and others[-1] < CLASS_NUMBERS_BELOW
    return {
        code_of(value): None if value == NOT_LABELED and numbered else f'class {code_of(value)}'
        for value in values
    }


def _complete_table(content: Content, tree: Tree) -> None:
    """Add the image column and the class column of a table.

    Raises:
        ValueError: if its rows name no images, or if no column can have the classes.
    """
    columns = content.get('columns')
    if content['format'] != 'table' or isinstance(columns, list):
        return
    table = find_table(tree, content['labels'][0])
    if table is None:
        raise ValueError('no column names images')
    if table.of_folders:
        raise ValueError('rows name folders, for which layouts have no column')
    title_of = {'image': table.image_column, **(columns or {})}
    if 'class' not in title_of:
        unused = [title for title in table.rows[0] if title not in title_of.values()]
        if not unused:
            raise ValueError('no column is left for the classes')
        title_of['class'] = unused[0]
    if table.has_header:
        content['columns'] = title_of
        return
    name_of = {title: name for name, title in title_of.items()}
    content['columns'] = [name_of.get(title, '_') for title in table.rows[0]]


def _with_patterns(value: Any, folder: Path) -> Any:
    """Replace the files in a value by patterns. A list of one pattern becomes that pattern."""
    if isinstance(value, Path):
        return value.relative_to(folder).as_posix()
    if isinstance(value, list) and value and all(isinstance(item, Path) for item in value):
        return _one_or_more(patterns_of(folder, value))
    if isinstance(value, list):
        # Patterns have a slash. Columns and classes stay a list even if there is only one.
        return _one_or_more(value) if all('/' in str(item) for item in value) else value
    if isinstance(value, dict):
        return {key: _with_patterns(item, folder) for key, item in value.items()}
    return value


def _image_patterns(content: Content, tree: Tree, folder: Path) -> Any:
    """The patterns of all images."""
    if content['format'] == 'folders':
        return '**/{class}/*'
    return _one_or_more(patterns_of(folder, tree.images))


def _one_or_more(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values
