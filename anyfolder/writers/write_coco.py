"""COCO: ``annotations/instances_train.json`` next to ``train/``, or with PNGs of segments."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anyfolder.dataset import Dataset, Object

from .placed_images import PlacedImage, place_file

IGNORED = 'ignored'  # the category of regions without a class


def write_coco(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write objects, or segments for panoptic data, with a file for each split."""
    is_panoptic = data.task == 'panoptic'
    kind = 'panoptic' if is_panoptic else 'instances'
    (out / 'annotations').mkdir(parents=True)
    for split in data.splits:
        own = [one for one in placed if one.split == split]
        for one in own:
            place_file(one.image.path, out / split / one.name, copy)
            if is_panoptic and one.image.mask:
                target = out / f'annotations/panoptic_{split}/{one.stem}.png'
                place_file(one.image.mask, target, copy)
        if own:
            content = _panoptic(data, own) if is_panoptic else _instances(data, own)
            file = out / f'annotations/{kind}_{split}.json'
            file.write_text(json.dumps(content), encoding='utf-8')


def _listed(placed: Sequence[PlacedImage]) -> list[dict[str, Any]]:
    return [
        dict(id=number, file_name=one.name, width=one.image.size[0], height=one.image.size[1])
        for number, one in enumerate(placed, 1)
    ]


def _instances(data: Dataset, placed: Sequence[PlacedImage]) -> dict[str, Any]:
    annotations: list[dict[str, Any]] = []
    numbers = {name: number for number, name in enumerate(data.classes, 1)}
    if any(not found.label for one in placed for found in one.image.objects):
        numbers[''] = len(numbers) + 1
    for number, one in enumerate(placed, 1):
        for found in one.image.objects:
            annotation = _annotation(found, len(annotations) + 1)
            annotations.append(dict(annotation, image_id=number, category_id=numbers[found.label]))
    categories = [dict(id=number, name=name or IGNORED) for name, number in numbers.items()]
    return dict(images=_listed(placed), annotations=annotations, categories=categories)


def _annotation(found: Object, number: int) -> dict[str, Any]:
    return dict(
        id=number,
        bbox=[round(value, 6) for value in found.box],
        area=round(found.area, 6),
        iscrowd=int(found.crowd),
        segmentation=_text_counts(found.segmentation) or [],
    )


def _text_counts(segmentation: Any) -> Any:
    """A segmentation for JSON, which cannot hold bytes."""
    counts = segmentation.get('counts') if isinstance(segmentation, dict) else None
    return dict(segmentation, counts=counts.decode()) if isinstance(counts, bytes) else segmentation


def _panoptic(data: Dataset, placed: Sequence[PlacedImage]) -> dict[str, Any]:
    things = len(data.classes) - data.stuff
    annotations = [
        dict(
            image_id=number,
            file_name=f'{one.stem}.png',
            segments_info=[
                dict(
                    id=found.segment,
                    category_id=data.number_of(found.label) + 1,
                    bbox=list(found.box),
                    area=found.area,
                    iscrowd=int(found.crowd),
                )
                for found in one.image.objects
            ],
        )
        for number, one in enumerate(placed, 1)
    ]
    categories = [
        dict(id=number, name=name, isthing=int(number <= things))
        for number, name in enumerate(data.classes, 1)
    ]
    return dict(images=_listed(placed), annotations=annotations, categories=categories)
