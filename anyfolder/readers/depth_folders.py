"""Read folders of images and depth maps: match them, and choose the unit of the maps."""

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from PIL import Image

from anyfolder.errors import InputError, UnclearError
from anyfolder.pixels.depth_maps import DEPTH_SUFFIXES
from anyfolder.wording import option

from .addresses import FOLDER_KINDS
from .build_listing import DEPTH, Draft, build_listing
from .depth_range import DepthRange, check_depth, check_scale
from .findings import Findings
from .identity import Index
from .image_tree import Tree
from .listing import Listing
from .name_keys import keys_of
from .paired_files import Pairs, pair_files
from .path_text import stem_and_suffix
from .records import Records
from .splits import without_split

DEPTH_WORD = re.compile(r'(^|[_-])depth(_?maps?)?(?=[_-]|$)', re.IGNORECASE)  # in the name of a map
KITTI_FOLDER = re.compile(r'proj_depth|groundtruth_depth')
MILLIMETER, KITTI_METERS = 1e-3, 1 / 256  # meters per unit of PNG, which stores integers
GUESSED_METERS = 10.0  # meters of the largest 8-bit value, as indoors
DISPARITY = re.compile(r'(^|[_-])disp(arity|arities)?([_-]|\d|$)', re.IGNORECASE)
PICTURE_MODES = ('1', 'L', 'LA', 'P', 'RGB', 'RGBA')  # Pillow modes of at most 8 bits


def read_depth_folder(
    tree: Tree, scale: float | None = None, skip_invalid: bool = False, check_all: bool = False
) -> tuple[Listing, DepthRange]:
    """Read images and their depth maps.

    A map is in a folder with ``depth`` in its name, in a folder of annotations, or next to its
    image, and has the name of its image, maybe with a word for depth. This includes the layouts of
    NYU and KITTI.

    Args:
        tree: the files of the folder.
        scale: meters per unit. None: 1 / 256 in KITTI's layout, otherwise millimeters in PNG and
            meters in other files.
        skip_invalid: whether invalid maps are left out instead of raising an error.
        check_all: whether all maps are read instead of 500.

    Raises:
        InputError: if the scale is not positive, if there are no pairs, if a map cannot be read or
            has another size than its image, or if the values are not depth in meters.
    """
    check_scale(scale)
    findings = Findings(skip_invalid)
    maps = _maps_of(tree)
    images, pairs = _pair_maps(tree, maps, findings)
    if not pairs.image_of:
        findings.check()  # raises if an image has two maps
        _raise_without_pairs(tree)
    map_of = {image: path for path, image in pairs.image_of.items()}
    records = [tree.record(image, path, mask=path) for image, path in map_of.items()]
    without = [path for path in images if path not in map_of and path not in pairs.conflicting]
    findings.warn_all('images left out, since they have no depth map', without)
    findings.warn_all('depth maps left out, since no image has their name', pairs.unmatched)
    depth_range: DepthRange | None = None

    def compare(records: Records) -> Records:
        nonlocal depth_range
        maps_of_records = [record.mask for record in records if record.mask]
        meters_per_unit = _infer_scale(tree, maps_of_records) if scale is None else scale
        kept, depth_range = check_depth(records, meters_per_unit, check_all, findings)
        return kept

    draft = Draft(
        DEPTH,
        'images and depth maps',
        tree,
        records,
        used_files=[*images, *maps],
        listable=Index(tree.folder, images),
    )
    listing = build_listing(draft, findings, compare)
    assert depth_range is not None  # `build_listing` has called `compare`
    return listing, depth_range


def _raise_without_pairs(tree: Tree) -> NoReturn:
    """Raise an ``InputError`` for a folder without depth maps, which may have disparities."""
    if disparities := _disparities(tree):
        discarded = Findings()
        _, pairs = _pair_maps(tree, disparities, discarded)
        raise UnclearError(
            f'{str(tree.folder)!r} has maps of disparity, such as {str(disparities[0])!r}, and '
            'depth is its inverse: the focal length in pixels times the baseline in meters, '
            'divided by the disparity; write this as .npy into a folder depth.',
            pairs=[(image, path) for path, image in pairs.image_of.items()],
            units=f'{MILLIMETER:g}',
        )
    raise InputError(
        f"{str(tree.folder)!r} must have images, and depth maps of the same names in 'depth', "
        f'as 16-bit PNG, .npy or .tiff, for {option("task", "depth")}.'
    )


def has_depth(tree: Tree) -> bool:
    """True if most images of a folder have a map of depth or disparity, by folder or file names."""
    maps = [
        path
        for path in _maps_of(tree)
        if DEPTH_WORD.search(path.stem)
        or any('depth' in part.casefold() for part in tree.parts(path))
    ]
    maps = maps or _disparities(tree)
    if not maps:
        return False
    images, _, images_of = _images_of(tree, maps)
    paired = {image for matches in images_of.values() for image in matches}
    return 2 * len(paired) > len(images)


