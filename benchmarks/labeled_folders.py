"""Labeled folders with their true content, for :mod:`reading`: those of the tests, and large ones.

A folder is written by a function that also knows what it has written. :func:`fault_of` compares
that with what a library reads.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from box_scenes import BOX_SCENES
from foreign_data import CLASSES, MASKS, class_mask, cvat_masks, plain_masks, roboflow_masks
from image_folders import scenes, write_coco, write_depth, write_digits, write_masks, write_voc
from public_boxes import PUBLIC_BOXES
from public_classes import PUBLIC_CLASSES
from public_maps import PUBLIC_MAPS
from public_matlab import PUBLIC_MATLAB
from public_scene import PublicDataSet, Scene
from unclear_scenes import UNCLEAR

MAX_SHIFT = 1.5  # pixels by which an edge of a box may differ: some libraries count from 1
TRAIN_SHARE = 0.9
Box = tuple[Any, ...]  # name, left, top, right and bottom


class Truth(NamedTuple):
    """The true content of a folder.

    Attributes:
        images: the minimum number of images.
        classes: the classes that labels may have; None: any.
        boxes: how often each object occurs; None: any.
        has_more_boxes: whether there may be further objects.
        labels: the classes of images, by the ends of their paths.
        counts: the number of images of each class.
        pixels: the number of pixels of each class.
    """

    images: int
    classes: Sequence[str] | None = None
    boxes: Mapping[Box, int] | None = None
    has_more_boxes: bool = False
    labels: Mapping[str, Sequence[str]] = {}
    counts: Mapping[str, int] | None = None
    pixels: Mapping[str, int] = {}


class LabeledFolder(NamedTuple):
    """A folder to read.

    Attributes:
        name: its name in the table.
        task: the task that it is read for.
        write: writes it.
        truth: its content; None if it is ambiguous, so that a library that reads it has guessed.
    """

    name: str
    task: str
    write: Callable[[Path], object]
    truth: Truth | None


def fault_of(found: Sequence[Any], truth: Truth) -> str:
    """The fault in the images that a library returns, empty if they are as written.

    Args:
        found: lists of the values of :class:`label_readers.Labeled`.
        truth: what was written.
    """
    boxes = Counter(tuple(box) for image in found for box in image[2])
    names = {name for image in found for name in image[1]} | {box[0] for box in boxes}
    if truth.classes is not None and (extra := names - {*truth.classes}):
        return f'it has the class {min(extra)!r}'
    if truth.boxes is not None and (fault := _fault_of_boxes(boxes, truth)):
        return fault
    for end, labels in truth.labels.items():
        own = {name for image in found if image[0].endswith(end) for name in image[1]}
        if own != {*labels}:
            return f'{end} has {sorted(own)}'
    counts = Counter(name for image in found for name in {*image[1]})
    if truth.counts is not None and counts != truth.counts:
        return f'the classes have {dict(counts.most_common(3))} images'
    pixels = Counter[str]()
    for image in found:
        pixels.update(image[3])
    for name, count in truth.pixels.items():
        if pixels[name] != count:
            return f'{name!r} has {pixels[name]} of {count} pixels'
    if len(found) < truth.images:
        return f'it has {len(found)} of {truth.images} images'
    return ''


def _fault_of_boxes(found: Counter, truth: Truth) -> str:
    """The first box that is missing, or is there and was not written."""
    unmatched = Counter[Box]()
    for box, count in found.items():
        unmatched[(box[0], *map(round, box[1:]))] += count
    # The usual case, and faster: all boxes are there, in the same order after sorting.
    read, written = (sorted(boxes.elements()) for boxes in (unmatched, Counter(truth.boxes)))
    if len(read) == len(written) and all(map(_is_near, read, written)):
        return ''
    missing = Counter(truth.boxes) - unmatched
    unmatched -= Counter(truth.boxes)
    for box in missing.elements():
        near = next(
            (other for other in unmatched if unmatched[other] and _is_near(other, box)), None
        )
        if near is None:
            return f'it has no box {box}'
        unmatched[near] -= 1
    extra = +unmatched
    return '' if truth.has_more_boxes or not extra else f'it has a box {next(iter(extra))}'


def _is_near(one: Box, other: Box) -> bool:
    return one[0] == other[0] and bool(np.abs(np.subtract(one[1:], other[1:])).max() <= MAX_SHIFT)


def _boxes(count: int) -> Counter:
    """The boxes of the first scenes of the tests."""
    return Counter((name, *box) for _, boxes in scenes(count) for name, box in boxes)


def _pixels(count: int, names: Sequence[str]) -> dict[str, int]:
    """The number of pixels of each class in the masks of the first scenes."""
    masks = [class_mask(boxes) for _, boxes in scenes(count)]
    found = np.bincount(np.concatenate(masks).ravel(), minlength=3)
    return {
        name: int(found[1 + CLASSES.index(kind)]) for kind, name in zip(CLASSES, names, strict=True)
    }


def tool_folders() -> list[LabeledFolder]:
    """Folders as annotation tools write them, and plain ones of classes, masks and depth."""
    found = [
        LabeledFolder(write.__name__, 'detection', write, Truth(10, CLASSES, _boxes(10)))
        for write in BOX_SCENES
    ]
    for write in MASKS:
        names = [*CLASSES, 'background']
        truth = Truth(8, names)
        if write in (plain_masks, cvat_masks, roboflow_masks):  # all images, and no polygons
            truth = Truth(10, names, pixels=_pixels(10, CLASSES))
        found.append(LabeledFolder(f'{write.__name__}, masks', 'segmentation', write, truth))
    counts = {f'digit {i}': 4 for i in range(3)}
    return [
        *found,
        LabeledFolder('voc', 'detection', write_voc, Truth(6, CLASSES, _boxes(6))),
        LabeledFolder('coco', 'detection', write_coco, Truth(10, CLASSES, _boxes(10))),
        LabeledFolder(
            'classes', 'classification', partial(write_digits, size=16), Truth(12, counts=counts)
        ),
        LabeledFolder('masks', 'segmentation', write_masks, Truth(6)),
        LabeledFolder('depth', 'depth', write_depth, Truth(6)),
    ]


def public_folders() -> list[LabeledFolder]:
    """Folders of public data sets, as their downloads unpack."""
    every = [*PUBLIC_BOXES, *PUBLIC_CLASSES, *PUBLIC_MAPS, *PUBLIC_MATLAB]
    return [
        LabeledFolder(
            f'{one.layout}, {one.write.__name__}', one.task, _writing(one.write), _truth_of(one)
        )
        for one in every
    ]


def _writing(write: Callable[[Scene], None]) -> Callable[[Path], object]:
    return lambda folder: write(Scene(folder))


def _truth_of(public: PublicDataSet) -> Truth:
    boxes = {
        (name, left, top, left + width, top + height): 1
        for name, (left, top, width, height) in public.boxes.items()
    }
    labels = {
        end: (names,) if isinstance(names, str) else names for end, names in public.labels.items()
    }
    count = sum(public.sizes) if public.task == 'classification' else 0
    kinds = tuple(public.classes) if public.task != 'depth' else None
    return Truth(count, kinds, boxes or None, True, labels)


def unclear_folders() -> list[LabeledFolder]:
    """Folders whose labels can be read in two ways."""
    return [
        LabeledFolder(one.write.__name__, one.task, _writing(one.write), None) for one in UNCLEAR
    ]


# The kinds of small folders, by a description for the table.
SCENES: dict[str, Callable[[], Iterable[LabeledFolder]]] = {
    'annotation tools and plain folders': tool_folders,
    'public data sets as they unpack': public_folders,
    'folders that leave open what is meant': unclear_folders,
}


NAMES = tuple(f'class{i}' for i in range(5))  # the classes of the large folders


def _image(rng: np.random.Generator, width: int, height: int) -> np.ndarray:
    """A smooth image (height, width, 3)."""
    values = rng.integers(0, 255, (6, 6, 3)).astype(np.uint8)
    return cv2.resize(values, (width, height), interpolation=cv2.INTER_CUBIC)


def _write_images(folder: Path, names: Iterable[str], width: int, height: int) -> None:
    rng = np.random.default_rng(0)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / name), _image(rng, width, height))


def _split(number: int, count: int) -> str:
    return 'train' if number < TRAIN_SHARE * count else 'val'


def _counts(count: int) -> Counter:
    return Counter(NAMES[i % len(NAMES)] for i in range(count))


def many_images(folder: Path, count: int) -> Truth:
    """JPEGs of 64 x 64 pixels in folders of classes."""
    names = (f'{_split(i, count)}/{NAMES[i % len(NAMES)]}/{i:06}.jpg' for i in range(count))
    _write_images(folder, names, 64, 64)
    return Truth(count, NAMES, counts=_counts(count))


def many_rows(folder: Path, count: int) -> Truth:
    """PNGs of 8 x 8 pixels, and a table with a row for each."""
    _write_images(folder, (f'images/{i:06}.png' for i in range(count)), 8, 8)
    rows = ''.join(f'{i:06}.png,{NAMES[i % len(NAMES)]}\n' for i in range(count))
    (folder / 'labels.csv').write_text(f'file,label\n{rows}')
    return Truth(count, NAMES, counts=_counts(count))


def _drawn_boxes(count: int, each: int) -> list[list[Box]]:
    """``each`` boxes in each of ``count`` images of 128 x 96 pixels."""
    rng = np.random.default_rng(1)
    starts, sides = (
        rng.integers(0, 60, (count, each, 2)),
        rng.integers(8, 36, (count, each, 2)),
    )
    corners = np.concatenate((starts, starts + sides), -1).tolist()
    return [[(NAMES[k % len(NAMES)], *box) for k, box in enumerate(own)] for own in corners]


def many_boxes(folder: Path, count: int, each: int = 10) -> Truth:
    """``count`` boxes in COCO, ``each`` in an image."""
    found = _drawn_boxes(count // each, each)
    (folder / 'annotations').mkdir(parents=True)
    for split in ('train', 'val'):
        numbers = [i for i in range(len(found)) if _split(i, len(found)) == split]
        _write_images(folder, (f'{split}2017/{i:06}.jpg' for i in numbers), 128, 96)
        images = [dict(id=i, file_name=f'{i:06}.jpg', width=128, height=96) for i in numbers]
        objects = [
            dict(
                image_id=i,
                category_id=NAMES.index(name) + 1,
                bbox=[left, top, right - left, bottom - top],
                area=(right - left) * (bottom - top),
                iscrowd=0,
                segmentation=[],
            )
            for i in numbers
            for name, left, top, right, bottom in found[i]
        ]
        objects = [dict(one, id=number) for number, one in enumerate(objects, 1)]
        categories = [dict(id=i, name=name) for i, name in enumerate(NAMES, 1)]
        content = dict(images=images, annotations=objects, categories=categories)
        (folder / f'annotations/instances_{split}2017.json').write_text(json.dumps(content))
    return Truth(len(found), NAMES, Counter(box for own in found for box in own))


def many_files(folder: Path, count: int) -> Truth:
    """A file of YOLO for each image, of two boxes."""
    found = _drawn_boxes(count, 2)
    _write_images(folder, (f'images/{_split(i, count)}/{i:06}.jpg' for i in range(count)), 128, 96)
    for i, own in enumerate(found):
        file = folder / f'labels/{_split(i, count)}/{i:06}.txt'
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(''.join(_yolo_line(*box) for box in own))
    names = json.dumps([*NAMES])
    (folder / 'data.yaml').write_text(f'train: images/train\nval: images/val\nnames: {names}\n')
    return Truth(count, NAMES, Counter(box for own in found for box in own))


def _yolo_line(name: str, left: int, top: int, right: int, bottom: int) -> str:
    x, width = (left + right) / 2 / 128, (right - left) / 128
    y, height = (top + bottom) / 2 / 96, (bottom - top) / 96
    return f'{NAMES.index(name)} {x:.6f} {y:.6f} {width:.6f} {height:.6f}\n'


class LargeFolder(NamedTuple):
    """A large folder.

    Attributes:
        description: what is counted, for the table.
        task: the task that it is read for.
        write: writes ``count`` of these into a folder, and returns the truth.
        count: the number of images, boxes or rows.
    """

    description: str
    task: str
    write: Callable[[Path, int], Truth]
    count: int


LARGE = dict(
    images=LargeFolder('JPEGs in folders of classes', 'classification', many_images, 20_000),
    coco=LargeFolder('boxes of COCO', 'detection', many_boxes, 100_000),
    yolo=LargeFolder('files of YOLO', 'detection', many_files, 20_000),
    table=LargeFolder('rows of a table', 'classification', many_rows, 200_000),
)
