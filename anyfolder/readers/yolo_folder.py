"""YOLO folders: label files, class names, and the folders of splits."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate
from itertools import chain
from pathlib import Path, PureWindowsPath
from typing import Any

from anyfolder.errors import InputError, UnclearError
from anyfolder.limits import check_limit

from .class_names import warn_repeated
from .findings import Findings
from .format_folder import FormatFolder, MissingImageNote
from .formats.yolo import YoloLabels, are_labels
from .formats.yolo_line_form import line_form
from .image_tree import Tree
from .name_files import NAME_FILES, Settings, find_names, find_settings
from .split_lists import images_of
from .splits import SPLITS, Split

IS_OF_NAMES = re.compile('|'.join(map(translate, NAME_FILES)))
NO_IMAGE_OF_NAME = MissingImageNote('label files left out, since no image has their name')


def label_files(tree: Tree) -> dict[Path, list[str]]:
    """The text files named after images, with their lines; empty if they are not labels.

    Those beside folders that are called ``labels`` must have boxes.

    Args:
        tree: the files of the folder.

    Raises:
        InputError: if a YAML file is damaged, or several name different classes.
    """
    found = [file for file in _texts(tree) if tree.index.has(file.stem)]
    within = {file for file in found if _is_within(tree, file)}
    labels = [file for file in found if not within or file in within or _has_boxes(tree, file)]
    is_yolo = within or any(_has_boxes(tree, file) for file in labels)
    if labels and (is_yolo or find_names(tree, find_settings(tree))):
        return {file: tree.contents.lines(file) for file in labels}
    return {}


def yolo_folder(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FormatFolder:
    """The label files with their class names and the form of their lines.

    Images without such a file have no objects.

    Args:
        tree: the files of the folder.
        files: the result of :func:`label_files`.
        findings: collects unusual forms.

    Raises:
        InputError: if no file names the classes, or if the form of the lines is ambiguous.
    """
    settings = find_settings(tree)
    named = find_names(tree, settings)
    if named is None:
        numbers = {line.split()[0] for lines in files.values() for line in lines if line.strip()}
        known = max((int(number) for number in numbers if number.isdecimal()), default=0)
        raise UnclearError(
            f'{str(tree.folder)!r} has boxes as in YOLO, but no file with the names of the '
            'classes; add data.yaml with names: [...], or classes.txt with a name on each line.',
            format='yolo',
            labels=[*files],
            classes=[f'class {number}' for number in range(known + 1)],
        )
    places = list(_places(tree, settings, findings)) if settings else []
    paired = (lines for file, lines in files.items() if tree.index.match(file.stem, file))
    form, faults = line_form([*chain(*paired)], settings[1].get('kpt_shape') if settings else None)
    findings.note_all(faults)
    others = (file for file in _texts(tree) if file not in files)
    orphans = [file for file in others if _is_within(tree, file) or _has_boxes(tree, file)]
    findings.warn_all(NO_IMAGE_OF_NAME.what, orphans)
    names = [name for name in named[1] if name]
    warn_repeated(names, named[0], findings)
    return FormatFolder(
        {file: YoloLabels(lines, named, form) for file, lines in files.items()},
        names=names,
        splits=_splits(tree, places, findings) if places else None,
        used=[named[0], *orphans, *(place for place, _ in places)],
        whole=True,
        lost=NO_IMAGE_OF_NAME,
    )


def _texts(tree: Tree) -> list[Path]:
    """The text files except those that name classes."""
    texts = (file for file in tree.others if file.suffix.lower() == '.txt')
    return [file for file in texts if not IS_OF_NAMES.match(file.name)]


def _is_within(tree: Tree, file: Path) -> bool:
    return 'labels' in tree.parts(file)


def _has_boxes(tree: Tree, file: Path) -> bool:
    return are_labels(tree.contents.lines(file), file)


def _places(tree: Tree, settings: Settings, findings: Findings) -> Iterator[tuple[Path, Split]]:
    """The image folders and lists of each split that the YAML file names.

    For a path of another machine, the longest end that exists counts.
    """
    file, content = settings
    roots = [file.parent, file.parent / str(content.get('path') or ''), tree.folder]
    for split in SPLITS:
        for place in _places_of(split, content, file):
            # It may begin with ../, or with folders of another machine.
            parts = [part for part in PureWindowsPath(place).parts if part.strip('./\\')]
            tried = (root.joinpath(*parts[i:]) for i in range(len(parts)) for root in roots)
            if found := next(filter(os.path.exists, tried), None):
                yield found, split
            elif place not in ('null', '~'):
                findings.warn(f'paths in {file.name} that do not exist', place)


def _places_of(split: Split, content: Mapping[str, Any], file: Path) -> Sequence[str]:
    """The paths of a split in the YAML file.

    Raises:
        InputError: if it is not a text or list of texts, or exceeds a limit.
    """
    found = content.get(split) or content.get('valid' if split == 'val' else split) or []
    places = [found] if isinstance(found, str) else found
    if not isinstance(places, list) or not all(isinstance(place, str) for place in places):
        raise InputError(
            f'{split} of {str(file)!r} must be a folder or a list of images, or several '
            'of them in a list.'
        )
    check_limit(file, 'places of a part', len(places))
    for place in places:
        check_limit(file, 'levels of folders', len(PureWindowsPath(place).parts), ' in a path')
    return places


def _splits(
    tree: Tree, places: Sequence[tuple[Path, Split]], findings: Findings
) -> dict[Path, Split]:
    """The split of each image in these folders and lists."""
    named_for: dict[Path, list[Split]] = {}
    for place, split in places:
        for image in images_of(tree, place, findings):
            named_for.setdefault(image, []).append(split)
    of_last = any({*splits} == {'train'} for splits in named_for.values())
    findings.warn_all(
        f'images listed in two splits, assigned to the {"last" if of_last else "first"}',
        (image for image, splits in named_for.items() if len({*splits}) > 1),
    )
    return {image: splits[-1 if of_last else 0] for image, splits in named_for.items()}