def _images_of(
    tree: Tree, maps: Sequence[Path]
) -> tuple[list[Path], dict[Path, list[str]], dict[Path, list[Path]]]:
    """The images, the possible names of each map's image, and the images that match a name."""
    taken = {*maps}
    images = [path for path in tree.images if path not in taken]
    index, by_key = Index(tree.folder, images), defaultdict[str, set[str]](set)
    for image, key in keys_of(images).items():
        by_key[key].add(image.stem)
    names = {
        path: [
            path.stem,
            DEPTH_WORD.sub('', path.stem).strip('_-'),
            *(sorted(by_key.get(key, ())) if key else ()),
        ]
        for path, key in keys_of(maps).items()
    }
    images_of = {
        path: index.match_first(names_of_image, path) for path, names_of_image in names.items()
    }
    return images, names, images_of


def _pair_maps(tree: Tree, maps: Sequence[Path], findings: Findings) -> tuple[list[Path], Pairs]:
    """The images, and the image of each map. 8-bit pictures of a map next to it are left out."""
    images, names, images_of = _images_of(tree, maps)
    maps_of = defaultdict[Path, list[Path]](list)
    for path, matches in images_of.items():
        if len(matches) == 1:
            maps_of[matches[0]].append(path)
    left_out: set[Path] = set()
    for maps_of_image in maps_of.values():
        if len(maps_of_image) > 1:
            pictures = {path for path in maps_of_image if _mode_of(path) in PICTURE_MODES}
            if len(pictures) < len(maps_of_image):
                left_out |= pictures
    what = '8-bit pictures of depth left out, next to a depth map'
    findings.warn_all(what, sorted(left_out))
    remaining = {path: names[path] for path in names if path not in left_out}
    return images, pair_files(Index(tree.folder, images), remaining, findings)


def depth_pairs(tree: Tree) -> list[tuple[Path, Path]]:
    """The images of a folder, each with its depth map."""
    discarded = Findings()
    _, pairs = _pair_maps(tree, _maps_of(tree), discarded)
    return [(image, path) for path, image in pairs.image_of.items()]


def _mode_of(path: Path) -> str:
    """Pillow's mode of an image; empty for any other file."""
    with suppress(Exception), Image.open(path) as image:  # the reader of the map reports an error
        return image.mode
    return ''


def _maps_of(tree: Tree) -> list[Path]:
    """The files that are depth maps: by their folder, their name, or an image next to them."""
    parts = [(path, *stem_and_suffix(str(path))) for path in [*tree.images, *tree.others]]
    photographs = {start for _, start, suffix in parts[: len(tree.images)] if suffix != '.npy'}
    has_maps: dict[str, bool] = {}  # by folder: there are fewer folders than files
    maps = []
    for path, start, suffix in parts:
        if suffix.lower() not in DEPTH_SUFFIXES:
            continue
        folder, _, stem = start.rpartition(os.sep)
        if folder not in has_maps:
            has_maps[folder] = any(map(_is_folder_of_maps, tree.parts(path)))
        is_next_to_image = suffix.lower() in ('.npy', '.exr') and start in photographs
        if has_maps[folder] or is_next_to_image or DEPTH_WORD.search(stem):
            maps.append(path)
    return maps


def _disparities(tree: Tree) -> list[Path]:
    """The images in folders of disparities."""
    return [
        path
        for folders, images in tree.images_in.items()
        if any(map(DISPARITY.search, folders))
        for path in images
    ]


def _is_folder_of_maps(name: str) -> bool:
    return 'depth' in name.casefold() or without_split(name) in FOLDER_KINDS['mask']


def _infer_scale(tree: Tree, maps: Sequence[Path]) -> float:
    """The default scale in meters per unit, by KITTI's folders or by the suffix of the maps.

    Raises:
        UnclearError: for maps of different units, or PNGs of 8 bits.
    """
    if any(KITTI_FOLDER.search('/'.join(tree.parts(path)).casefold()) for path in maps):
        return KITTI_METERS
    suffixes = {path.suffix.lower() for path in maps}
    if len(suffixes) > 1 and '.png' in suffixes:
        kept = next(suffix for suffix in sorted(suffixes) if suffix != '.png')
        raise UnclearError(
            f'depth maps are {" and ".join(sorted(suffixes))}, whose units differ; keep '
            f'one of them, or give {option("depth_scale")}, the meters per unit.',
            labels=[path for path in maps if path.suffix.lower() == kept],
            units='meters',
        )
    if suffixes == {'.png'} and _mode_of(first := min(maps)) == 'L':
        raise UnclearError(
            f'depth maps have 8 bits like pictures, such as {str(first)!r}, which does not '
            f'give meters; give {option("depth_scale")}, the meters per unit, or save '
            'them as 16-bit PNG in millimeters.',
            units=f'{GUESSED_METERS / 255:.2g}',
        )
    return MILLIMETER if suffixes == {'.png'} else 1.0
