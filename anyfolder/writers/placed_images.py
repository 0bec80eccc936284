"""The name of each image in a folder that is written, and the image as a link or a copy there."""

import os
import re
import shutil
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from anyfolder.dataset import Dataset, Image
from anyfolder.errors import InputError
from anyfolder.readers.splits import Split, split_of
from anyfolder.wording import option

UNUSUAL = re.compile(r'[^\w.+@() -]')  # letters that a list or a table may not hold
# Names of files that are no labels of an image.
TAKEN = {'classes', 'labels', 'names', 'data', 'labelmap', '_classes', 'annotations', 'images'}


class PlacedImage(NamedTuple):
    """An image of a split and its file name, whose stem no other image has."""

    split: Split
    image: Image
    name: str

    @property
    def stem(self) -> str:
        """The name of its files of labels, without the suffix."""
        return os.path.splitext(self.name)[0]


def placed_images(data: Dataset) -> Iterator[PlacedImage]:
    """All images with names of their own, however many folders they come from.

    A name stays as it is where that is possible. The folder of the image comes before it where
    another image has it, and then a number.
    """
    taken: set[str] = set()
    for split, image in data.images():
        stem, suffix = os.path.splitext(UNUSUAL.sub('_', image.path.name))
        stem = stem.strip(' .') or 'image'
        if stem.casefold() in TAKEN or split_of(stem):
            stem = f'image_{stem}'
        folder = UNUSUAL.sub('_', image.path.parent.name).strip(' .')
        tried = chain([stem, f'{folder}_{stem}'], (f'{stem}_{number}' for number in count(2)))
        chosen = next(name for name in tried if name.casefold() not in taken)
        taken.add(chosen.casefold())
        yield PlacedImage(split, image, chosen + suffix)


def place_file(source: Path, target: Path, copy: bool) -> None:
    """A link to a file, or a copy of it.

    Raises:
        InputError: if links cannot be made there, as on Windows without this right.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if copy:
        shutil.copyfile(source, target)
        return
    try:
        target.symlink_to(os.path.realpath(source))
    except (OSError, NotImplementedError) as error:
        raise InputError(
            f'no link to {str(source)!r} can be made at {str(target.parent)!r} ({error}); give '
            f'{option("copy", True)}.'
        ) from error
