"""What a folder has in addition to the annotations of a format: lists, class names, other files."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .findings import Findings
from .formats.json_values import text_of
from .image_tree import Tree
from .splits import Split
from .tables import TABLE_SUFFIXES, read_table


class MissingImageNote(NamedTuple):
    """The note on an annotation file without an image, see :meth:`Findings.note`."""

    what: str
    remedy: str = ''


NO_IMAGE = MissingImageNote('annotations have no image of their name', 'add the images')


@dataclass
class FormatFolder:
    """The annotation files to read, and what else the folder states about them.

    Attributes:
        files: the files with their contents.
        names: the class names in order, as far as the files do not give them.
        class_names_of_codes: the class name of each code that the files have in its place.
        splits: the splits of annotation files or images, if the format has its own lists. None: the
            lists in the folder are used.
        used_files: further files that were read.
        unlabeled_are_empty: whether images without an annotation file have no objects.
        no_image_note: the note on an annotation file without an image.
    """

    files: Mapping[Path, Any]
    names: Sequence[str] = ()
    class_names_of_codes: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[Path, Split] | None = None
    used_files: Sequence[Path] = ()
    unlabeled_are_empty: bool = False
    no_image_note: MissingImageNote = NO_IMAGE


def coco_folder(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FormatFolder:
    """The files with boxes if a split has several files: ``instances_train2017.json``."""
    by_split: dict[Split | None, list[Path]] = defaultdict(list)
    for file in files:
        by_split[tree.stated_split(file)].append(file)
    chosen: dict[Path, Any] = {}
    for group in by_split.values():
        # COCO's other files, such as person_keypoints_*.json, repeat some of the boxes.
        of_instances = [file for file in group if file.stem.startswith('inst')] or group
        what = 'files left out, since another one has the boxes of these images'
        findings.warn_all(what, sorted({*group} - {*of_instances}))
        chosen |= {file: files[file] for file in of_instances}
    return FormatFolder(chosen)


def supervisely_folder(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FormatFolder:
    """The files, with the class names of ``meta.json`` in the order of their numbers."""
    names, used = list[str](), []
    for file in tree.others:
        if file.name.lower() == 'meta.json':
            match tree.contents.json(file):
                case {'classes': [*classes]}:
                    names += [text_of(item['title']) for item in classes if 'title' in item]
                    used.append(file)
    return FormatFolder(files, names, used_files=used)


MACHINE_ID = re.compile(r'/[mgt]/\w+$')  # the code of a class in Open Images


def open_images_folder(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FormatFolder:
    """The files, with the class names of a table of two columns, such as ``/m/01g317,Person``."""
    class_names_of_codes, used = dict[str, str](), []
    for file in tree.others:
        if file.suffix.lower() in TABLE_SUFFIXES and file not in files:
            head = read_table(file, max_lines=3)
            if all(len(row) == 2 for row in head) and MACHINE_ID.match(head[-1][0] if head else ''):
                class_names_of_codes |= dict(
                    row for row in read_table(file) if MACHINE_ID.match(row[0])
                )
                used.append(file)
    return FormatFolder(files, class_names_of_codes=class_names_of_codes, used_files=used)
