"""Pascal VOC folders: lists in ``ImageSets/Main`` give the splits of annotations."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyfolder.errors import UnclearError
from anyfolder.text import LONGEST_IN_LIST, read_lines

from .findings import Findings
from .format_folder import FolderFacts
from .identity import Index
from .image_tree import Tree
from .splits import SPLITS, Split, split_in


def prepare_voc(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FolderFacts:
    """Choose the annotations in lists of ``ImageSets/Main``, or all without such a list.

    Raises:
        InputError: if no line of a list has an annotation.
    """
    lists = [
        file
        for file in tree.others
        if file.parent.name == 'Main' and file.suffix == '.txt' and '_' not in file.stem
    ]
    splits = dict(_listed_splits(tree, lists, files, findings))
    if not splits:
        return FolderFacts(files, used_files=lists)
    what = 'annotations left out, since they are in no list'
    findings.warn_all(what, sorted({*files} - {*splits}))
    chosen = {file: root for file, root in files.items() if file in splits}
    return FolderFacts(chosen, splits=splits, used_files=[*lists, *files])


def _listed_splits(
    tree: Tree, lists: Sequence[Path], files: Iterable[Path], findings: Findings
) -> Iterator[tuple[Path, Split]]:
    """The split of each annotation in a list. If it is in several, the last one counts.

    The last is the one furthest from training. A name may be followed by -1, 0 or 1, which state in
    the list of a class whether the image has it.

    Raises:
        UnclearError: if no line of a list has an annotation.
    """
    index = Index(tree.folder, [*files])  # lists name annotations like images
    for split in SPLITS:
        for file in lists:
            if split_in(file.stem) != split:
                continue
            annotations_of = {
                line: index.match(line, file)
                or index.match(re.sub(r'\s+(-1|0|1)$', '', line), file)
                for line in read_lines(file, LONGEST_IN_LIST)
            }
            # The annotations of the test split may not be published.
            if split != 'test' and annotations_of and not any(annotations_of.values()):
                raise UnclearError(
                    f'no line of {str(file)!r} has an annotation, such as '
                    f'{next(iter(annotations_of))!r}; correct the list, or remove it.',
                    format='voc',
                    labels=[*files],
                )
            for line, annotations in annotations_of.items():
                yield from dict.fromkeys(annotations, split).items()
                if not annotations:
                    findings.warn(
                        f'lines of {file.name} left out, since they have no annotation', line
                    )
