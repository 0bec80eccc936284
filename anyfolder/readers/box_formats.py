"""Find the annotation formats in a folder, by one pass over its files."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .file_contents import rejecting_malformed
from .formats.table import FORMATS, TABLES, YOLO, Format
from .image_tree import Tree
from .tables import read_objects, read_table
from .yolo_folder import label_files


class FormatFiles(NamedTuple):
    """The files of a format in a folder, with their content."""

    format: Format
    files: dict[Path, Any]

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.format.name


class _Candidate(NamedTuple):
    """A file that may belong to a format.

    Attributes:
        file: the file.
        sample: the content by which its format is recognized; for a table, only the header.
        load: returns the whole content.
    """

    file: Path
    sample: Any
    load: Callable[[], Any]


def formats_of(tree: Tree, with_tables: bool = False) -> list[FormatFiles]:
    """The annotation formats in a folder with their files, in the order of their names.

    Args:
        tree: the files of the folder.
        with_tables: whether tables with boxes are used if there is no other format.

    Raises:
        InputError: if a JSON, XML or YAML file is damaged.
    """
    formats = _recognize(_documents(tree))
    if labels := label_files(tree):
        formats.append(FormatFiles(YOLO, labels))
    if with_tables and not formats:
        formats = _recognize(_tables(tree))
    return sorted(formats, key=lambda files: files.name)


def _recognize(candidates: Iterator[_Candidate]) -> list[FormatFiles]:
    """The files of each format; a file belongs to the first format that accepts it."""
    files: dict[Format, dict[Path, Any]] = defaultdict(dict)
    for file, sample, load in candidates:
        for format in FORMATS:
            if file.suffix.lower() not in format.suffixes:
                continue
            with rejecting_malformed(file, format.unit, format.name):
                if format.accepts(sample, file):
                    files[format][file] = load()
                    break
    return [FormatFiles(format, files_of_format) for format, files_of_format in files.items()]


def _documents(tree: Tree) -> Iterator[_Candidate]:
    """The JSON and XML files."""
    loads = {'.json': tree.contents.json, '.xml': tree.contents.xml}
    for file in tree.others:
        if load := loads.get(file.suffix.lower()):
            yield _Candidate(file, load(file), partial(load, file))  # the content is cached


def _tables(tree: Tree) -> Iterator[_Candidate]:
    """The tables, recognized by their column names, and the lists of images in JSONL."""
    for file in tree.others:
        if file.suffix.lower() == '.jsonl':
            content = dict(frames=read_objects(file))
            yield _Candidate(file, content, partial(dict, content))
        elif file.suffix.lower() in TABLES:
            header = (read_table(file, max_lines=20) or [[]])[0]
            yield _Candidate(file, [dict.fromkeys(header, '')], partial(tree.contents.rows, file))
