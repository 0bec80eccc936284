"""COCO: JSON files with images, annotations and categories, one in all or one per split."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import Instance
from .json_values import Json, are_ignored, key_of, properties_of, stated_size, text_of
from .parsed import Fault, Parsed, ParsedImage

SHAPE_KEYS = {'bbox', 'segmentation'}  # one of which each object has


def is_coco(content: Any, file: Path) -> bool:
    """True if this is the content of a COCO file with boxes, or with categories and no objects."""
    match content:
        case {'images': _, 'annotations': [_, *_] as objects}:
            return any(isinstance(item, Mapping) and SHAPE_KEYS & item.keys() for item in objects)
        case {'images': _, 'annotations': objects, 'categories': _}:
            return not objects
    return False


def parse_coco(content: Json, file: Path) -> Parsed:
    """The images in a COCO file, and the names of its categories in order.

    Categories are distinguished by name: two with the same name are one class. A category without
    objects, like Roboflow's first, is left out later, by ``build_listing``.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: if the file is incomplete.
    """
    images, faults = images_by_id(content['images']), list[Fault]()
    categories = categories_of(content)
    names = {key_of(category['id']): text_of(category['name']) for category in categories}
    if len(names) < len(categories):
        raise ValueError('two categories have the same id')
    for i, annotation in enumerate(content['annotations']):
        origin = f'annotation {annotation.get("id", i)!r} in {file}'
        image_id, category_id = key_of(annotation['image_id']), key_of(annotation['category_id'])
        if image_id not in images:
            what = 'annotations belong to images that their file does not list'
            faults.append(Fault(what, f'{annotation["image_id"]!r} of {origin}', 'add the images'))
        elif category_id not in names:
            what = 'annotations have a category that their file does not list'
            example = f'{annotation["category_id"]!r} of {origin}'
            faults.append(Fault(what, example, 'add the category'))
        else:
            images[image_id].objects.append(_instance(names[category_id], annotation, origin))
    ordered_names = [text_of(category['name']) for category in categories]
    return Parsed([*images.values()], ordered_names, faults)


def images_by_id(images: Sequence[Json]) -> dict[str, ParsedImage]:
    """The images of a file by their ids, see :func:`~.json_values.key_of`.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: if an image has no id or name, or two have
            the same id.
    """
    image_of: dict[str, ParsedImage] = {}
    for image in images:
        image_id = key_of(image['id'])
        if image_id in image_of:
            raise ValueError(f'two images have the id {image["id"]!r}')
        name = image.get('file_name') or image.get('coco_url')  # LVIS has URLs
        if not name:
            raise ValueError(f"the image {image['id']!r} has no 'file_name'")
        stated = stated_size(image.get('width'), image.get('height'))
        image_of[image_id] = ParsedImage(str(name), stated_size=stated)
    return image_of


def categories_of(content: Json) -> Sequence[Json]:
    """The categories, each with an id and a name.

    Some files store them as a mapping: names by id, ids by name, or objects by id or name.
    """
    categories = content['categories']
    if not isinstance(categories, Mapping):
        return categories
    if all(isinstance(value, int) for value in categories.values()):
        return [{'id': number, 'name': name} for name, number in categories.items()]
    return [
        {'id': key, 'name': key, **(value if isinstance(value, Mapping) else dict(name=value))}
        for key, value in categories.items()
    ]


def _instance(name: str, annotation: Json, origin: str) -> Instance:
    """The object of an annotation. A box that is not a list is kept, to be rejected later."""
    mask, box = annotation.get('segmentation'), annotation.get('bbox')
    if isinstance(mask, list):
        if mask and not isinstance(mask[0], (list, dict)):
            mask = [mask]  # one polygon without the list around it
        mask = [part for part in mask if part]
        if len(mask) == 1 and isinstance(mask[0], dict):
            mask = mask[0]  # run lengths within a list
    if not isinstance(box, (list, tuple)):
        box = [box] if box else ()
    properties = properties_of(annotation)
    return Instance(
        name,
        box,
        mask or None,
        crowd=are_ignored(properties),
        area=annotation.get('area'),
        # CVAT stores the rotation in the attributes, other programs next to the box.
        degrees=next((value for key, value in properties if key == 'rotation' and value), None),
        origin=origin,
    )
