"""Which image a label belongs to: the one with which it shares the most specific path.

All readers use this module. A label is a file per image, or a name in a table or a JSON file. Its
address consists of its folders, without those for a kind of file (``images``, ``labels``), and of
its split. Among the images with its name, it belongs to the one

1. that is not in another split,
2. whose folder shares the most names with it, among all folders of images: if ``images/dogs``
exists, ``labels/dogs/4.txt`` belongs to no image elsewhere,
3. that has the fewest other folders. If it has some and another folder has none, the two must not
have names in common, since ``3.jpg`` would be a different image in each.

Two such images are an error that names both, and so are two equally near label files.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from filecmp import cmp
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from anyfolder.pixels.image_files import IMAGE_SUFFIXES

from .class_names import nfc
from .findings import Findings
from .splits import Split, split_of

# Lower-case folder names for a kind of file, which do not identify an image. 'other' is for masks
# of instances, and for masks drawn over images.
FOLDER_KINDS = {
    kind: {*names.split()}
    for kind, names in dict(
        image='images image imgs img img_dir jpegimages photos pictures frames input inputs '
        'leftimg8bit images_png',
        mask='masks mask annotations annotation annot annots ann anns ann_dir labels label '
        'segmentationclass segmentationclasspng segmentation groundtruth ground_truth gt targets '
        'gtfine gtcoarse segmentationclassaug masks_png masks_machine',
        label='json jsons xml xmls txt bboxes boxes',
        other='segmentationobject segmentationclassvisualization segmentationobjectvisualization '
        'masks_human',
    ).items()
}
ANY_KIND = set().union(*FOLDER_KINDS.values())
UPLOADED = re.compile('^[0-9a-f]{8}-')  # Label Studio's prefix for uploads
NUMBER = re.compile(r'([0-9]{1,18})(?:\.0+)?')  # a name that is a number, maybe as a float
# The finding of each reader that uses `match_number`.
OTHER_ZEROS = 'numbers matched to images or folders whose names have other zeros'


class Address(NamedTuple):
    """The split of a file, and the folder names that distinguish it from others."""

    split: Split | None
    folders: frozenset[str]

    def count_shared(self, other: 'Address') -> int:
        """The number of common names, including the split; -1 if the splits differ."""
        if self.split and other.split and self.split != other.split:
            return -1
        common = len(self.folders & other.folders)
        return common + 1 if self.split and other.split else common

    def count_different(self, other: 'Address') -> int:
        """The number of names that only one address has, including the split."""
        different = len(self.folders ^ other.folders)
        return different + 1 if self.split != other.split else different


def address_of(folders: Iterable[str], split: Split | None = None) -> Address:
    """The address of folders from the outermost one on; a given split takes precedence."""
    names = set()
    for folder in folders:
        if folder_split := split_of(folder):
            split = split or folder_split
        else:
            name = nfc(folder).casefold()
            words = [] if name in ANY_KIND else re.split('[ _-]', name)
            names.add(' '.join(word for word in words if word not in ANY_KIND))
    return Address(split, frozenset(names - {'', '.', '..'}))


def kinds_of(folders: Iterable[str]) -> set[str]:
    """The keys of :data:`FOLDER_KINDS` that the names of folders stand for."""
    names = {folder.casefold() for folder in folders}
    return {kind for kind, known in FOLDER_KINDS.items() if not names.isdisjoint(known)}


def folder_of(path: Path) -> str:
    """The folder of a file as text: data sets have too many files to make a ``Path`` of each."""
    return str(path).rpartition(os.sep)[0]


def stem_and_suffix(name: str) -> tuple[str, str]:
    """A file name without its suffix, and the suffix with its dot. ``splitext`` is slower."""
    stem, dot, suffix = name.rpartition('.')
    return (stem, dot + suffix) if stem else (name, '')


def parts_below(folder: Path) -> Callable[[str], tuple[str, ...]]:
    """A function that returns the parts of a path below a folder."""
    return cache(lambda path: Path(path).relative_to(folder).parts)


def _parts(path: str) -> list[str]:
    """The parts of a path with ``/``, at least one. The first part of an absolute path is ``/``."""
    parts = [part for part in path.split('/') if part not in ('', '.')] or ['']
    return ['/', *parts] if path.startswith('/') else parts


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
        self._stems: dict[Address, list[str]] = defaultdict(list)
        self._parts = parts_below(folder)
        self._address_of_folder = cache(lambda path: address_of(self._parts(path)))
        by_folder = defaultdict[str, list[tuple[str, Path]]](list)
        for path in images:
            parent, _, name = str(path).rpartition(os.sep)
            by_folder[parent].append((name, path))
            self._by_path[str(path)] = path
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
            self._stems[address] += stems
        self._splits = {address.split for address in self._stems} - {None}
        self._nearest = cache(self._nearest_to)
        self._best_addresses = cache(self._best_addresses_for)
        self._address_of_name = cache(self._address_in)

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
        fitting = self._best_matches(
            self._address_of_name(tuple(folders), label_folder, split), candidates
        )
        if len(fitting) == 1:
            return fitting
        same_case = [path for path in fitting if base in (nfc(path.name), nfc(path.stem))]
        return same_case or fitting

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

    def pair(self, labels: Mapping[Path, Sequence[str]], findings: Findings) -> Pairs:
        """The image of each label file. If there are several for an image, the nearest is read.

        Args:
            labels: the files, and the possible names of their image, the likeliest first.
            findings: collects ambiguities.
        """
        pairs = Pairs(image_of={}, unmatched=[], conflicting=set())
        files_of: dict[Path, list[Path]] = {}
        for file, names in labels.items():
            images = next(filter(None, (self.match(name, file) for name in names)), [])
            if image := self.single_match(images, file, findings):
                files_of.setdefault(image, []).append(file)
            elif not images:
                pairs.unmatched.append(file)
        for image, files in files_of.items():
            if len(files) == 1:
                pairs.image_of[files[0]] = image
                continue
            ranks = {file: self._distance(file, image) for file in files}
            first, *others = sorted(files, key=lambda file: ranks[file])
            equal = [file for file in others if ranks[file] == ranks[first]]
            different = next((file for file in equal if not cmp(first, file, shallow=False)), None)
            if different:
                what, remedy = 'images have two label files', 'keep one, or merge both'
                findings.reject(what, remedy, f'{first} and {different}')
                pairs.conflicting.add(image)
                continue
            pairs.image_of[first] = image
            findings.warn_all(
                'label files left out, since a nearer one exists for the image',
                (f'{other}, not {first}' for other in others if other not in equal),
            )
            findings.warn_all(
                'label files left out, since another one of the image is equal',
                (f'{other}, not {first}' for other in equal),
            )
        return pairs

    def single_match(
        self, images: Sequence[Path], file: Path, findings: Findings, name: str = ''
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

    def _address_in(
        self, folders: tuple[str, ...], label_folder: str, split: Split | None
    ) -> Address:
        """The address of a name with these folders, in a file with this folder and split.

        The split of the name takes precedence over that of the file, and this over its folder's.
        """
        in_name, in_folder = address_of(folders), self._address_of_folder(label_folder)
        stated = next((one for one in (in_name.split, split) if one in self._splits), None)
        return Address(stated or in_folder.split, in_folder.folders | in_name.folders)

    def _distance(self, file: Path, image: Path) -> tuple[bool, int, int]:
        """How far a label file is from an image, as a key to sort by.

        Files with the exact name of the image come first, then those that share the most folders.
        """
        file_address = self._address_of_folder(folder_of(file))
        image_address = self._address_of_folder(folder_of(image))
        has_name = nfc(file.stem) in (nfc(image.stem), nfc(image.name))
        shared = file_address.count_shared(image_address)
        return not has_name, -shared, file_address.count_different(image_address)

    def _best_matches(
        self, label: Address, images: Sequence[tuple[str, Path, Address]]
    ) -> list[Path]:
        """The images that match an address best, by the rules of this module."""
        if same := [path for _, path, address in images if address == label]:
            return same  # fast even among thousands of one name
        fitting = self._best_addresses(label, tuple(address for _, _, address in images))
        return [path for _, path, address in images if address in fitting]

    def _best_addresses_for(self, label: Address, addresses: Sequence[Address]) -> list[Address]:
        """The addresses of images that match that of a label best, by the rules of this module."""
        max_shared, min_different, nearest = self._nearest(label)
        fewest = min(
            (
                label.count_different(address)
                for address in addresses
                if label.count_shared(address) == max_shared
            ),
            default=None,
        )
        # Rules 2 and 3 of this module. The maximum with 0 is rule 1: the count of an address in
        # another split is -1.
        return [
            address
            for address in addresses
            if (label.count_shared(address), label.count_different(address))
            == (max(max_shared, 0), fewest)
            and (fewest == min_different or not self._have_common_names(nearest, address))
        ]

    def _nearest_to(self, label: Address) -> tuple[int, int, tuple[Address, ...]]:
        """The addresses of images that are nearest to a label, with their two counts.

        Nearest are the addresses that share the most names with it, and among these the ones with
        the fewest different names. Returned are the number of shared names, that of different
        names, and these addresses.
        """
        if label in self._stems:
            return label.count_shared(label), 0, (label,)
        ranks = {
            address: (label.count_shared(address), -label.count_different(address))
            for address in self._stems
        }
        best = max(ranks.values())
        shared, minus_different = best
        return (
            shared,
            -minus_different,
            tuple(address for address in ranks if ranks[address] == best),
        )

    def _have_common_names(self, addresses: Iterable[Address], other: Address) -> bool:
        """Whether images at one of the addresses have the name of an image at the other."""
        names = self._stems[other]
        return any(not {*self._stems[address]}.isdisjoint(names) for address in addresses)
