"""Folders of images and maps of depth: which belong together, and what range they have."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from anyfolder.errors import InputError
from anyfolder.pixels.depth_maps import DEPTH_SUFFIXES, read_depth
from anyfolder.sampling import evenly_spaced
from anyfolder.wording import option

from .division import divide
from .findings import Findings
from .identity import KINDS, Index
from .image_tree import Tree, read_sizes, warn_unused
from .listing import Listing
from .pixel_maps import probe_maps
from .records import Records
from .split_lists import read_lists
from .splits import without_split

# The word for depth in a name, and what the name of its image may have in its place: nothing, or
# rgb_00000.jpg of NYU's sync_depth_00000.png, or image of KITTI's groundtruth_depth.
WORD = re.compile(r'(^|[_-])((sync|groundtruth|gt)_)?depth(_?maps?)?(?=[_-]|$)', re.IGNORECASE)
IMAGE_WORDS = ('', 'rgb', 'image', 'img', 'color')
KITTI = re.compile(r'proj_depth|groundtruth_depth')
MILLIMETERS, KITTIS = 1e-3, 1 / 256  # meters of a value in PNG, which has integers alone
MOST_MAPS = 500  # of which the values are read
FARTHEST = 500.0  # meters, of a median that is believed


class DepthRange(NamedTuple):
    """What is known of the depth in a folder.

    Attributes:
        scale: meters of a value of 1.
        nearest, median, farthest: of known pixels, in meters.
        maps: number of maps of which the values were read.
    """

    scale: float
    nearest: float
    median: float
    farthest: float
    maps: int


def read_depth_folder(
    tree: Tree, scale: float | None = None, skip_invalid: bool = False, check_all: bool = False
) -> tuple[Listing, DepthRange]:
    """Read images and their maps of depth.

    A map lies in a folder with ``depth`` in its name, or of annotations, or beside its image, and
    has the name of its image, maybe with a word for depth. NYU's and KITTI's layouts are such.

    Args:
        tree: the files of the folder.
        scale: meters of a value of 1. None: 1 / 256 in KITTI's layout, else a millimeter in PNG,
            and a meter in other files.
        skip_invalid: whether maps that cannot be right are left out, rather than an error.
        check_all: whether all maps are read, rather than 500.

    Raises:
        InputError: if there are no pairs, if a map cannot be read or has another size than its
            image, or if the values are no depth in meters.
    """
    findings = Findings(skip_invalid)
    maps = {path: _names_of_image(path) for path in _maps_of(tree)}
    images = [path for path in tree.images if path not in maps]
    pairs = Index(tree.folder, images).pair(maps, findings)
    if not pairs.image_of:
        raise InputError(
            f"{str(tree.folder)!r} must have images, and maps of depth in a folder 'depth' "
            f'by the same names, as PNG of 16 bits, .npy or .tiff, for {option("task", "depth")}.'
        )
    lists = read_lists(tree, findings)
    map_of = {image: path for path, image in pairs.image_of.items()}
    records = [
        tree.record(image, path, lists.splits.get(image), mask=path)
        for image, path in map_of.items()
    ]
    findings.warn_all(
        'images left out, which have no map of depth',
        (path for path in images if path not in map_of),
    )
    findings.warn_all('maps of depth left out, which have no image of their name', pairs.lost)
    warn_unused(tree, records, [*images, *maps, *lists.files], findings)
    records = read_sizes(tree, records, findings)
    found = scale or _scale_of(tree, [record.mask for record in records if record.mask])
    records, depths = check_depth(records, found, check_all, findings)
    findings.check()
    parts, held_out, _ = divide(records, tree, findings)
    return Listing('images and maps of depth', tree.folder, (), parts, held_out, findings), depths


def _maps_of(tree: Tree) -> list[Path]:
    """The files that are maps of depth, by their folder or their name."""
    photographs = {path.with_suffix('') for path in tree.images if path.suffix.lower() != '.npy'}
    maps = []
    for path in [*tree.images, *tree.others]:
        suffix = path.suffix.lower()
        if suffix not in DEPTH_SUFFIXES:
            continue
        folders = [part.casefold() for part in tree.parts(path)]
        named = WORD.search(path.stem) or any(
            'depth' in part or without_split(part) in KINDS['mask'] for part in folders
        )
        beside = path.with_suffix('') in photographs and suffix in ('.npy', '.exr')
        if named or beside:
            maps.append(path)
    return maps


def _names_of_image(path: Path) -> list[str]:
    forms = (rf'\g<1>{word}' if word else '' for word in IMAGE_WORDS)
    return [path.stem, *(WORD.sub(form, path.stem).strip('_-') for form in forms)]


def _scale_of(tree: Tree, maps: Sequence[Path]) -> float:
    """The scale where nobody says it, by the layout and the type of the values."""
    if any(KITTI.search('/'.join(tree.parts(path)).casefold()) for path in maps):
        return KITTIS
    suffixes = {path.suffix.lower() for path in maps}
    if len(suffixes) > 1 and '.png' in suffixes:
        raise InputError(
            f'maps of depth are {" and ".join(sorted(suffixes))}, whose units differ; keep '
            f'one of them, or give {option("depth_scale")}, the meters of a value of 1.'
        )
    return MILLIMETERS if suffixes == {'.png'} else 1.0


def check_depth(
    records: Records, scale: float, check_all: bool, findings: Findings
) -> tuple[Records, DepthRange]:
    """The images without those whose map is wrong, and the range of depth.

    Raises:
        InputError: if there is no depth, or none that can be in meters.
    """

    def probe(path: Path) -> tuple[Sequence[int], tuple[float, ...]]:
        depth = read_depth(path, scale)
        known = depth[depth > 0]
        return depth.shape, (known.min(), np.median(known), known.max()) if known.size else ()

    count = len(records)
    chosen = records if check_all else [records[i] for i in evenly_spaced(count, MOST_MAPS)]
    looked = list(probe_maps(chosen, probe, 'maps of depth', findings))
    unknown = (record.mask for record, ends in looked if not ends)
    findings.warn_all('maps of depth without a known pixel', unknown)
    values = [ends for _, ends in looked if ends]
    findings.check()
    if not values:
        raise InputError('no map of depth has a value above 0; look at how they were saved.')
    least, middle, most = np.array(values).T
    nearest, median, farthest = map(float, (least.min(), np.median(middle), most.max()))
    if median > FARTHEST:
        raise InputError(
            f'at {scale:g} m a value, the depth is {median:,.0f} m in the middle, which is '
            f'no photograph; give {option("depth_scale")}, the meters of a value of 1, such as '
            '0.001 for '
            'millimeters.'
        )
    wrong = {one.path for one in chosen} - {one.path for one, _ in looked}
    kept = [record for record in records if record.path not in wrong]
    return kept, DepthRange(scale, nearest, median, farthest, len(chosen))
