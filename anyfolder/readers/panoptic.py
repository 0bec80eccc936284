"""COCO panoptic: ``panoptic_*.json``, and PNGs with the segment number of each pixel."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyfolder.errors import InputError
from anyfolder.limits import read_within
from anyfolder.pixels.images import decode

from .build_listing import SEGMENTS, Draft, build_listing
from .class_names import class_name, warn_merged
from .file_contents import reading
from .findings import Findings
from .formats.coco import categories_of, images_by_id
from .formats.json_values import is_yes, key_of
from .geometry import box_of_mask
from .identity import Index
from .image_tree import Tree
from .listing import Listing
from .pixel_maps import probe_maps
from .records import ImageRecord, Instance, Records

SUFFIXES = ('.jpg', '.png')  # image suffixes for which MMDetection finds the PNG


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
    """The segment number of each pixel (H, W); 0 is unlabeled."""
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
    findings, records, kinds = Findings(skip_invalid), Records(), dict[str, bool]()
    for file, content in files.items():
        with reading(file, 'an image or a segment', 'COCO panoptic'):
            records += _records(tree, file, content, kinds, findings)
    warn_merged(kinds, findings)
    things, stuff = (
        [name for name, is_thing in kinds.items() if is_thing is wanted] for wanted in (True, False)
    )

    def compare(records: Records) -> Records:
        seen = [*probe_maps(records, _probe_all, 'PNGs of segments', findings)]
        for record, found in seen:
            _compare(record, found, findings)
        return [record for record, _ in seen]

    images = Index(tree.folder, [record.path for record in records])  # PNGs are named after them
    draft = Draft(
        SEGMENTS, 'COCO panoptic', tree, records, [*things, *stuff], used=files, listed=images
    )
    listing = build_listing(draft, findings, compare)
    listing.stuff = sum(name in stuff for name in listing.classes)
    return listing


def _records(
    tree: Tree, file: Path, content: Any, kinds: dict[str, bool], findings: Findings
) -> Iterable[ImageRecord]:
    split = tree.stated_split(file)
    categories = {
        key_of(one['id']): (class_name(str(one['name'])), is_yes(one['isthing']))
        for one in categories_of(content)
    }
    for name, is_thing in categories.values():
        if kinds.setdefault(name, is_thing) != is_thing:
            raise ValueError(f'{name!r} is both a thing and stuff')
    records = {
        number: tree.record(
            tree.resolve(image.name, file, split, findings) or file,
            file,
            split,
            stated=image.stated,
        )
        for number, image in images_by_id(content['images']).items()
    }
    for found in content['annotations']:
        record = records[key_of(found['image_id'])]
        png = Path(found['file_name']).name  # in no other folder, whatever the file says
        places = [file.with_suffix('') / png, file.parent / png]
        record.mask = next(filter(os.path.isfile, places), None)
        if record.mask is None:
            findings.reject(
                'PNGs of segments are missing',
                'put them into a folder named after their annotation file',
                str(places[0]),
            )
        elif record.path != file:
            record.instances = [
                Segment(
                    categories[key_of(one['category_id'])][0],
                    (),
                    crowd=is_yes(one.get('iscrowd')),
                    origin=f'segment {one["id"]} of {record.mask}',
                    number=int(one['id']),
                )
                for one in found['segments_info']
            ]
            yield record


def _probe_all(png: Path) -> tuple[Sequence[int], dict[int, tuple]]:
    """The shape (H, W) of a PNG, and the box and area of each number in it."""
    numbers, found = numbers_in(png), {}
    for number in np.unique(numbers).tolist():
        mask = numbers == number
        found[number] = (box_of_mask(mask), int(mask.sum()))
    return numbers.shape, found


def _compare(record: ImageRecord, found: dict[int, tuple], findings: Findings) -> None:
    """Compute boxes and areas from the pixels."""
    kept: list[Instance] = []
    for segment in record.instances:
        assert isinstance(segment, Segment)
        if segment.number not in found:
            findings.warn('segments left out, since they have no pixel', segment.origin)
            continue
        segment.box, segment.area = found.pop(segment.number)
        kept.append(segment)
    record.instances = kept
    findings.warn_all(
        'numbers in PNGs that are not listed, taken as no segment',
        (f'{number} in {record.mask}' for number in found if number),
    )


def as_panoptic(listing: Listing, part: Records) -> dict[str, Any]:
    """Images with their segments, as the content of a panoptic annotation file."""
    things = len(listing.classes) - (listing.stuff or 0)
    images, annotations = [], []
    for number, record in enumerate(part, 1):
        width, height = record.size
        images.append(dict(id=number, file_name=record.path.name, width=width, height=height))
        segments = [
            dict(
                id=found.number,
                category_id=listing.numbers[found.name] + 1,
                bbox=list(found.box),
                area=found.area,
                iscrowd=int(found.crowd),
            )
            for found in record.instances
            if isinstance(found, Segment)
        ]
        annotations.append(
            dict(image_id=number, file_name=png_of(record.path), segments_info=segments)
        )
    categories = [
        dict(id=number, name=name, isthing=int(number <= things))
        for number, name in enumerate(listing.classes, 1)
    ]
    return dict(images=images, annotations=annotations, categories=categories)


def png_of(path: Path) -> str:
    """The name of the PNG of an image, by which MMDetection finds it."""
    return f'{path.stem}.png'
