"""The image of each label file: if there are several files for an image, the nearest is read.

Two equally near files with different content are an error that names both.
"""

from collections.abc import Mapping, Sequence
from filecmp import cmp
from pathlib import Path
from typing import NamedTuple

from .class_names import nfc
from .findings import Findings
from .identity import Index, single_match


class Pairs(NamedTuple):
    """The image of each label file.

    Attributes:
        image_of: the image of each file that is read.
        unmatched: files without an image.
        conflicting: images with several equally near files of different content.
    """

    image_of: dict[Path, Path]
    unmatched: list[Path]
    conflicting: set[Path]


def pair_files(index: Index, labels: Mapping[Path, Sequence[str]], findings: Findings) -> Pairs:
    """The image of each label file. If there are several for an image, the nearest is read.

    Args:
        index: the images.
        labels: the files, and the possible names of their image, the likeliest first.
        findings: collects ambiguities.
    """
    pairs = Pairs(image_of={}, unmatched=[], conflicting=set())
    files_of: dict[Path, list[Path]] = {}
    for file, names in labels.items():
        images = index.match_first(names, file)
        if image := single_match(images, file, findings):
            files_of.setdefault(image, []).append(file)
        elif not images:
            pairs.unmatched.append(file)
    for image, files in files_of.items():
        if file := _nearest_file(index, image, files, findings):
            pairs.image_of[file] = image
        else:
            pairs.conflicting.add(image)
    return pairs


def _nearest_file(
    index: Index, image: Path, files: Sequence[Path], findings: Findings
) -> Path | None:
    """The nearest of the label files of an image; None if there are two of different content."""
    if len(files) == 1:
        return files[0]
    ranks = {file: _distance(index, file, image) for file in files}
    first, *others = sorted(files, key=lambda file: ranks[file])
    equal = [file for file in others if ranks[file] == ranks[first]]
    different = next((file for file in equal if not cmp(first, file, shallow=False)), None)
    if different:
        what, remedy = 'images have two label files', 'keep one, or merge both'
        findings.reject(what, remedy, f'{first} and {different}')
        return None
    findings.warn_all(
        'label files left out, since a nearer one exists for the image',
        (f'{other}, not {first}' for other in others if other not in equal),
    )
    findings.warn_all(
        'label files left out, since another one of the image is equal',
        (f'{other}, not {first}' for other in equal),
    )
    return first


def _distance(index: Index, file: Path, image: Path) -> tuple[bool, int, int]:
    """How far a label file is from an image, as a key to sort by.

    Files with the exact name of the image come first, then those that share the most folders.
    """
    file_address, image_address = index.address(file), index.address(image)
    has_name = nfc(file.stem) in (nfc(image.stem), nfc(image.name))
    shared = file_address.count_shared(image_address)
    return not has_name, -shared, file_address.count_different(image_address)
