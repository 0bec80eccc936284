"""What a folder states in addition to its annotation files: lists, class names, other files.

A ``prepare_*`` function finds this for one format, here or in a module of its own. It runs after
the annotation files are parsed, and before their contents are converted to records. All have the
same arguments: the files of the folder, the annotation files with their parsed contents, and the
collector of warnings. ``PREPARE`` in :mod:`.box_folders` lists them.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.errors import InputError

from .findings import Findings
from .formats.json_values import text_of
from .image_tree import Tree
from .splits import Split
from .tables import TABLE_SUFFIXES, read_table


class MissingImageNote(NamedTuple):
    """How an annotation file without an image is reported.

    Attributes:
        what: the finding, about several files.
        remedy: the remedy if it is an error. Empty: such files are left out with a warning.
    """

    what: str
    remedy: str = ''


NO_IMAGE = MissingImageNote('annotations have no image of their name', 'add the images')


@dataclass
class FolderFacts:
    """The annotation files to convert to records, and what else the folder states about them.

    Attributes:
        files: the files with their parsed contents.
        names: class names that come before those in the files, and so give the order.
        name_of_code: class names by code, for files that name classes by codes, as Open Images does
            (``/m/01g317``).
        splits: the splits of annotation files or images, if the format has its own lists. None: any
            lists in the folder are used, see :mod:`.split_lists`.
        used_files: further files that were read.
        unlabeled_are_empty: whether images without an annotation file have no objects.
        no_image_note: how an annotation file without an image is reported.
    """

    files: Mapping[Path, Any]
    names: Sequence[str] = ()
    name_of_code: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[Path, Split] | None = None
    used_files: Sequence[Path] = ()
    unlabeled_are_empty: bool = False
    no_image_note: MissingImageNote = NO_IMAGE


def prepare_coco(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FolderFacts:
    """Choose the files to use: in each split those named ``inst*`` and those of other images.

    COCO's other files, such as ``person_keypoints_train2017.json``, repeat some of the boxes.
    """
    by_split: dict[Split | None, list[Path]] = defaultdict(list)
    for file in files:
        by_split[tree.stated_split(file)].append(file)
    chosen: dict[Path, Any] = {}
    for group in by_split.values():
        instance_files = [file for file in group if file.stem.startswith('inst')]
        named = set[str]().union(*(_image_names(files[file]) for file in instance_files))
        # Only files of a split that has one named `inst*` are left out.
        if named:
            instance_files += [
                file for file in group if named.isdisjoint(_image_names(files[file]))
            ]
        instance_files = instance_files or group
        what = 'files left out, since another one has the boxes of these images'
        findings.warn_all(what, sorted({*group} - {*instance_files}))
        chosen |= {file: files[file] for file in instance_files}
    return FolderFacts(chosen)


def _image_names(content: Any) -> set[str]:
    """The names of the images in a COCO file, without folders."""
    images = content['images'] if isinstance(content['images'], list) else ()
    names = (
        image.get('file_name') or image.get('coco_url')
        for image in images
        if isinstance(image, Mapping)
    )
    return {str(name).rpartition('/')[2] for name in names if name}


def prepare_supervisely(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FolderFacts:
    """Read the class names from ``meta.json``, whose order is that of the classes."""
    names, used = list[str](), []
    for file in tree.others:
        if file.name.lower() == 'meta.json':
            match tree.contents.json(file):
                case {'classes': [*classes]}:
                    objects = [item for item in classes if isinstance(item, Mapping)]
                    names += [text_of(item['title']) for item in objects if 'title' in item]
                    used.append(file)
    return FolderFacts(files, names, used_files=used)


# The code of a class in Open Images: a "machine ID" of Freebase or Google's Knowledge Graph.
MACHINE_ID = re.compile(r'/[mgt]/\w+$')


def prepare_open_images(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FolderFacts:
    """Read the class names of a table of two columns, such as ``/m/01g317,Person``.

    Raises:
        InputError: if a row with a code in such a table does not have one name.
    """
    name_of_code, used = dict[str, str](), []
    for file in tree.others:
        if file.suffix.lower() in TABLE_SUFFIXES and file not in files:
            head = read_table(file, max_lines=3)
            if all(len(row) == 2 for row in head) and MACHINE_ID.match(head[-1][0] if head else ''):
                name_of_code |= _names_of_codes(file)
                used.append(file)
    return FolderFacts(files, name_of_code=name_of_code, used_files=used)


def _names_of_codes(file: Path) -> dict[str, str]:
    """The class name of each code in a table. Rows without a code are left out.

    Raises:
        InputError: if a row does not have one name after the code.
    """
    name_of_code = {}
    for row in read_table(file):
        if not MACHINE_ID.match(row[0]):
            continue
        code, *names = row
        if len(names) != 1:
            raise InputError(
                f'the row of {code!r} in {str(file)!r} must have one class name; quote a name that '
                'has a comma.'
            )
        name_of_code[code] = names[0]
    return name_of_code
