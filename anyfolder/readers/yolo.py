"""YOLO: a text file for each image, see :mod:`.yolo_lines`, and the lists of the parts."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path, PureWindowsPath
from typing import Any

from anyfolder.errors import InputError
from anyfolder.limits import check_limit
from anyfolder.text import read_lines

from .class_names import warn_repeated
from .findings import Findings
from .image_tree import Tree, read_sizes
from .name_files import NAMES, Names, Settings, find_names
from .records import Annotations, Records
from .split_lists import images_of
from .splits import SPLITS, Split, split_in
from .yolo_lines import LABEL, form_of, instance_in


def _has_labels(file: Path) -> bool:
    return file.suffix.lower() == '.txt' and not any(fnmatch(file.name, name) for name in NAMES)


def is_label(file: Path) -> bool:
    """True if the first line of a file is a class and four numbers or more."""
    return bool(LABEL.match(''.join(read_lines(file)[:1])))


def label_files(tree: Tree) -> list[Path]:
    """The text files of the name of an image. Those beside ``labels`` must have boxes."""
    found = [file for file in tree.others if _has_labels(file) and tree.index.has(file.stem)]
    within = {file for file in found if 'labels' in tree.parts(file)}
    return [file for file in found if not within or file in within or is_label(file)]


def read_yolo(
    tree: Tree, labels: Collection[Path], findings: Findings, settings: Settings | None
) -> Annotations:
    """Read the images of a YOLO folder. Those without a label file have no objects.

    Args:
        tree: the files of the folder.
        labels: from :func:`label_files`.
        findings: gets what is wrong.
        settings: from :func:`find_settings`.

    Raises:
        InputError: if no file names the classes, or if a line is not of this form.
    """
    named = find_names(tree, settings)
    if named is None:
        raise InputError(
            f'--data: {str(tree.folder)!r} has boxes as YOLO, and no file with the names of the '
            'classes; add data.yaml with names: [...], or classes.txt with a name on each line.'
        )
    places = list(_places(tree, settings, findings))
    listed = _listed(tree, places, findings)
    pairs = tree.index.pair({file: [file.stem] for file in labels}, findings)
    of_image = {image: file for file, image in pairs.image_of.items()}
    records = [
        tree.record(image, of_image.get(image, image), listed.get(image))
        for image in tree.images
        if image not in pairs.unclear
    ]
    records = read_sizes(tree, records, findings)
    _read_objects(records, of_image, named, settings, findings)
    nameless = [
        file
        for file in tree.others
        if _has_labels(file) and 'labels' in tree.parts(file) and file not in labels
    ]
    orphans = [*pairs.lost, *nameless]
    findings.warn_all('files of labels left out, without an image of their name', orphans)
    names = [name for name in named[1] if name]
    warn_repeated(names, named[0], findings)
    used = [named[0], *orphans, *(place for place, _ in places)]
    return Annotations(records, names, used, is_divided=bool(places))


def _read_objects(
    records: Records,
    of_image: Mapping[Path, Path],
    named: Names,
    settings: Settings | None,
    findings: Findings,
) -> None:
    """Give the images the objects in their files of labels."""
    lines = {file: read_lines(file) for file in of_image.values()}
    form = form_of([*chain(*lines.values())], settings, findings)
    for record in records:
        file = of_image.get(record.path)
        if file is None:
            what = 'images without a file of labels, taken as without an object'
            findings.warn(what, record.path)
            continue
        found = (
            instance_in(line, record, named, form, f'line {number} of {file}', findings)
            for number, line in enumerate(lines[file], 1)
        )
        record.instances = [*filter(None, found)]


def _places(
    tree: Tree, settings: Settings | None, findings: Findings
) -> Iterator[tuple[Path, Split]]:
    """The image folders and lists of each split, from the YAML file, else ``train_list.txt`` etc.

    The end of a path of another machine is enough, as far as it is there.
    """
    file, content = settings or (tree.folder, {})
    if not {*SPLITS, 'valid'} & content.keys():
        for path in tree.others:
            split = split_in(path.stem) if path.suffix.lower() == '.txt' else None
            if split and not is_label(path):
                yield path, split
        return
    roots = [file.parent, file.parent / str(content.get('path') or ''), tree.folder]
    for split in SPLITS:
        for place in _places_of(split, content, file):
            # It may begin with ../, or with folders of another machine.
            parts = [part for part in PureWindowsPath(place).parts if part.strip('./\\')]
            tried = (root.joinpath(*parts[i:]) for i in range(len(parts)) for root in roots)
            if found := next(filter(os.path.exists, tried), None):
                yield found, split
            elif place not in ('null', '~'):
                findings.warn(f'places that {file.name} names, which are not there', place)


def _places_of(split: Split, content: Mapping[str, Any], file: Path) -> Sequence[str]:
    """What the YAML file says of the places of a split.

    Raises:
        InputError: if it is no text or list of texts, or exceeds a limit.
    """
    found = content.get(split) or content.get('valid' if split == 'val' else split) or []
    places = [found] if isinstance(found, str) else found
    if not isinstance(places, list) or not all(isinstance(place, str) for place in places):
        raise InputError(
            f'--data: {split} of {str(file)!r} must be a folder or a list of images, or several '
            'of them in a list.'
        )
    check_limit(file, 'places of a part', len(places))
    for place in places:
        check_limit(file, 'levels of folders', len(PureWindowsPath(place).parts), ' in a path')
    return places


def _listed(
    tree: Tree, places: Sequence[tuple[Path, Split]], findings: Findings
) -> dict[Path, Split]:
    """The part of each image in these folders and lists."""
    named_for: dict[Path, list[Split]] = {}
    for place, split in places:
        for image in images_of(tree, place, findings):
            named_for.setdefault(image, []).append(split)
    of_last = any({*splits} == {'train'} for splits in named_for.values())
    findings.warn_all(
        f'images that are named for two parts, taken for the {"last" if of_last else "first"}',
        (image for image, splits in named_for.items() if len({*splits}) > 1),
    )
    return {image: splits[-1 if of_last else 0] for image, splits in named_for.items()}
