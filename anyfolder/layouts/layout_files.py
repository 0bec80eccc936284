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
from .patterns_of_files import shared_length

Fields = Mapping[str, str]


class MatchedFile(NamedTuple):
    """A file that a pattern of a layout matches.

    Attributes:
        path: the file.
        relative_path: the path below the folder of the layout, with ``/``.
        fields: the text of each field in the path: ``{'name': '1'}`` for the pattern
            ``images/{name}.jpg`` and the file ``images/1.jpg``.
    """

    path: Path
    relative_path: str
    fields: Fields


def stem_of(name: str) -> str:
    """The name of an image without its suffix, in composed Unicode (NFC), for comparisons.

    Other suffixes stay, since the name may come from a list and have a dot: ``frame.0001``.
    """
    stem, suffix = os.path.splitext(nfc(name))
    return stem if suffix.lower() in IMAGE_SUFFIXES else nfc(name)


def matching(
    folder: Path, paths: Iterable[Path], patterns: Sequence[PathPattern]
) -> Iterator[MatchedFile]:
    """The files below a folder that match a pattern, with the fields of the first one that fits."""
    start = os.path.join(folder, '') if folder != Path() else ''  # paths below . begin without ./
    for path in paths:
        if not str(path).startswith(start):  # the layout may describe only a subfolder
            continue
        relative_path = str(path)[len(start) :].replace(os.sep, '/')
        matches = (pattern.match(relative_path) for pattern in patterns)
        fields = next((match for match in matches if match is not None), None)
        if fields is not None:
            yield MatchedFile(path, relative_path, fields)


def _agree(first: Fields, second: Fields) -> bool:
    """Whether the common fields of two files are equal."""
    return all(second[name] == value for name, value in first.items() if name in second)


class LayoutImages:
    """The images of a layout, found by their names and by their fields.

    Args:
        images: the images with their fields.

    Attributes:
        of_path: each image by its path.
    """

    def __init__(self, images: Iterable[MatchedFile]) -> None:
        self.of_path = {image.path: image for image in images}
        self._by_stem: dict[str, list[MatchedFile]] = defaultdict(list)
        for image in self.of_path.values():
            self._by_stem[stem_of(image.path.name)].append(image)
        self._by_field_names: dict[frozenset[str], list[MatchedFile]] = defaultdict(list)
        for image in self.of_path.values():
            self._by_field_names[frozenset(image.fields)].append(image)
        # One index for each set of common fields, since label files with the same pattern share it.
        self._images_by_values = cache(self._index_by_values)

    def of_file(self, file: MatchedFile) -> list[MatchedFile]:
        """The images whose fields equal those of a label file, as far as both have them.

        Raises:
            InputError: if they have no field in common.
        """
        shared = {names: names.intersection(file.fields) for names in self._by_field_names}
        if not any(shared.values()):
            raise InputError(
                f'{str(file.path)!r} and the images have no field in common that matches them; '
                'write {name} into images and labels, or image into columns.'
            )
        return [
            image
            for names, common in shared.items()
            if common
            for image in self._images_by_values(names, common).get(
                _field_values(file.fields, common), ()
            )
        ]

    def _index_by_values(
        self, names: frozenset[str], common: frozenset[str]
    ) -> dict[tuple[str, ...], list[MatchedFile]]:
        """The images with exactly the fields ``names``, by their values of the common fields.

        A key has the values in the order of the sorted field names, see :func:`_field_values`.
        """
        images: dict[tuple[str, ...], list[MatchedFile]] = defaultdict(list)
        for image in self._by_field_names[names]:
            images[_field_values(image.fields, common)].append(image)
        return images

    def named(self, name: str, file: MatchedFile) -> Sequence[MatchedFile]:
        """The images that a name in a file can refer to.

        If several images have the name, they are narrowed down in three steps, each only while
        several remain: to the images that share the most parent folders with the name, to those
        with its suffix, and to those in the folder of the file.

        Args:
            name: the name of an image, with folders or without, with a suffix or without.
            file: the file that has this name in it. An image must have the same values in the
                fields that both have.
        """
        *folders, base = nfc(name.replace('\\', '/')).split('/')
        candidates = self._by_stem.get(base) or self._by_stem.get(stem_of(base)) or ()
        candidates = [image for image in candidates if _agree(image.fields, file.fields)]
        if len(candidates) > 1:
            shared = [_shared_folders(folders, image) for image in candidates]
            most = max(shared)
            candidates = [
                image for image, count in zip(candidates, shared, strict=True) if count == most
            ]
        if len(candidates) > 1:
            same_name = [image for image in candidates if nfc(image.path.name) == base]
            candidates = same_name or candidates
        if len(candidates) > 1:
            same_folder = [image for image in candidates if image.path.parent == file.path.parent]
            candidates = same_folder or candidates
        return candidates

    def resolve(
        self,
        name: str,
        file: MatchedFile,
        findings: Findings,
        what: str = 'labels',
        where: str = '',
    ) -> Path | None:
        """The image of a name in a file.

        A name without an image is noted in the findings, one with several images is rejected.

        Args:
            name, file: see :meth:`named`.
            findings: collects ambiguities.
            what: the items that are left out, in the plural.
            where: the position of the name in the file, for messages; empty: the file.
        """
        matches, position = self.named(name, file) if name else (), where or str(file.path)
        if not matches:
            findings.warn_missing_image(what, file.path, f'{name!r}, {position}' if where else name)
        elif len(matches) > 1:
            findings.reject(
                f'{what} match several images',
                'say the folder of each',
                f'{name!r} in {position}: {matches[0].path} and {matches[1].path}',
            )
        return matches[0].path if len(matches) == 1 else None


def _field_values(fields: Fields, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(fields[name] for name in sorted(names))


def _shared_folders(folders: Sequence[str], image: MatchedFile) -> int:
    """The number of parent folders, from the innermost on, that agree with those of an image."""
    *image_folders, _ = nfc(image.relative_path).split('/')
    return shared_length(folders[::-1], image_folders[::-1])
