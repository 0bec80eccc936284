"""The files that match the patterns of a layout, and which of them belong together."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from anyfolder.errors import InputError
from anyfolder.pixels.image_files import IMAGE_SUFFIXES
from anyfolder.readers.class_names import nfc
from anyfolder.readers.findings import Findings

from .path_pattern import PathPattern

Fields = Mapping[str, str]


class PlacedFile(NamedTuple):
    """A file that a pattern matches.

    Attributes:
        path: the file.
        place: the path below the folder of the layout, with ``/``.
        fields: the fields of the pattern in the path.
    """

    path: Path
    place: str
    fields: Fields


def stem_of(name: str) -> str:
    """The name of an image without its suffix in NFC, for comparisons."""
    stem, suffix = os.path.splitext(nfc(name))
    return stem if suffix.lower() in IMAGE_SUFFIXES else nfc(name)


def matching(
    folder: Path, paths: Iterable[Path], patterns: Sequence[PathPattern]
) -> Iterator[PlacedFile]:
    """The files below a folder that match a pattern, each with its first such pattern."""
    start = os.path.join(folder, '')
    for path in paths:
        if not str(path).startswith(start):  # outside the folder of the layout, which is further in
            continue
        place = str(path)[len(start) :].replace(os.sep, '/')
        found = (pattern.match(place) for pattern in patterns)
        fields = next((fields for fields in found if fields is not None), None)
        if fields is not None:
            yield PlacedFile(path, place, fields)


def _agree(one: Fields, other: Fields) -> bool:
    """Whether the common fields of two files are equal."""
    return all(other[name] == value for name, value in one.items() if name in other)


class LayoutImages:
    """The images of a layout, found by their names and by their fields.

    Args:
        images: the images with their fields.
    """

    def __init__(self, images: Iterable[PlacedFile]) -> None:
        self.of_path = {image.path: image for image in images}
        self._by_stem: dict[str, list[PlacedFile]] = defaultdict(list)
        for image in self.of_path.values():
            self._by_stem[stem_of(image.path.name)].append(image)
        self._by_names: dict[frozenset[str], list[PlacedFile]] = defaultdict(list)
        for image in self.of_path.values():
            self._by_names[frozenset(image.fields)].append(image)
        self._of_values = cache(self._indexed)

    def of_file(self, file: PlacedFile) -> list[PlacedFile]:
        """The images whose fields equal those of a label file, as far as both have them.

        Raises:
            InputError: if they have no field in common.
        """
        shared = {names: names.intersection(file.fields) for names in self._by_names}
        if not any(shared.values()):
            raise InputError(
                f'{str(file.path)!r} and the images have no field in common that matches them; '
                'write {name} into images and labels, or image into columns.'
            )
        return [
            image
            for names, common in shared.items()
            if common
            for image in self._of_values(names, common).get(_values(file.fields, common), ())
        ]

    def _indexed(
        self, names: frozenset[str], common: frozenset[str]
    ) -> dict[tuple[str, ...], list[PlacedFile]]:
        found: dict[tuple[str, ...], list[PlacedFile]] = defaultdict(list)
        for image in self._by_names[names]:
            found[_values(image.fields, common)].append(image)
        return found

    def named(self, name: str, file: PlacedFile) -> Sequence[PlacedFile]:
        """The images that a name in a file can refer to: those with the most common parent folders.

        Args:
            name: with folders or without, with a suffix or without.
            file: the file with the name. Its images have its fields, and if several images have the
                name, those in its folder count.
        """
        *folders, own = nfc(name.replace('\\', '/')).split('/')
        found = self._by_stem.get(own) or self._by_stem.get(stem_of(own)) or ()
        found = [image for image in found if _agree(image.fields, file.fields)]
        if len(found) > 1:
            found = _most(found, [_shared_end(folders, image) for image in found])
        if len(found) > 1:
            found = _most(found, [image.path.name == own for image in found])
        if len(found) > 1:
            found = _most(found, [image.path.parent == file.path.parent for image in found])
        return found

    def resolve(
        self, name: str, file: PlacedFile, findings: Findings, what: str = 'labels', where: str = ''
    ) -> Path | None:
        """The image that a file names. If none or several match, that is noted or rejected.

        Args:
            name, file: see :meth:`named`.
            findings: collects ambiguities.
            what: the items that are left out, in the plural.
            where: the position of the name in the file.
        """
        found, place = self.named(name, file) if name else (), where or str(file.path)
        if not found:
            findings.lose(what, file.path, f'{name!r}, {place}' if where else name)
        elif len(found) > 1:
            findings.reject(
                f'{what} match several images',
                'say the folder of each',
                f'{name!r} in {place}: {found[0].path} and {found[1].path}',
            )
        return found[0].path if len(found) == 1 else None


def _values(fields: Fields, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(fields[name] for name in sorted(names))


def _most(found: Sequence[PlacedFile], ranks: Sequence[int]) -> list[PlacedFile]:
    most = max(ranks)
    return [image for image, rank in zip(found, ranks, strict=True) if rank == most]


def _shared_end(folders: Sequence[str], image: PlacedFile) -> int:
    """The number of parent folders that a path has in common with that of an image."""
    own = image.place.split('/')[-2::-1]
    pairs = zip(reversed(folders), own, strict=False)
    return next(
        (i for i, (one, other) in enumerate(pairs) if one != other), min(len(folders), len(own))
    )
