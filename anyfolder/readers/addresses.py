"""The address of a file: its split, and its folders without those for a kind of file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from .class_names import nfc
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


class ImageAddresses:
    """The addresses of images, and which of them fit a label, by the rules of :mod:`.identity`.

    Args:
        stems: the names of the images at each address, without suffixes.
    """

    def __init__(self, stems: Mapping[Address, Sequence[str]]) -> None:
        self._stems = stems
        self.splits = {address.split for address in stems} - {None}
        self._nearest = cache(self._nearest_to)
        self.best = cache(self._best)

    def _best(self, label: Address, addresses: Sequence[Address]) -> list[Address]:
        """The given addresses that match that of a label best."""
        max_shared, min_different, nearest = self._nearest(label)
        fewest = min(
            (
                label.count_different(address)
                for address in addresses
                if label.count_shared(address) == max_shared
            ),
            default=None,
        )
        # Rules 2 and 3. The maximum with 0 is rule 1: in another split, the count is -1.
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
