"""COCO panoptic: ``panoptic_*.json``, and PNGs with the segment number of each pixel."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyfolder.errors import InputError
from anyfolder.limits import read_within
from anyfolder.pixels.images import decode

from .build_listing import SEGMENTS, Draft, build_listing
from .class_names import class_name, warn_merged
from .file_contents import rejecting_malformed
from .findings import Findings
from .formats.coco import categories_of, images_by_id
from .formats.json_values import Json, is_yes, key_of, text_of
from .geometry import box_of_mask
from .identity import Index
from .image_tree import Tree
from .listing import Listing
from .pixel_maps import probe_maps
from .records import ImageRecord, Instance, Records

PANOPTIC_SUFFIXES = ('.jpg', '.png')  # image suffixes for which MMDetection finds the PNG
MAX_NUMBERS = 10_000  # segments in a PNG; a photograph has far more colors, each searched for


@dataclass(slots=True)
class Segment(Instance):
    """A thing, or all stuff of one class, in an image.

    Attributes:
        number: the value in the PNG: red + 256 green + 65536 blue.
    """

    number: int = 0


def is_panoptic(content: Any) -> bool:
    """True if this is the content of a panoptic annotation file."""
    match content:
        case {'annotations': [{'segments_info': _}, *_]}:
            return True
    return False


def numbers_in(file: Path) -> np.ndarray:
    """The segment number of each pixel (H, W), int32, of a PNG; 0 is unlabeled."""
    blue, green, red = np.moveaxis(
        decode(read_within(file, 'bytes of an image')).astype(np.int32), -1, 0
    )
    return red + (green << 8) + (blue << 16)


def read_panoptic_folder(tree: Tree, skip_invalid: bool = False) -> Listing:
    """Read a folder with a panoptic annotation file for each split, or one for all.

    The PNGs are in a folder named after that file, as in COCO, or next to it. Boxes and areas are
    computed from their pixels.

    Raises:
        InputError: if there is no such file, if images, PNGs and segments do not fit together, or
            if a class has no training data.
    """
    files = {
        file: content
        for file in tree.others
        if file.suffix.lower() == '.json' and is_panoptic(content := tree.contents.json(file))
    }
    if not files:
        raise InputError(
            f'{str(tree.folder)!r} has no panoptic annotations; put a panoptic_*.json of '
            'COCO there, and its PNGs into a folder of the same name.'
        )
    findings, records, is_thing = Findings(skip_invalid), Records(), dict[str, bool]()
    for file, content in files.items():
        with rejecting_malformed(file, 'an image or a segment', 'COCO panoptic'):
            records += _records(tree, file, content, is_thing, findings)
    warn_merged(is_thing, findings)
    things = [name for name in is_thing if is_thing[name]]
    stuff = [name for name in is_thing if not is_thing[name]]

    def compare(records: Records) -> Records:
        probed = [*probe_maps(records, _probe_png, 'PNGs of segments', findings)]
        for record, segments in probed:
            _set_boxes(record, segments, findings)
        return [record for record, _ in probed]

    # Without the PNGs, whose names are those of images.
    images = Index(tree.folder, [record.path for record in records])
    draft = Draft(
        SEGMENTS,
        'COCO panoptic',
        tree,
        records,
        names=[*things, *stuff],
        used_files=files,
        listable=images,
    )
    listing = build_listing(draft, findings, compare)
    listing.stuff = sum(name in stuff for name in listing.classes)
    return listing


def _records(
    tree: Tree, file: Path, content: Any, is_thing: dict[str, bool], findings: Findings
) -> Iterable[ImageRecord]:
    """The images of an annotation file with their segments, whose boxes are not known yet.

    The classes are added to ``is_thing``, by name.
    """
    split, names = tree.stated_split(file), _names_by_id(content, is_thing)
    # A missing image, which `resolve` has rejected, has the path of the annotation file instead.
    record_of_id = {
        image_id: tree.record(
            tree.resolve(image.name, file, split, findings) or file,
            file,
            split,
            stated_size=image.stated_size,
        )
        for image_id, image in images_by_id(content['images']).items()
    }
    annotated = set()
    for annotation in content['annotations']:
        image_id = key_of(annotation['image_id'])
        if image_id in annotated:
            raise ValueError(f'two annotations have the image_id {image_id}')
        annotated.add(image_id)
        record = record_of_id[image_id]
        record.mask = _find_png(annotation, file, findings)
        if record.mask and record.path != file:
            record.instances = _segments(annotation, names, record.mask)
            yield record


def _names_by_id(content: Json, is_thing: dict[str, bool]) -> dict[str, str]:
    """The class of each category by its id. The classes are added to ``is_thing``, by name."""
    names: dict[str, str] = {}
    for category in categories_of(content):
        category_id, name = key_of(category['id']), class_name(text_of(category['name']))
        thing = is_yes(category['isthing'])
        if category_id in names:
            raise ValueError('two categories have the same id')
        if not name:
            raise ValueError('a category has no name')
        if is_thing.setdefault(name, thing) != thing:
            raise ValueError(f'{name!r} is both a thing and stuff')
        names[category_id] = name
    return names


def _find_png(annotation: Json, file: Path, findings: Findings) -> Path | None:
    """The PNG of an image, in a folder named after the annotation file or next to it."""
    name = Path(annotation['file_name']).name  # without folders, which could lead elsewhere
    candidates = [file.with_suffix('') / name, file.parent / name]
    if png := next(filter(os.path.isfile, candidates), None):
        return png
    findings.reject(
        'PNGs of segments are missing',
        'put them into a folder named after their annotation file',
        str(candidates[0]),
    )
    return None


def _segments(annotation: Json, names: Mapping[str, str], png: Path) -> list[Instance]:
    """The segments of an image, without boxes."""
    return [
        Segment(
            names[key_of(segment['category_id'])],
            (),
            crowd=is_yes(segment.get('iscrowd')),
            origin=f'segment {segment["id"]} of {png}',
            number=int(segment['id']),
        )
        for segment in annotation['segments_info']
    ]


def _probe_png(png: Path) -> tuple[Sequence[int], dict[int, tuple]]:
    """The shape (H, W) of a PNG, and the box and area of each number in it.

    Raises:
        ValueError: if it has too many numbers.
    """
    numbers, box_and_area = numbers_in(png), {}
    distinct = np.unique(numbers).tolist()
    if len(distinct) > MAX_NUMBERS:
        raise ValueError(f'it has {len(distinct)} colors, as a photograph')
    for number in distinct:
        mask = numbers == number
        box_and_area[number] = (box_of_mask(mask), int(mask.sum()))
    return numbers.shape, box_and_area


def _set_boxes(record: ImageRecord, box_and_area: dict[int, tuple], findings: Findings) -> None:
    """Give the segments of an image the boxes and areas of their numbers in the PNG.

    Segments without a pixel are left out. Of several with one number, only the first is kept.
    """
    kept: list[Instance] = []
    numbers = set[int]()
    for segment in record.instances:
        assert isinstance(segment, Segment)
        if segment.number in numbers:
            what = 'segments have the same id as another one of their image'
            findings.reject(what, 'correct the ids', segment.origin)
            continue
        numbers.add(segment.number)
        if segment.number not in box_and_area:
            findings.warn('segments left out, since they have no pixel', segment.origin)
            continue
        segment.box, segment.area = box_and_area.pop(segment.number)
        kept.append(segment)
    record.instances = kept
    findings.warn_all(
        'numbers in PNGs that are not listed, taken as no segment',
        (f'{number} in {record.mask}' for number in box_and_area if number),
    )


def as_panoptic(records: Records, classes: Sequence[str], num_stuff: int) -> dict[str, Any]:
    """Images with their segments, as the content of a panoptic annotation file.

    Args:
        records: the images.
        classes: the names of the classes, those of stuff last.
        num_stuff: the number of stuff classes.
    """
    category_ids = {name: number for number, name in enumerate(classes, 1)}
    images, annotations = [], []
    for number, record in enumerate(records, 1):
        width, height = record.size
        images.append(dict(id=number, file_name=record.path.name, width=width, height=height))
        segments = [
            dict(
                id=segment.number,
                category_id=category_ids[segment.name],
                bbox=list(segment.box),
                area=segment.area,
                iscrowd=int(segment.crowd),
            )
            for segment in record.instances
            if isinstance(segment, Segment)
        ]
        annotations.append(
            dict(image_id=number, file_name=png_of(record.path), segments_info=segments)
        )
    categories = [
        dict(id=number, name=name, isthing=int(number <= len(classes) - num_stuff))
        for name, number in category_ids.items()
    ]
    return dict(images=images, annotations=annotations, categories=categories)


def png_of(path: Path) -> str:
    """The name of the PNG of an image, by which MMDetection finds it."""
    return f'{path.stem}.png'
