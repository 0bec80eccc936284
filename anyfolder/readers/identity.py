"""Which image a label belongs to: the one with which it shares the most specific path.

All readers use this module. A label is a file per image, or a name in a table or a JSON file. Its
address consists of its folders, without those for a kind of file (``images``, ``labels``), and of
its split. Among the images with its name, it belongs to the one

1. that is not in another split,
2. that shares as many folders with it as any folder of images does: if ``images/dogs`` exists,
``labels/dogs/4.txt`` belongs to no image elsewhere,
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

# Lower-case folder names for a kind of file, which do not identify an image. 'other' is for
# instance masks, and for masks drawn over images.
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
NUMBER = re.compile(r'([0-9]{1,18})(?:\.0+)?')  # the number of an image, maybe as a float
OTHER_ZEROS = 'numbers matched to images or folders whose names have other zeros'


class Address(NamedTuple):
    """The split of a file, and the folder names that distinguish it from others."""

    split: Split | None
    folders: frozenset[str]

    def shared(self, other: 'Address') -> int:
        """The number of common names, including the split; -1 if the splits differ."""
        if self.split and other.split and self.split != other.split:
            return -1
        return len(self.folders & other.folders) + bool(self.split and other.split)

    def apart(self, other: 'Address') -> int:
        """The number of names that only one address has."""
        return len(self.folders ^ other.folders) + (self.split != other.split)


def address_of(folders: Iterable[str], split: Split | None = None) -> Address:
    """The address of folders from the outermost one on; a given split takes precedence."""
    names = set()
    for folder in folders:
        if part := split_of(folder):
            split = split or part
        else:
            name = nfc(folder).casefold()
            words = [] if name in ANY_KIND else re.split('[ _-]', name)
            names.add(' '.join(word for word in words if word not in ANY_KIND))
    return Address(split, frozenset(names - {'', '.', '..'}))


def kinds_of(folders: Iterable[str]) -> set[str]:
    """The keys of :data:`KINDS` that the names of folders stand for."""
    names = {folder.casefold() for folder in folders}
    return {kind for kind, known in FOLDER_KINDS.items() if not names.isdisjoint(known)}


def folder_of(path: Path) -> str:
    """The folder of a file. Data has too many for a path of each."""
    return str(path).rpartition(os.sep)[0]


def stem_and_suffix(name: str) -> tuple[str, str]:
    """The name of a file without its suffix, and this with its dot. ``splitext`` is slower."""
    stem, dot, suffix = name.rpartition('.')
    return (stem, dot + suffix) if stem else (name, '')


def parts_below(folder: Path) -> Callable[[str], tuple[str, ...]]:
    """A function that returns the parts of a folder's path below this one."""
    return cache(lambda place: Path(place).relative_to(folder).parts)


def _parts(path: str) -> list[str]:
    """The parts of a path with ``/``, at least one."""
    parts = [part for part in path.split('/') if part not in ('', '.')]
    return ['/'] * path.startswith('/') + (parts or [''])


