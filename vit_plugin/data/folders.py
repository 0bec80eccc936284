"""Folders of images with a folder for each class: what is in them, and which images are held out."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from vit_plugin.errors import ConfigError
from vit_plugin.files.images import IMAGE_SUFFIXES, is_image

VALIDATION = ('val', 'valid', 'validation', 'test')  # names of a folder for validation, the first that exists is taken
RUNS = 'work_dirs'  # the folder of all runs, which is no class
SHARE, SEED = 0.1, 0  # of the images of each class that are held out where there is no such folder

Item = TypeVar('Item')
Sample = tuple[str, int]  # the path of an image within the folder, with `/`, and the number of its class


class ImageFolder(NamedTuple):
    """The images of a folder.

    Attributes:
        classes: names of the classes, sorted.
        train, val: the images and their classes.
        held_out: whether ``val`` was drawn from the images for training.
        unseen: classes without an image in ``val``.
        outside: number of images that lie in no class's folder, and are left out.
    """
    classes: tuple[str, ...]
    train: list[Sample]
    val: list[Sample]
    held_out: bool
    unseen: tuple[str, ...]
    outside: int


def read_image_folder(folder: str | Path, work_dir: str | Path | None = None) -> ImageFolder:
    """List the images of ``folder/{train,val}/<class>/`` or ``folder/<class>/``.

    Without a folder for validation (``val``, ``valid``, ``validation`` or ``test``), a tenth of each class is held out,
    at least one image of each class that has two. Which images of a class these are follows from its name and its
    images alone.

    A folder ``work_dirs`` is no class.

    Raises:
        ConfigError: if there is no such folder, if it has no images or fewer than two classes, if a class has no images
            to train on, if a class for validation is not among those for training, if no class has an image to hold
            out, if a list of images cannot hold the name of one, or if ``work_dir`` lies where each folder is a class.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f'--data: there is no folder {str(folder)!r}.')
    val = next((name for name in VALIDATION if (folder / name).is_dir()), None)
    if not (folder / 'train').is_dir():
        if val and not set(_subfolders(folder)) - set(VALIDATION):
            raise ConfigError(f'--data: {str(folder)!r} has the folder {val!r} and no folder \'train\'; add it, with a '
                              'folder for each class.')
        train, val = '', None
    else:
        train = 'train'
    if work_dir:
        for part in filter(None, (train or '.', val)):
            _check_work_dir(folder / part, Path(work_dir))
    found = _images_by_class(folder, train)
    classes, outside = tuple(found), len(_images(folder / train, deep=False))
    _check_classes(folder / train, found, outside)
    if val is None:
        kept, held = {}, {}
        for name, images in found.items():
            held[name], kept[name] = hold_out(images, np.random.default_rng((SEED, zlib.crc32(os.fsencode(name)))))
        if not any(held.values()):
            raise ConfigError(f'--data: each class of {str(folder / train)!r} has one image, so that none can be held '
                              'out; add some, or a folder \'val\' next to \'train\'.')
        return _folder(classes, kept, held, True, outside)
    valid = _images_by_class(folder, val)
    foreign = sorted(name for name in valid.keys() - found.keys() if valid[name])
    if foreign:
        raise ConfigError(f'--data: {str(folder / val)!r} has images of the class {foreign[0]!r}, of which '
                          f'{str(folder / train)!r} has none; remove it, or add images to train on.')
    if not any(valid.values()):
        raise ConfigError(f'--data: {str(folder / val)!r} has no images in folders of the classes; add some, or remove '
                          'it, and a tenth of the images for training is held out.')
    return _folder(classes, found, {name: valid.get(name, []) for name in classes}, False, outside)


def _folder(classes: tuple[str, ...], train: dict[str, list[str]], val: dict[str, list[str]], held_out: bool,
            outside: int) -> ImageFolder:
    first, second = ([(image, label) for label, name in enumerate(classes) for image in part[name]]
                     for part in (train, val))
    return ImageFolder(classes, first, second, held_out, tuple(name for name in classes if not val[name]), outside)


def _check_work_dir(classes: Path, work_dir: Path) -> None:
    run = work_dir.resolve()
    if classes.resolve() in (run, *run.parents) and RUNS not in run.relative_to(classes.resolve()).parts[:1]:
        raise ConfigError(f'--work-dir: {str(work_dir)!r} lies in {str(classes)!r}, where each folder is a class; give '
                          f'another --work-dir, such as {str(classes / RUNS / "run")!r}.')


def _subfolders(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()
                  if entry.is_dir() and entry.name != RUNS and not entry.name.startswith('.'))


def _images(folder: Path, deep: bool = True) -> list[str]:
    """The images in a folder, and below it, as sorted paths within it. Links lead to no folder twice."""
    visited = {os.path.realpath(parent) for parent in folder.absolute().parents}

    def walk() -> Iterator[str]:
        for subfolder, folders, names in os.walk(folder, followlinks=True):
            real = os.path.realpath(subfolder)
            folders[:] = sorted(name for name in folders if deep and real not in visited and not name.startswith('.'))
            if real in visited:
                continue
            visited.add(real)
            yield from (Path(subfolder, name).relative_to(folder).as_posix() for name in names
                       if is_image(Path(subfolder, name)))

    return sorted(walk())


def _images_by_class(folder: Path, part: str) -> dict[str, list[str]]:
    """The images of each class, as paths within the folder."""
    found = {name: [Path(part, name, image).as_posix() for image in _images(folder / part / name)]
             for name in _subfolders(folder / part)}
    for path in (path for images in found.values() for path in images):
        if path.splitlines() != [path.strip()]:
            raise ConfigError(f'--data: the path {path!r} in {str(folder)!r} has a line break or begins with a space, '
                              'and a list of images has a path on each line; rename it.')
    return found


def hold_out(items: list[Item], generator: np.random.Generator) -> tuple[list[Item], list[Item]]:
    """The tenth of the items that is held out, at least one of two, and the others."""
    count = max(round(SHARE * len(items)), 1) if len(items) > 1 else 0
    held = set(generator.choice(len(items), count, replace=False).tolist())
    return [items[i] for i in sorted(held)], [item for i, item in enumerate(items) if i not in held]


def _check_classes(folder: Path, found: dict[str, list[str]], outside: int) -> None:
    if not any(found.values()):
        raise ConfigError(f'--data: the images in {str(folder)!r} are in no folder of a class; put those of each class '
                          'into a folder with its name.' if outside else
                          f'--data: there are no images in {str(folder)!r}; their names end in '
                          f'{", ".join(IMAGE_SUFFIXES)}, and those of each class lie in a folder with its name.')
    empty = [name for name, images in found.items() if not images]
    if empty:
        raise ConfigError(f'--data: the folder {str(folder / empty[0])!r} has no images; add some, or remove it.')
    if len(found) == 1:
        raise ConfigError(f'--data: {str(folder)!r} has one class, {next(iter(found))!r}; a classifier needs two or '
                          'more.')
