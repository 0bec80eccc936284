"""Match images with their depth maps."""

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from PIL import Image

from anyfolder.errors import InputError, UnclearError
from anyfolder.pixels.depth_maps import DEPTH_SUFFIXES
from anyfolder.wording import option

from .build_listing import DEPTH, Draft, build_listing
from .depth_range import DepthRange, check_depth
from .findings import Findings
from .identity import FOLDER_KINDS, Index, Pairs, stem_and_suffix
from .image_tree import Tree
from .listing import Listing
from .name_keys import keys_of
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
        InputError: if there are no pairs, if a map cannot be read or has another size than its
            image, or if the values are not depth in meters.
    """
    findings = Findings(skip_invalid)
    maps = _maps_of(tree)
    images, pairs = _paired(tree, maps, findings)
    if not pairs.image_of:
        findings.check()  # raises if an image has two maps
        if disparities := _disparities(tree):
            _, found = _paired(tree, disparities, Findings(skip_invalid=True))
            raise UnclearError(
                f'{str(tree.folder)!r} has maps of disparity, such as {str(disparities[0])!r}, and '
                'depth is its inverse: the focal length in pixels times the baseline in meters, '
                'divided by the disparity; write this as .npy into a folder depth.',
                pairs=[(image, path) for path, image in found.image_of.items()],
                units=f'{MILLIMETER:g}',
            )
        raise InputError(
            f"{str(tree.folder)!r} must have images, and depth maps of the same names in 'depth', "
            f'as 16-bit PNG, .npy or .tiff, for {option("task", "depth")}.'
        )
    map_of = {image: path for path, image in pairs.image_of.items()}
    records = [tree.record(image, path, mask=path) for image, path in map_of.items()]
    without = [path for path in images if path not in map_of and path not in pairs.unclear]
    findings.warn_all('images left out, since they have no depth map', without)
    findings.warn_all('depth maps left out, since no image has their name', pairs.lost)
    found = list[DepthRange]()

    def compare(records: Records) -> Records:
        own = scale or _scale_of(tree, [record.mask for record in records if record.mask])
        kept, depths = check_depth(records, own, check_all, findings)
        found.append(depths)
        return kept

    draft = Draft(
        DEPTH,
        'images and depth maps',
        tree,
        records,
        used=[*images, *maps],
        listed=Index(tree.folder, images),
    )
    return build_listing(draft, findings, compare), found[0]


def has_depth(tree: Tree) -> bool:
    """True if a folder has images and depth maps, in folders or by names that say so."""
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
    paired = {image for found in images_of.values() for image in found}
    return 2 * len(paired) > len(images)


def _images_of(
    tree: Tree, maps: Sequence[Path]
) -> tuple[list[Path], dict[Path, list[str]], dict[Path, list[Path]]]:
    """The images, the possible names of each map's image, and those of them that exist."""
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
    found = {
        path: next(filter(None, (index.match(name, path) for name in own)), [])
        for path, own in names.items()
    }
    return images, names, found


def _paired(tree: Tree, maps: Sequence[Path], findings: Findings) -> tuple[list[Path], Pairs]:
    """The images, and the image of each map. Pictures of maps next to maps are left out."""
    images, names, images_of = _images_of(tree, maps)
    maps_of = defaultdict[Path, list[Path]](list)
    for path, found in images_of.items():
        if len(found) == 1:
            maps_of[found[0]].append(path)
    left_out: set[Path] = set()
    for several in (found for found in maps_of.values() if len(found) > 1):
        pictures = {path for path in several if _mode_of(path) in PICTURE_MODES}
        left_out |= pictures if len(pictures) < len(several) else set()
    what = '8-bit pictures of depth left out, next to a depth map'
    findings.warn_all(what, sorted(left_out))
    names = {path: own for path, own in names.items() if path not in left_out}
    return images, Index(tree.folder, images).pair(names, findings)


def depth_pairs(tree: Tree) -> list[tuple[Path, Path]]:
    """The images of a folder, each with its depth map."""
    _, pairs = _paired(tree, _maps_of(tree), Findings(skip_invalid=True))
    return [(image, path) for path, image in pairs.image_of.items()]


def _mode_of(path: Path) -> str:
    """Pillow's mode of an image; empty for any other file."""
    with suppress(Exception), Image.open(path) as image:  # else its reader reports the error
        return image.mode
    return ''


def _maps_of(tree: Tree) -> list[Path]:
    """The files that are depth maps, by their folder or their name."""
    parts = [(path, *stem_and_suffix(str(path))) for path in [*tree.images, *tree.others]]
    photographs = {start for _, start, suffix in parts[: len(tree.images)] if suffix != '.npy'}
    is_of_maps: dict[str, bool] = {}  # by folder, of which there are few
    maps = []
    for path, start, suffix in parts:
        if suffix.lower() not in DEPTH_SUFFIXES:
            continue
        place, _, stem = start.rpartition(os.sep)
        if place not in is_of_maps:
            is_of_maps[place] = any(map(_is_folder_of_maps, tree.parts(path)))
        beside = suffix.lower() in ('.npy', '.exr') and start in photographs
        if is_of_maps[place] or beside or DEPTH_WORD.search(stem):
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


def _scale_of(tree: Tree, maps: Sequence[Path]) -> float:
    """The default scale, by the layout and the type of the values."""
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