class Pairs(NamedTuple):
    """Matches, unmatched label files, and images with conflicting label files."""

    image_of: dict[Path, Path]
    lost: list[Path]
    unclear: set[Path]


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
        self._own = cache(lambda place: address_of(self._parts(place)))
        by_folder = defaultdict[str, list[tuple[str, Path]]](list)
        for path in images:
            place, _, name = str(path).rpartition(os.sep)
            by_folder[place].append((name, path))
            self._by_path[str(path)] = path
        kinds = {place: kinds_of(self._parts(place)) for place in by_folder}
        known = any('image' in own for own in kinds.values())
        for place, found in by_folder.items():
            if known and kinds[place] and 'image' not in kinds[place]:
                continue  # masks, as in VOC's folders
            address = self._own(place)
            keys = [nfc(name).casefold() for name, _ in found]
            stems = [stem_and_suffix(key)[0] for key in keys]
            for key, stem, (_, path) in zip(keys, stems, found, strict=True):
                self._by_stem[stem].append((key, path, address))
            self._stems[address] += stems
        self._splits = {place.split for place in self._stems} - {None}
        self._nearest, self._fitting_places = cache(self._nearest_to), cache(self._fitting_of)
        self._said = cache(self._address_in)

    def has(self, stem: str) -> bool:
        """True if an image has this name, with the same suffix, another or none."""
        return bool(self._named(nfc(stem).casefold()))

    def _named(self, key: str) -> Sequence[tuple[str, Path, Address]]:
        """The images of this name, or of this name with a suffix or another suffix."""
        stem, suffix = stem_and_suffix(key)
        alike = self._by_stem.get(stem, ())
        others = alike if suffix in IMAGE_SUFFIXES else ()
        return [found for found in alike if found[0] == key] or self._by_stem.get(key, others)

    def match(self, name: str, near: Path, split: Split | None = None) -> list[Path]:
        """The images that an annotation can refer to: one, none, or equally good ones.

        If no image has this suffix, or the name has none, other suffixes count.

        Args:
            name: the name as written, maybe with folders of another machine, backslashes, or as a
                Label Studio URL.
            near: the path of the annotation.
            split: the split that the name of the annotation file states, if any.
        """
        *folders, said = _parts(nfc(name.replace('\\', '/').replace('?d=', '/')))
        if folders and folders[0] in ('http:', 'https:'):
            said = said.partition('?')[0]  # without the query of a URL
        if '%' in said and not self.has(said):
            *folders, said = _parts(nfc(unquote('/'.join([*folders, said]))))
        place = folder_of(near)
        # A bare name in a table at the top can be an image in any folder.
        for start in (place, self._folder) if folders or place != self._folder else ():
            path = os.path.join(start, *folders, said) if folders else f'{start}{os.sep}{said}'
            if exact := self._by_path.get(path):
                return [exact]
        found = self._named(said.casefold()) or self._named(UPLOADED.sub('', said.casefold()))
        if not found:
            return []
        fitting = self._fitting(self._said(tuple(folders), place, split), found)
        if len(fitting) == 1:
            return fitting
        same = [path for path in fitting if said in (nfc(path.name), nfc(path.stem))]
        return same or fitting

    def match_number(self, name: str, near: Path, split: Split | None = None) -> list[Path]:
        """The images whose name is this number with other zeros: ``0007.png`` for 7 and 7.0.

        Spreadsheets turn names into numbers. None if images of the number have several names, such
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
        found = defaultdict[int, set[str]](set)
        for stem in self._by_stem:
            if number := NUMBER.fullmatch(stem):
                found[int(number[1])].add(stem)
        return found

    def pair(self, labels: Mapping[Path, Sequence[str]], findings: Findings) -> Pairs:
        """The image of each label file. If there are several for an image, the nearest is read.

        Args:
            labels: the files, and the possible names of their image, the likeliest first.
            findings: collects ambiguities.
        """
        pairs = Pairs({}, [], set())
        files_of: dict[Path, list[Path]] = {}
        for file, names in labels.items():
            found = next(filter(None, (self.match(name, file) for name in names)), [])
            if image := self.only(found, file, findings):
                files_of.setdefault(image, []).append(file)
            elif not found:
                pairs.lost.append(file)
        for image, files in files_of.items():
            if len(files) == 1:
                pairs.image_of[files[0]] = image
                continue
            ranks = {file: self._distance(file, image) for file in files}
            first, *others = sorted(files, key=lambda file: ranks[file])
            equal = [file for file in others if ranks[file] == ranks[first]]
            if equal and not cmp(first, equal[0], shallow=False):
                what, remedy = 'images have two label files', 'keep one, or merge both'
                findings.reject(what, remedy, f'{first} and {equal[0]}')
                pairs.unclear.add(image)
                continue
            pairs.image_of[first] = image
            findings.warn_all(
                'label files left out, since a nearer one exists for the image',
                (f'{other}, not {first}' for other in others),
            )
        return pairs

    def only(
        self, found: Sequence[Path], file: Path, findings: Findings, name: str = ''
    ) -> Path | None:
        """The image that a label file, or a name in it, refers to, if it is unique.

        Several are rejected.
        """
        if len(found) > 1:
            findings.reject(
                'labels match several images',
                'add the folder to each name, or rename the images uniquely',
                f'{found[0]} and {found[1]} by {f"{name!r} of {file}" if name else file}',
            )
        return found[0] if len(found) == 1 else None

    def _address_in(self, folders: tuple[str, ...], place: str, split: Split | None) -> Address:
        """The address of a name with these folders, in a file with this folder and split."""
        written, own = address_of(folders), self._own(place)
        stated = next((part for part in (written.split, split) if part in self._splits), None)
        return Address(stated or own.split, own.folders | written.folders)

    def _distance(self, file: Path, image: Path) -> tuple[bool, int, int]:
        label, place = self._own(folder_of(file)), self._own(folder_of(image))
        own = nfc(file.stem) in (nfc(image.stem), nfc(image.name))
        return not own, -label.shared(place), label.apart(place)

    def _fitting(self, label: Address, found: Sequence[tuple[str, Path, Address]]) -> list[Path]:
        """The images that match an address best, by the rule of this module."""
        if own := [path for _, path, place in found if place == label]:
            return own  # fast even among thousands of one name
        fitting = self._fitting_places(label, tuple(place for _, _, place in found))
        return [path for _, path, place in found if place in fitting]

    def _fitting_of(self, label: Address, places: Sequence[Address]) -> list[Address]:
        most, least, nearest = self._nearest(label)
        fewest = min(
            (label.apart(place) for place in places if label.shared(place) == most), default=None
        )
        return [
            place
            for place in places
            if (label.shared(place), label.apart(place)) == (max(most, 0), fewest)
            and (fewest == least or not self._have_common_names(nearest, place))
        ]

    def _nearest_to(self, label: Address) -> tuple[int, int, tuple[Address, ...]]:
        """The most that a folder of images shares with a label, and the nearest such folder."""
        if label in self._stems:
            return label.shared(label), 0, (label,)
        ranks = {place: (label.shared(place), -label.apart(place)) for place in self._stems}
        most, least = max(ranks.values())
        return most, -least, tuple(place for place in ranks if ranks[place] == (most, least))

    def _have_common_names(self, places: Iterable[Address], other: Address) -> bool:
        return any(not {*self._stems[place]}.isdisjoint(self._stems[other]) for place in places)
