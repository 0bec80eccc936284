"""Folders of images and masks: which belong together, and which class each value of a mask is."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
from PIL import Image

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.files.image_headers import ON_ITS_SIDE, header_of

from .annotated import BACKGROUND_SHAPE, formats_of, read_format
from .class_names import check_alike
from .division import check_classes, divide
from .findings import Findings
from .identity import KINDS, Index
from .image_tree import Tree, note_unused, read_sizes
from .listing import Listing
from .mask_values import (
    NOT_LABELED,
    MaskValues,
    NamedValues,
    choose_classes,
    lossy_kind,
    palette_of,
    read_names,
    values_of,
)
from .polygons import mask_of
from .records import ImageRecord
from .split_lists import read_lists
from .splits import without_split

# What follows the name of its image in the name of a mask, and what images may have there.
WORDS = ('mask', 'masks', 'seg', 'segmentation', 'label', 'labels', 'gt', 'groundtruth', 'l', 'ids')
ENDING = re.compile(rf'[_-]?({"|".join(WORDS[:-1])}|gt(fine|coarse)_label.*ids)$', re.IGNORECASE)
IMAGE_ENDINGS = ('', '_leftImg8bit', '_sat', '_image', '_rgb')
CITYSCAPES = re.compile(r'_gt(?:Fine|Coarse)_(\w+)$')
CITYSCAPES_IDS = (7, 8, 11, 12, 13, 17, *range(19, 29), 31, 32, 33)  # of the classes that count
COLOR_LIST = re.compile(r'colou?rs?.*\.txt$', re.IGNORECASE)
NAMES = (
    'classes.txt',
    'labels.txt',
    'class_names.txt',
    '_classes.csv',
    'labelmap.txt',
    'class_dict.csv',
)
BACKGROUND = 'background'


def read_mask_folder(tree: Tree, skip_invalid: bool = False) -> Listing:
    """Read a folder of images and masks: in ``images`` and ``masks``, or masks beside their images.

    A mask has the name of its image, maybe with ``_mask`` behind it, or names differ in words that
    all images, or all masks, have. Its pixels are numbers of
    classes, and 255 where there is none; or few gray values, or colors, which are understood as
    :mod:`.mask_values` says. ``classes.txt`` has the name of a class on each line. Without images
    to validate, a tenth is held out. Where there are no masks, the polygons of COCO, YOLO or
    LabelMe become masks, on a class of the background.

    Raises:
        ConfigError: if there are no such folders, if a mask has another size than its image as it
            is seen, or values that are not classes, or if there are no images to train on or to
            validate.
    """
    findings = Findings(skip_invalid)
    records, lists = _pairs(tree, findings)
    if not records:
        return _from_polygons(tree, findings)
    named = _names_in(tree, [record.mask for record in records if record.mask])
    used = [path for record in records for path in (record.path, record.mask) if path]
    note_unused(tree, [*used, *filter(None, [named.file]), *lists], findings)
    records = read_sizes(tree, records, findings)
    found = _count(records, bool(named.colors), findings)
    findings.check()
    lossy = next((mask for mask in found if mask and lossy_kind(mask)), None)
    values = choose_classes(sum(found.values(), Counter()), named, findings, lossy)
    records = [record for record in records if record.mask in found]
    for record in records:
        numbers = sorted({values.numbers[value] for value in found[record.mask]} - {NOT_LABELED})
        record.labels = tuple(values.classes[number] for number in numbers)
    parts, held_out = divide(records, tree, findings)
    known = check_classes(parts, held_out, lambda record: record.labels, findings)
    findings.note_all(
        'classes of which there is nothing to train on, only to validate',
        sorted({name for record in parts['val'] for name in record.labels} - known),
    )
    return Listing(
        'images and masks', tree.folder, values.classes, parts, held_out, findings, masks=values
    )


def has_masks(tree: Tree) -> bool:
    """True if a folder has images, masks and little else, in folders so named or side by side."""
    kinds = set(map(_kind, tree.images_in))
    if 'mask' in kinds:
        return '' not in kinds and 'image' in kinds
    return 4 * len(_pairs(tree, Findings())[0]) > len(tree.images)


@cache
def _kind(folders: tuple[str, ...]) -> str:
    """The kind of files by their folders: ``'image'``, ``'mask'``, ``'other'`` or ``''``."""
    for part in reversed(folders):
        for kind, names in KINDS.items():
            if not names.isdisjoint({part.casefold(), without_split(part)}):
                return kind
    return ''


def _pairs(tree: Tree, findings: Findings) -> tuple[list[ImageRecord], list[Path]]:
    """The images with a mask, and the lists of their parts.

    An image without a mask is rejected if it lies where others have one.
    """
    images_of: dict[str, list[Path]] = defaultdict(list)
    for folders, found in tree.images_in.items():
        images_of[_kind(folders)] += found
    if masks := images_of['mask']:
        images = images_of['image'] or images_of['']
    elif masks := [path for path in tree.images if _is_named_mask(path)]:
        stems = {(path.parent, path.stem) for path in tree.images}
        masks = [
            path
            for path in masks
            if any((path.parent, name) in stems for name in _names_of_image(path))
        ]
        taken = {*masks}
        images = [path for path in tree.images if path not in taken]
    if kind := _cityscapes_kind(masks):
        masks = [mask for mask in masks if mask.stem.endswith(kind)]
    if not masks:
        return [], []
    by_core: dict[str, set[str]] = {}
    for image, core in zip(images, _cores(images), strict=True):
        by_core.setdefault(core, set()).add(image.stem)
    # NAME.jpg.png is that of NAME.jpg, and mask_1.png that of img_1.jpg
    names = {
        mask: [mask.stem, *_names_of_image(mask), *sorted(by_core.get(core, ()))]
        for mask, core in zip(masks, _cores(masks), strict=True)
    }
    index = Index(tree.folder, images)
    pairs = index.pair(names, findings)
    mask_of_image = {image: mask for mask, image in pairs.image_of.items()}
    lists = read_lists(tree, findings, index)
    listed = {*lists.splits.values()}
    has_parts = any(map(tree.split, images))
    records = []
    for image in images:
        own, mask = tree.split(image), mask_of_image.get(image)
        split = lists.splits.get(image) or own
        if (image not in lists.splits and (own or 'train') in listed) or image in pairs.unclear:
            continue  # named among what is left out
        if mask:
            records.append(ImageRecord(image, split, mask=mask, origin=str(mask)))
        elif split or not has_parts:
            what = 'images have no mask of their name'
            findings.reject(what, 'add them, or remove the images', str(image))
    return records, [*lists.files]


def _is_named_mask(path: Path) -> bool:
    stem = os.path.splitext(str(path).lower())[0]
    return stem.endswith(WORDS) and ENDING.search(stem) is not None


def _names_of_image(mask: Path) -> list[str]:
    return [ENDING.sub('', mask.stem) + ending for ending in IMAGE_ENDINGS]


def _names_in(tree: Tree, masks: Sequence[Path]) -> NamedValues:
    """The names of the classes: in a file known by its name, or of colors; or Cityscapes' names.

    Raises:
        ConfigError: if that file is a table of something else.
    """
    for name in NAMES:
        read = {file: read_names(file) for file in tree.others if file.name.lower() == name}
        check_alike([(file, named[:2]) for file, named in read.items()])
        if not read:
            continue
        file, found = next(iter(read.items()))
        if found.file is None:
            raise ConfigError(
                f'--data: {str(file)!r} has neither a value and a name on each line, nor the '
                'columns name, r, g and b; write one of these.'
            )
        return found
    for file in tree.others:
        if file.suffix.lower() in ('.csv', '.tsv') or COLOR_LIST.search(file.name):
            found = read_names(file)
            if found.colors or (found.numbers and 'class' in file.stem.casefold()):
                return found
    if not (kind := _cityscapes_kind(masks)):
        return NamedValues()
    from mmseg.datasets import CityscapesDataset

    names = CityscapesDataset.METAINFO['classes']
    numbers = range(len(names)) if kind == 'labelTrainIds' else CITYSCAPES_IDS
    return NamedValues(dict(zip(numbers, names, strict=True)), partial=True)


def _cityscapes_kind(masks: Sequence[Path]) -> str | None:
    """The first of ``labelTrainIds`` and ``labelIds`` that is the kind of masks of Cityscapes."""
    kinds = {found[1] for mask in masks if (found := CITYSCAPES.search(mask.stem))}
    return next((kind for kind in ('labelTrainIds', 'labelIds') if kind in kinds), None)


def _cores(paths: list[Path]) -> list[str]:
    """The names of files without that with which all begin, and with which all end.

    The digits next to what differs are of a number.
    """
    stems = [path.stem for path in paths]
    start, end = (
        len(re.sub(r'\d+$', '', os.path.commonprefix(each)))  # noqa: RUF071  letters are compared
        for each in (stems, [stem[::-1] for stem in stems])
    )
    return [stem[start : len(stem) - end] for stem in stems]


def _count(
    records: list[ImageRecord], by_color: bool, findings: Findings
) -> dict[Path | None, Counter[int]]:
    """The pixels of each value in each mask that has the size of its image."""
    counts: dict[Path | None, Counter[int]] = {}
    colors: dict[int, tuple[tuple[int, ...], Path]] = {}
    for record in records:
        assert record.mask is not None
        try:
            values = values_of(record.mask, by_color)
        except Exception as error:  # noqa: BLE001  whatever a decoder trips over
            findings.reject(
                'masks cannot be read',
                'repair or remove them',
                f'{record.mask} ({first_line(error)})',
            )
            continue
        if values.shape[::-1] == record.size:
            _compare_orientation(record, findings)
            found, pixels = np.unique(values, return_counts=True)
            counts[record.mask] = Counter(dict(zip(found.tolist(), pixels.tolist(), strict=True)))
            palette = {} if by_color else palette_of(record.mask)
            for value in counts[record.mask].keys() & palette.keys():
                first = colors.setdefault(value, (palette[value], record.mask))
                if first[0] != palette[value]:
                    what = 'masks have other colors of one number in their palettes'
                    where = f'{value} of {first[1]} and {record.mask}'
                    findings.reject(what, 'save all with one palette, or as RGB', where)
            continue
        size, seen = (f'{one[0]} x {one[1]}' for one in (values.shape[::-1], record.size))
        findings.reject(
            'masks have another size than their image as it is seen',
            'make them equal',
            f'{record.mask} with {size} pixels, and {record.path} with {seen}',
        )
    return counts


def _compare_orientation(record: ImageRecord, findings: Findings) -> None:
    """Note a mask that may be drawn on the stored pixels of its image, where no size tells."""
    assert record.mask is not None
    image, mask = header_of(record.path).orientation, header_of(record.mask).orientation
    sizes_tell = (image in ON_ITS_SIDE) != (mask in ON_ITS_SIDE) and len({*record.size}) > 1
    if image != mask and not sizes_tell:
        findings.note(
            'masks without the orientation (EXIF) of their image, both taken as they are seen',
            record.mask,
        )


def _from_polygons(tree: Tree, findings: Findings) -> Listing:
    """Masks drawn from the polygons of objects."""
    forms = formats_of(tree)
    if not forms:
        findings.check()  # of images and masks whose names are not the same
        raise ConfigError(
            f"--data: {str(tree.folder)!r} must have a folder 'images' and a folder 'masks' for "
            '--task segmentation, with masks of the same names, or polygons as COCO, YOLO or '
            'LabelMe.'
        )
    listing = read_format(tree, forms, findings.skip_invalid, True, with_background=True)
    listing.form += ' polygons as masks'
    for record in chain(*listing.parts.values()):
        for found in record.instances:
            found.name = BACKGROUND if found.name == BACKGROUND_SHAPE else found.name
    names = listing.classes
    listing.classes = (
        BACKGROUND,
        *(name for name in names if name not in (BACKGROUND, BACKGROUND_SHAPE)),
    )
    listing.masks = MaskValues(listing.classes, {})
    return listing


def _drawn(record: ImageRecord, classes: tuple[str, ...]) -> np.ndarray:
    """The mask (H, W), uint8, of polygons, largest first, on class 0. Crowds are not labeled."""
    from PIL import ImageDraw

    width, height = record.size
    image = Image.new('L', (width, height), 0)
    draw = ImageDraw.Draw(image)
    for found in sorted(record.instances, key=lambda found: -float(found.area)):
        value = NOT_LABELED if found.crowd else classes.index(found.name)
        if isinstance(found.segmentation, dict):
            image.paste(
                value, mask=Image.fromarray(mask_of(found.segmentation['counts'], record.size))
            )
        else:
            for polygon in found.segmentation or ():
                draw.polygon(polygon, fill=value)
    return np.asarray(image)


def class_map(found: Listing, record: ImageRecord) -> np.ndarray:
    """The number of the class of each pixel (H, W), uint8, 255 where there is none."""
    if record.mask is None:
        return _drawn(record, found.classes)
    assert found.masks is not None
    return found.masks.apply(values_of(record.mask, found.masks.by_color))
