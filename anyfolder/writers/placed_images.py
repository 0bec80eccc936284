"""Name the images in an output folder, and link or copy them."""

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

UNUSUAL = re.compile(r'[^\w.+@() -]')  # characters that are unsafe in lists and tables
# Stems that readers take for a file of class names or the like, not for an image or its labels.
RESERVED_STEMS = {
    'classes',
    'labels',
    'names',
    'data',
    'labelmap',
    '_classes',
    'annotations',
    'images',
}


class PlacedImage(NamedTuple):
    """An image of a split and its file name with a unique stem."""

    split: Split
    image: Image
    name: str

    @property
    def stem(self) -> str:
        """The name of its label file, without the suffix."""
        return os.path.splitext(self.name)[0]


def placed_images(data: Dataset) -> Iterator[PlacedImage]:
    """All images with unique names, even if they come from several folders.

    A name stays unchanged if possible. If another image has it, the name of its folder is put
    before it; if that is taken too, a number follows the original name.
    """
    taken: set[str] = set()
    for split, image in data.images():
        stem, suffix = os.path.splitext(UNUSUAL.sub('_', image.path.name))
        stem = stem.strip(' .') or 'image'
        if stem.casefold() in RESERVED_STEMS or split_of(stem):
            stem = f'image_{stem}'
        folder = UNUSUAL.sub('_', image.path.parent.name).strip(' .')
        tried = chain([stem, f'{folder}_{stem}'], (f'{stem}_{number}' for number in count(2)))
        chosen = next(name for name in tried if name.casefold() not in taken)
        taken.add(chosen.casefold())
        yield PlacedImage(split, image, chosen + suffix)


def place_file(source: Path, target: Path, copy: bool) -> None:
    """Link to a file, or copy it.

    Raises:
        InputError: if links cannot be created there, as on Windows without permission.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if copy:
        shutil.copyfile(source, target)
        return
    try:
        target.symlink_to(os.path.realpath(source))
    except (OSError, NotImplementedError) as error:
        raise InputError(
            f'no link to {str(source)!r} can be created in {str(target.parent)!r} ({error}); give '
            f'{option("copy", True)}.'
        ) from error
