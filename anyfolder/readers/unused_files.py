"""Report unused files, so that nothing is left out silently."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from anyfolder.text import GUESSED_ENCODINGS

from .findings import Findings
from .image_tree import Tree
from .records import Records


def warn_unused(
    tree: Tree, records: Records, used: Iterable[Path | None], findings: Findings
) -> None:
    """Note the unused files and images of a folder, files by their suffix.

    Args:
        tree: the files of the folder.
        records: the images that are read, with their masks.
        used: other files that were read.
        findings: collects the unused files, and files whose encoding was guessed.
    """
    images_and_masks = chain.from_iterable((record.path, record.mask) for record in records)
    read = set(map(str, chain(images_and_masks, used)))
    reported = read | findings.left_out
    # Files whose encoding `read_text` had to guess, with the guess and a line.
    for name in sorted(read & GUESSED_ENCODINGS.keys()):
        what, line = GUESSED_ENCODINGS[name]
        findings.warn(what, f'{line!r} in {name}')
    findings.warn_all(
        'folders of trainings left out', (path.relative_to(tree.folder) for path in tree.runs)
    )
    for path in tree.others:
        if str(path) not in reported:
            suffix = path.suffix.lower() or 'without a suffix'
            findings.warn(f'files left out, {suffix}', path.relative_to(tree.folder))
    findings.warn_all(
        'images left out, since they have no label or list entry',
        (path.relative_to(tree.folder) for path in tree.images if str(path) not in read),
    )
