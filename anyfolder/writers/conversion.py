"""Write a dataset in another format. Losses are stated first, and the result is read back."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.complete import check_path, new_folder
from anyfolder.dataset import Dataset, Image, Object
from anyfolder.errors import InputError
from anyfolder.readers.splits import Split
from anyfolder.reading import read
from anyfolder.wording import counted, option

from .own_folders import check_outside
from .placed_images import PlacedImage, placed_images
from .same_data import difference
from .targets import TARGETS, Target


class Conversion(NamedTuple):
    """A conversion that can be written, made by :func:`plan_conversion`.

    Attributes:
        data: the data to write.
        target: the format.
        out: the folder.
        sentences: what is lost or changed, each as a sentence for the user.
    """

    data: Dataset
    target: Target
    out: Path
    sentences: Sequence[str]

    def write(self, copy: bool = False) -> Dataset:
        """Write the folder, completely or not at all, and return the dataset read back.

        Args:
            copy: whether images are copied instead of linked.

        Raises:
            InputError: if it cannot be written, or if reading it back gives other data.
        """
        placed = [*placed_images(self.data)]
        with new_folder(self.out, durable=False) as folder:
            self.target.write(self.data, placed, folder, copy)
            self._check(placed, folder)
        return read(self.out, self.data.task)

    def _check(self, placed: Sequence[PlacedImage], folder: Path) -> None:
        """Raise an ``InputError`` if reading a folder back gives other data."""
        try:
            fault = difference(self.data, placed, read(folder, self.data.task))
        except InputError as error:
            # The remedy is cut off, not what follows a semicolon in the path of the folder.
            fault = str(error).replace(str(folder), '\0').partition('; ')[0]
            fault = fault.replace('\0', str(self.out))
        if fault:
            raise InputError(
                f'{self.target.name} cannot hold this data: reading it back gives other data '
                f'({fault.rstrip(".")}); nothing was written, give another {option("to")}.'
            )


def plan_conversion(data: Dataset, out: str | Path, to: str, lossy: bool = False) -> Conversion:
    """Determine what a format can hold of a dataset. Nothing is written.

    Args:
        data: the dataset.
        out: the folder, which must not exist, or must be empty.
        to: a key of :data:`TARGETS`.
        lossy: whether objects that the format cannot hold are left out, rather than an error.

    Raises:
        InputError: if the format cannot hold the data, if the folder exists and is not empty, or if
            it is inside the data.
    """
    out = Path(out)
    target = _target_for(data, out, to)
    data, sentences = _without_drops(data, target, lossy)
    if not target.keeps_class_order and [*data.classes] != sorted(data.classes):
        sentences.append(
            f'{target.name} has no order of classes: read back, they are in alphabetical order.'
        )
    return Conversion(data, target, out, sentences)


def _target_for(data: Dataset, out: Path, to: str) -> Target:
    """The format, if it can hold the task and its folder can be written.

    Raises:
        InputError: otherwise.
    """
    if to not in TARGETS:
        raise InputError(f'{option("to", to)} is not one of {", ".join(TARGETS)}.')
    target = TARGETS[to]
    check_path(out)
    if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f'{str(out)!r} already exists; give a new folder.')
    check_outside(data, out)
    if data.task not in target.tasks:
        tasks = ' or '.join(option('task', task) for task in target.tasks)
        raise InputError(
            f'{target.name} has no labels for {data.task}, only for '
            f'{" and ".join(target.tasks)}; give {tasks}, or another {option("to")}.'
        )
    if obstacle := target.obstacle(data):
        raise InputError(
            f'{target.name} cannot hold this data: {obstacle}; give another {option("to")}.'
        )
    return target


def _without_drops(data: Dataset, target: Target, lossy: bool) -> tuple[Dataset, list[str]]:
    """The dataset without the objects that a format cannot hold, and sentences that state them.

    Raises:
        InputError: if there are such objects and losses are not allowed, or no other object remains
            to train on.
    """
    sentences = []
    for what, is_dropped in target.drops:
        lost = sum(is_dropped(data, obj) for _, image in data.images() for obj in image.objects)
        if not lost:
            continue
        if not lossy:
            raise InputError(
                f'{target.name} cannot hold {lost} {what}; give another {option("to")}, or '
                f'{option("lossy", True)} to leave them out.'
            )
        sentences.append(f'{target.name} cannot hold {lost} {what}: they are left out.')
        before = _count(data)
        data = _leave_out(data, is_dropped)
        if others := before - lost - _count(data):
            sentences.append(
                f'{counted(others, "object")} to validate or test left out, too: none of the '
                'class remains to train on.'
            )
        if not data.classes:
            raise InputError(
                f'{target.name} cannot hold {lost} {what}, and no other object remains to '
                f'train on; give another {option("to")}.'
            )
    return data, sentences


def _count(data: Dataset) -> int:
    return sum(len(image.objects) for _, image in data.images())


def _leave_out(data: Dataset, is_dropped: Callable[[Dataset, Object], bool]) -> Dataset:
    """The dataset without some objects, and without classes that lose all training objects.

    Objects of such a class in other splits are left out, too.
    """
    splits = _without(data.splits, lambda obj: is_dropped(data, obj))
    trained = {obj.label for image in splits['train'] for obj in image.objects if not obj.crowd}
    known = {*trained, ''}  # regions to be ignored have no class
    splits = _without(splits, lambda obj: obj.label not in known)
    classes = tuple(name for name in data.classes if name in trained)
    return replace(data, splits=splits, classes=classes)


def _without(
    splits: Mapping[Split, Sequence[Image]], is_dropped: Callable[[Object], bool]
) -> dict[Split, Sequence[Image]]:
    """The images of each split without some of their objects."""
    return {
        split: [
            replace(image, objects=tuple(obj for obj in image.objects if not is_dropped(obj)))
            for image in images
        ]
        for split, images in splits.items()
    }


def convert(
    folder: str | Path | Dataset,
    out: str | Path,
    to: str,
    task: str | None = None,
    *,
    copy: bool = False,
    lossy: bool = False,
    **options: Any,
) -> Dataset:
    """Read a folder and write it in another format.

    The folder only appears after ``out`` was read back with the same splits, classes, objects and
    maps.

    Args:
        folder: the folder of the data, or a dataset that was read.
        out: the folder to write, completely or not at all. It must not exist, or must be empty.
        to: a key of :data:`TARGETS`.
        task, **options: see :func:`anyfolder.read`; only for a folder.
        copy: whether images are copied instead of linked.
        lossy: whether objects that the format cannot hold are left out, rather than an error.

    Returns:
        The dataset that was written.

    Raises:
        InputError: as :func:`anyfolder.read` does, if the format cannot hold the data, if ``out``
            is not empty or is inside the data, or if it cannot be written.
    """
    if isinstance(folder, Dataset):
        other_task = [] if task in (None, folder.task) else ['task']
        if names := ' and '.join(map(option, [*other_task, *options])):
            raise InputError(f'the dataset was read already; give {names} to anyfolder.read.')
        data = folder
    else:
        data = read(folder, task, **options)
    return plan_conversion(data, out, to, lossy).write(copy)
