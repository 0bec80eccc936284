"""YOLO folders: label files, class names, and the folders of splits."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import translate
from itertools import chain
from pathlib import Path, PureWindowsPath
from typing import Any

from anyfolder.errors import InputError, UnclearError
from anyfolder.limits import check_limit

from .class_names import warn_repeated
from .findings import Findings
from .format_folder import FolderFacts, MissingImageNote
from .formats.yolo import YoloLabels, are_labels
from .formats.yolo_line_form import line_form
from .image_tree import Tree
from .name_files import NAME_FILES, Settings, find_names, find_settings
from .split_lists import images_in
from .splits import SPLITS, Split
from .tables import WHOLE_NUMBER

NAME_FILE = re.compile('|'.join(map(translate, NAME_FILES)))
MAX_PROPOSED_CLASSES = 1000  # more names are too long for a message, see `answers`
NO_IMAGE_OF_NAME = MissingImageNote('label files left out, since no image has their name')


def label_files(tree: Tree) -> dict[Path, list[str]]:
    """The text files named after images, with their lines; empty if they are not labels.

    If some are in folders that are called ``labels``, the others must have boxes.

    Args:
        tree: the files of the folder.

    Raises:
        InputError: if a YAML file is damaged, or several name different classes.
    """
    texts = [file for file in _texts(tree) if tree.index.has_image(file.stem)]
    in_labels = {file for file in texts if _is_in_labels(tree, file)}
    labels = [
        file for file in texts if not in_labels or file in in_labels or _has_boxes(tree, file)
    ]
    have_boxes = in_labels or any(_has_boxes(tree, file) for file in labels)
    # Label files may all be empty; then a file with class names shows what they are.
    if labels and (have_boxes or find_names(tree, find_settings(tree))):
        return {file: tree.contents.lines(file) for file in labels}
    return {}


def prepare_yolo(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FolderFacts:
    """Find the class names, the splits and the form of the lines of label files.

    Images without a label file have no objects.

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
        largest = max(map(int, filter(WHOLE_NUMBER.fullmatch, numbers)), default=0)
        raise UnclearError(
            f'{str(tree.folder)!r} has boxes as in YOLO, but no file with the names of the '
            'classes; add data.yaml with names: [...], or classes.txt with a name on each line.',
            format='yolo',
            labels=[*files],
            classes=[f'class {i}' for i in range(min(largest + 1, MAX_PROPOSED_CLASSES))],
        )
    sources = list(_split_sources(tree, settings, findings)) if settings else []
    paired = (lines for file, lines in files.items() if tree.index.match(file.stem, file))
    form, faults = line_form([*chain(*paired)], settings[1].get('kpt_shape') if settings else None)
    findings.note_all(faults)
    others = (file for file in _texts(tree) if file not in files)
    # Label files without an image.
    orphans = [file for file in others if _is_in_labels(tree, file) or _has_boxes(tree, file)]
    findings.warn_all(NO_IMAGE_OF_NAME.what, orphans)
    names = [name for name in named[1] if name]
    warn_repeated(names, named[0], findings)
    return FolderFacts(
        {file: YoloLabels(lines, named, form) for file, lines in files.items()},
        names=names,
        splits=_splits_of_images(tree, sources, findings) if sources else None,
        used_files=[named[0], *orphans, *(source for source, _ in sources)],
        unlabeled_are_empty=True,
        no_image_note=NO_IMAGE_OF_NAME,
    )


def _texts(tree: Tree) -> list[Path]:
    """The text files except those that name classes."""
    texts = (file for file in tree.others if file.suffix.lower() == '.txt')
    return [file for file in texts if not NAME_FILE.match(file.name)]


def _is_in_labels(tree: Tree, file: Path) -> bool:
    """True for a file in a folder that is called ``labels``."""
    return 'labels' in tree.parts(file)


def _has_boxes(tree: Tree, file: Path) -> bool:
    """True for a text that begins with a box, but not for notes in an unknown encoding."""
    with suppress(InputError):
        return are_labels(tree.contents.lines(file), file)
    return False


def _split_sources(
    tree: Tree, settings: Settings, findings: Findings
) -> Iterator[tuple[Path, Split]]:
    """The image folders and lists that the YAML file names, each with its split.

    For a path of another machine, the longest end that exists in the folder is used.
    """
    file, content = settings
    roots = [file.parent, file.parent / str(content.get('path') or ''), tree.folder]
    for split in SPLITS:
        for source in _stated_sources(split, content, file):
            # The path may begin with ../, or with folders of another machine.
            parts = [part for part in PureWindowsPath(source).parts if part.strip('./\\')]
            # Without parts, the path is a root itself, such as the folder of the file for '.'.
            starts = range(len(parts) or 1)
            tried = (root.joinpath(*parts[i:]) for i in starts for root in roots)
            existing = [*filter(os.path.exists, tried)]
            # The settings of a copy may state the path of the original, which may exist, too.
            if within := next(filter(None, (_within(path, tree) for path in existing)), None):
                yield within, split
            elif existing:
                findings.warn(f'paths in {file.name} that lead out of the folder', source)
            elif source not in ('null', '~'):
                findings.warn(f'paths in {file.name} that do not exist', source)


def _within(path: Path, tree: Tree) -> Path | None:
    """A path, which may contain `..`, as the tree has it; None if it leads out of the folder."""
    absolute, folder = (Path(os.path.abspath(one)) for one in (path, tree.folder))
    if not absolute.is_relative_to(folder):
        return None
    return tree.folder / absolute.relative_to(folder)


def _stated_sources(split: Split, content: Mapping[str, Any], file: Path) -> Sequence[str]:
    """The paths of a split in the YAML file.

    Raises:
        InputError: if the value is not a text or a list of texts, or exceeds a limit.
    """
    value = content.get(split) or content.get('valid' if split == 'val' else split) or []
    sources = [value] if isinstance(value, str) else value
    if not isinstance(sources, list) or not all(isinstance(source, str) for source in sources):
        raise InputError(
            f'{split} of {str(file)!r} must be a folder or a list of images, or several '
            'of them in a list.'
        )
    check_limit(file, 'paths of a split', len(sources))
    for source in sources:
        check_limit(file, 'levels of folders', len(PureWindowsPath(source).parts), ' in a path')
    return sources


def _splits_of_images(
    tree: Tree, sources: Sequence[tuple[Path, Split]], findings: Findings
) -> dict[Path, Split]:
    """The split of each image in these folders and lists.

    An image of several splits is in the last one, furthest from training, unless no image would
    remain to train on.
    """
    splits_of: dict[Path, list[Split]] = {}
    for source, split in sources:
        for image in images_in(tree, source, findings):
            splits_of.setdefault(image, []).append(split)
    use_last = any({*splits} == {'train'} for splits in splits_of.values())
    findings.warn_all(
        f'images listed in two splits, assigned to the {"last" if use_last else "first"}',
        (image for image, splits in splits_of.items() if len({*splits}) > 1),
    )
    return {image: splits[-1 if use_last else 0] for image, splits in splits_of.items()}
