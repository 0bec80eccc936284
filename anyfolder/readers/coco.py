"""COCO: JSON files with images, annotations and categories, one in all or one per split."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .class_names import warn_repeated
from .findings import Findings
from .image_tree import Tree, stated_size
from .polygons import box_around
from .records import (
    Annotations,
    ImageRecord,
    Instance,
    Json,
    Records,
    is_ignored,
    properties_of,
    reading,
    text_of,
)
from .splits import Split

BOXES = {'bbox', 'segmentation'}


def is_coco(content: Any) -> bool:
    """True if this is the content of a file of COCO with boxes, or with categories and no box."""
    match content:
        case {'images': _, 'annotations': [_, *_] as objects}:
            return any(isinstance(one, Mapping) and BOXES & one.keys() for one in objects)
        case {'images': _, 'annotations': found, 'categories': _}:
            return not found
    return False


def read_coco(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> Annotations:
    """The images that some files of COCO list, and the names of their categories.

    Categories are told apart by their names: two of one name are one class, and one without an
    object is none, as Roboflow's first.

    Args:
        tree: the files of the folder.
        files: what is in each file of COCO.
        findings: what is noticed.

    Raises:
        InputError: if a file is not complete.
    """
    by_split: dict[Split | None, list[Path]] = defaultdict(list)
    for file in files:
        by_split[tree.split_said(file)].append(file)
    records: Records = []
    names: list[str] = []
    for split, group in by_split.items():
        chosen = [file for file in group if file.stem.startswith('inst')] or group
        findings.warn_all(
            'files left out, since another has the boxes of these images',
            sorted({*group} - {*chosen}),
        )
        for file in chosen:
            records += _records(tree, split, file, files[file], findings)
            names += _names(file, files[file], findings)
    return Annotations(records, names)


def _names(file: Path, content: Json, findings: Findings) -> list[str]:
    names = [text_of(category['name']) for category in categories_of(content)]
    warn_repeated(names, file, findings)
    return names


def _records(
    tree: Tree, split: Split | None, file: Path, content: Json, findings: Findings
) -> Records:
    with reading(file, 'an image or a box', 'COCO'):
        records = listed_images(tree, split, file, content['images'], findings)
        categories = categories_of(content)
        names = {key_of(category['id']): text_of(category['name']) for category in categories}
        if len(names) < len(categories):
            raise ValueError('two categories have one id')
        for i, found in enumerate(content['annotations']):
            origin = f'annotation {found.get("id", i)!r} in {file}'
            image_id, category_id = key_of(found['image_id']), key_of(found['category_id'])
            if image_id not in records:
                findings.reject(
                    'annotations are of images that their file does not list',
                    'add the images',
                    f'{found["image_id"]!r} of {origin}',
                )
            elif category_id not in names:
                findings.reject(
                    'annotations have a category that their file does not list',
                    'add the category',
                    f'{found["category_id"]!r} of {origin}',
                )
            else:
                records[image_id].instances.append(_instance(names[category_id], found, origin))
    return [record for record in records.values() if record.path != file]


def listed_images(
    tree: Tree, split: Split | None, file: Path, images: Any, findings: Findings
) -> dict[str, ImageRecord]:
    """The images that a file lists, by their ids. The path of a missing one is that file."""
    records: dict[str, ImageRecord] = {}
    for image in images:
        number = key_of(image['id'])
        if number in records:
            raise ValueError(f'two images have the id {image["id"]!r}')
        name = image.get('file_name') or image.get('coco_url')  # LVIS has URLs
        if not name:
            raise ValueError(f"the image {image['id']!r} has no 'file_name'")
        path = tree.resolve(str(name), file, split, findings) or file
        stated = stated_size(image.get('width'), image.get('height'))
        records[number] = tree.record(path, file, split, stated=stated)
    return records


def categories_of(content: Json) -> Sequence[Json]:
    """The categories, which some files have as names by ids, ids by names, or objects by either."""
    found = content['categories']
    if not isinstance(found, Mapping):
        return found
    by_name = all(isinstance(value, int) for value in found.values())
    pairs = (pair[::-1] if by_name else pair for pair in found.items())
    return [
        {'id': key, 'name': key, **(value if isinstance(value, Mapping) else dict(name=value))}
        for key, value in pairs
    ]


def key_of(number: Any) -> str:
    """An id as it is compared: some files have 1 in one place, and '1' or 1.0 in another."""
    return str(number).strip().removesuffix('.0')


def _instance(name: str, found: Json, origin: str) -> Instance:
    mask = found.get('segmentation')
    if isinstance(mask, list):
        if mask and not isinstance(mask[0], (list, dict)):
            mask = [mask]  # one polygon without the list around it
        mask = [part for part in mask if part]
        if len(mask) == 1 and isinstance(mask[0], dict):
            mask = mask[0]  # run lengths within a list
    box = found.get('bbox') or (box_around(mask) if mask and isinstance(mask, list) else None)
    return Instance(
        name,
        box if isinstance(box, (list, tuple)) else [box],
        mask or None,
        is_ignored(found),
        found.get('area'),
        # Of CVAT in the attributes, of other programs beside the box.
        next((value for key, value in properties_of(found) if key == 'rotation' and value), None),
        origin,
    )
