"""Pascal VOC folders: lists in ``ImageSets/Main`` give the splits of annotations."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyfolder.errors import UnclearError
from anyfolder.text import LONGEST_IN_LIST, read_lines

from .findings import Findings
from .format_folder import FormatFolder
from .identity import Index
from .image_tree import Tree
from .splits import SPLITS, Split, split_in


def voc_folder(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> FormatFolder:
    """The annotations in lists of ``ImageSets/Main``, or all without such a list.

    Raises:
        InputError: if no line of a list has an annotation.
    """
    lists = [
        file
        for file in tree.others
        if file.parent.name == 'Main' and file.suffix == '.txt' and '_' not in file.stem
    ]
    splits = dict(_listed(tree, lists, files, findings))
    if not splits:
        return FormatFolder(files, used=lists)
    what = 'annotations left out, since they are in no list'
    findings.warn_all(what, sorted({*files} - {*splits}))
    chosen = {file: root for file, root in files.items() if file in splits}
    return FormatFolder(chosen, splits=splits, used=[*lists, *files])


def _listed(
    tree: Tree, lists: Sequence[Path], files: Iterable[Path], findings: Findings
) -> Iterator[tuple[Path, Split]]:
    """The split of each annotation by the lists nearest to it, the furthest from training last.

    A class list has -1, 0 or 1 after each image.
    """
    index = Index(tree.folder, [*files])
    for split in SPLITS:
        for listing in (one for one in lists if split_in(one.stem) == split):
            lines = {
                line: index.match(line, listing)
                or index.match(re.sub(r'\s+(-1|0|1)$', '', line), listing)
                for line in read_lines(listing, LONGEST_IN_LIST)
            }
            if split != 'test' and lines and not any(lines.values()):
                raise UnclearError(
                    f'no line of {str(listing)!r} has an annotation, such as '
                    f'{next(iter(lines))!r}; correct the list, or remove it.',
                    format='voc',
                    labels=[*files],
                )
            for line, found in lines.items():
                yield from dict.fromkeys(found, split).items()
                if not found:
                    findings.warn(
                        f'lines of {listing.name} left out, since they have no annotation', line
                    )
