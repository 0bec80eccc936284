"""Which image a label belongs to: the one with which it shares the most specific path.

All readers use this module. A label is a file per image, or a name in a table or a JSON file. Its
address consists of its folders, without those for a kind of file (``images``, ``labels``), and of
its split. Among the images with its name, it belongs to the one

1. that is not in another split,
2. whose folder shares the most names with it, among all folders of images: if ``images/dogs``
exists, ``labels/dogs/4.txt`` belongs to no image elsewhere,
3. that has the fewest other folders. If it has some and another folder has none, the two must not
have names in common, since ``3.jpg`` would be a different image in each.

Two such images are an error that names both. :mod:`.addresses` applies the rules.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from urllib.parse import unquote

from anyfolder.pixels.image_files import IMAGE_SUFFIXES

from .addresses import Address, ImageAddresses, address_of, kinds_of
from .class_names import nfc
from .findings import Findings
from .path_text import folder_of, parts_below, stem_and_suffix
from .splits import Split

UPLOADED = re.compile('^[0-9a-f]{8}-')  # Label Studio's prefix for uploads
NUMBER = re.compile(r'([0-9]{1,18})(?:\.0+)?')  # a name that is a number, maybe as a float
# The finding of each reader that uses `match_number`.
OTHER_ZEROS = 'numbers matched to images or folders whose names have other zeros'


def _parts(path: str) -> list[str]:
    """The parts of a path with ``/``, at least one. The first part of an absolute path is ``/``."""
    parts = [part for part in path.split('/') if part not in ('', '.')] or ['']
    return ['/', *parts] if path.startswith('/') else parts


class Index:
    """Images by their names and addresses.

    Args:
        folder: the folder of the data.
        images: the paths of its images.
    """

    def __init__(self, folder: Path, images: Sequence[Path]) -> None:
        self.images = images
        self._folder, self._by_path = folder_of(folder / '_'), dict[str, Path]()
        # The name, the path and the address of each image of a stem.
        self._by_stem: dict[str, list[tuple[str, Path, Address]]] = defaultdict(list)
        self._parts = parts_below(folder)
        self._address_of_folder = cache(lambda path: address_of(self._parts(path)))
        stems_at: dict[Address, list[str]] = defaultdict(list)
        by_folder = defaultdict[str, list[tuple[str, Path]]](list)
        for path in images:
            parent, _, name = str(path).rpartition(os.sep)
            by_folder[parent].append((name, path))
            self._by_path[str(path)] = path
        self._folder_names = {nfc(part) for parent in by_folder for part in self._parts(parent)}
        kinds = {parent: kinds_of(self._parts(parent)) for parent in by_folder}
        has_image_folder = any('image' in kinds[parent] for parent in by_folder)
        for parent, files in by_folder.items():
            if has_image_folder and kinds[parent] and 'image' not in kinds[parent]:
                continue  # masks, as in VOC's folders
            address = self._address_of_folder(parent)
            keys = [nfc(name).casefold() for name, _ in files]
            stems = [stem_and_suffix(key)[0] for key in keys]
            for key, stem, (_, path) in zip(keys, stems, files, strict=True):
                self._by_stem[stem].append((key, path, address))
            stems_at[address] += stems
        self._addresses = ImageAddresses(stems_at)
        self._address_of_name = cache(self._address_in)

    def address(self, path: Path) -> Address:
        """The address of a file, which need not be an image."""
        return self._address_of_folder(folder_of(path))

    def has_image(self, stem: str) -> bool:
        """True if an image has this name, with the same suffix, another or none."""
        return bool(self._images_named(nfc(stem).casefold()))

    def _images_named(self, key: str) -> Sequence[tuple[str, Path, Address]]:
        """The images of this name, or of this name with a suffix or another suffix."""
        stem, suffix = stem_and_suffix(key)
        same_stem = self._by_stem.get(stem, ())
        if exact := [image for image in same_stem if image[0] == key]:
            return exact
        return self._by_stem.get(key, same_stem if suffix in IMAGE_SUFFIXES else ())

    def match(self, name: str, near: Path, split: Split | None = None) -> list[Path]:
        """The images that an annotation can refer to: one, none, or equally good ones.

        If no image has this suffix, or the name has none, images with other suffixes match.

        Args:
            name: the name as written, maybe with folders of another machine, backslashes, or as a
                Label Studio URL.
            near: the path of the annotation.
            split: the split that the name of the annotation file states, if any.
        """
        # ?d= precedes the path in the URL of a file in Label Studio's storage.
        *folders, base = _parts(nfc(name.replace('\\', '/').replace('?d=', '/')))
        if folders and folders[0] in ('http:', 'https:'):
            base = base.partition('?')[0]  # without the query of a URL
        if '%' in base and not self.has_image(base):
            *folders, base = _parts(nfc(unquote('/'.join([*folders, base]))))
        label_folder = folder_of(near)
        # A bare name in a table at the top can be an image in any folder.
        if folders or label_folder != self._folder:
            for start in (label_folder, self._folder):
                path = os.path.join(start, *folders, base) if folders else f'{start}{os.sep}{base}'
                if exact := self._by_path.get(path):
                    return [exact]
        key = base.casefold()
        candidates = self._images_named(key) or self._images_named(UPLOADED.sub('', key))
        if not candidates:
            return []
        label = self._address_of_name(tuple(folders), label_folder, split)
        fitting = self._best_matches(label, candidates)
        if len(fitting) == 1:
            return fitting
        same_case = [path for path in fitting if base in (nfc(path.name), nfc(path.stem))]
        return same_case or fitting

    def match_first(self, names: Iterable[str], near: Path) -> list[Path]:
        """The images of the first of several possible names that any image has."""
        return next(filter(None, (self.match(name, near) for name in names)), [])

    def match_number(self, name: str, near: Path, split: Split | None = None) -> list[Path]:
        """The images whose name is this number with other zeros: ``0007.png`` for 7 and 7.0.

        Spreadsheets turn names into numbers. Empty if images of the number have several names, such
        as ``07`` and ``007``.

        Args:
            name, near, split: see :meth:`match`.
        """
        number = NUMBER.fullmatch(name)
        stems = self._numbered.get(int(number[1]), ()) if number else ()
        return self.match(min(stems), near, split) if len(stems) == 1 else []

    @cached_property
    def _numbered(self) -> dict[int, set[str]]:
        """The image names that are numbers, by number."""
        stems = defaultdict[int, set[str]](set)
        for stem in self._by_stem:
            if number := NUMBER.fullmatch(stem):
                stems[int(number[1])].add(stem)
        return stems

    def _address_in(
        self, folders: tuple[str, ...], label_folder: str, split: Split | None
    ) -> Address:
        """The address of a name with these folders, in a file with this folder and split.

        The split of the name takes precedence over that of the file, and this over its folder's.
        """
        # A name may have folders as in a URL.
        decoded = [name if name in self._folder_names else nfc(unquote(name)) for name in folders]
        in_name, in_folder = address_of(decoded), self._address_of_folder(label_folder)
        splits = self._addresses.splits
        stated = next((one for one in (in_name.split, split) if one in splits), None)
        return Address(stated or in_folder.split, in_folder.folders | in_name.folders)

    def _best_matches(
        self, label: Address, images: Sequence[tuple[str, Path, Address]]
    ) -> list[Path]:
        """The images that match an address best."""
        if same := [path for _, path, address in images if address == label]:
            return same  # fast even among thousands of one name
        fitting = self._addresses.best(label, tuple(address for _, _, address in images))
        return [path for _, path, address in images if address in fitting]


def single_match(
    images: Sequence[Path], file: Path, findings: Findings, name: str = ''
) -> Path | None:
    """The only image among those that a label file, or a name in it, can refer to.

    Several are rejected. None without an image.
    """
    if len(images) > 1:
        findings.reject(
            'labels match several images',
            'add the folder to each name, or rename the images uniquely',
            f'{images[0]} and {images[1]} by {f"{name!r} of {file}" if name else file}',
        )
    return images[0] if len(images) == 1 else None
