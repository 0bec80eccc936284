"""Write COCO: ``annotations/instances_train.json`` next to ``train/``, or panoptic PNGs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anyfolder.dataset import Dataset, Object
from anyfolder.readers.panoptic import Segment, as_panoptic
from anyfolder.readers.records import ImageRecord

from .placed_images import PlacedImage, place_file

IGNORED = 'ignored'  # the category of regions without a class


def write_coco(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write objects, or segments for panoptic data, with a file for each split."""
    is_panoptic = data.task == 'panoptic'
    kind = 'panoptic' if is_panoptic else 'instances'
    (out / 'annotations').mkdir(parents=True)
    for split in data.splits:
        entries = [entry for entry in placed if entry.split == split]
        for entry in entries:
            place_file(entry.image.path, out / split / entry.name, copy)
            if is_panoptic and entry.image.mask:
                target = out / f'annotations/panoptic_{split}/{entry.stem}.png'
                place_file(entry.image.mask, target, copy)
        if entries:
            content = (
                _panoptic_content(data, entries)
                if is_panoptic
                else _instances_content(data, entries)
            )
            file = out / f'annotations/{kind}_{split}.json'
            file.write_text(json.dumps(content), encoding='utf-8')


def _image_entries(placed: Sequence[PlacedImage]) -> list[dict[str, Any]]:
    return [
        dict(id=number, file_name=entry.name, width=entry.image.size[0], height=entry.image.size[1])
        for number, entry in enumerate(placed, 1)
    ]


def _instances_content(data: Dataset, placed: Sequence[PlacedImage]) -> dict[str, Any]:
    annotations: list[dict[str, Any]] = []
    numbers = {name: number for number, name in enumerate(data.classes, 1)}
    if any(not obj.label for entry in placed for obj in entry.image.objects):
        numbers[''] = len(numbers) + 1
    for number, entry in enumerate(placed, 1):
        for obj in entry.image.objects:
            annotation = _annotation(obj, len(annotations) + 1)
            annotations.append(dict(annotation, image_id=number, category_id=numbers[obj.label]))
    categories = [dict(id=number, name=name or IGNORED) for name, number in numbers.items()]
    return dict(images=_image_entries(placed), annotations=annotations, categories=categories)


def _annotation(obj: Object, number: int) -> dict[str, Any]:
    return dict(
        id=number,
        bbox=[round(value, 6) for value in obj.box],
        area=round(obj.area, 6),
        iscrowd=int(obj.crowd),
        segmentation=_for_json(obj.segmentation) or [],
    )


def _for_json(segmentation: Any) -> Any:
    """A segmentation for JSON, which cannot hold bytes."""
    counts = segmentation.get('counts') if isinstance(segmentation, dict) else None
    return dict(segmentation, counts=counts.decode()) if isinstance(counts, bytes) else segmentation


def _panoptic_content(data: Dataset, placed: Sequence[PlacedImage]) -> dict[str, Any]:
    records = [
        ImageRecord(
            Path(entry.name),
            size=entry.image.size,
            instances=[
                Segment(obj.label, obj.box, crowd=obj.crowd, area=obj.area, number=obj.segment)
                for obj in entry.image.objects
            ],
        )
        for entry in placed
    ]
    return as_panoptic(records, data.classes, data.stuff)
