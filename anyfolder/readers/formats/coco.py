"""COCO: JSON files with images, annotations and categories, one in all or one per split."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import Instance
from .json_values import Json, are_ignored, key_of, properties_of, stated_size, text_of
from .parsed import Fault, Parsed, ParsedImage

BOXES = {'bbox', 'segmentation'}


def is_coco(content: Any, file: Path) -> bool:
    """True if this is the content of a COCO file with boxes, or with categories and no box."""
    match content:
        case {'images': _, 'annotations': [_, *_] as objects}:
            return any(isinstance(one, Mapping) and BOXES & one.keys() for one in objects)
        case {'images': _, 'annotations': found, 'categories': _}:
            return not found
    return False


def parse_coco(content: Json, file: Path) -> Parsed:
    """The images in a COCO file, and the names of its categories in order.

    Categories are distinguished by name: two with the same name are one class, and one without
    objects, like Roboflow's first, is not a class.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: if the file is incomplete.
    """
    images, faults = images_by_id(content['images']), list[Fault]()
    categories = categories_of(content)
    names = {key_of(category['id']): text_of(category['name']) for category in categories}
    if len(names) < len(categories):
        raise ValueError('two categories have the same id')
    for i, found in enumerate(content['annotations']):
        origin = f'annotation {found.get("id", i)!r} in {file}'
        image_id, category_id = key_of(found['image_id']), key_of(found['category_id'])
        if image_id not in images:
            what = 'annotations belong to images that their file does not list'
            faults.append(Fault(what, f'{found["image_id"]!r} of {origin}', 'add the images'))
        elif category_id not in names:
            what = 'annotations have a category that their file does not list'
            faults.append(Fault(what, f'{found["category_id"]!r} of {origin}', 'add the category'))
        else:
            images[image_id].objects.append(_instance(names[category_id], found, origin))
    return Parsed([*images.values()], [text_of(one['name']) for one in categories], faults)


def images_by_id(images: Sequence[Json]) -> dict[str, ParsedImage]:
    """The images of a file by their ids, see :func:`~.json_values.key_of`.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: if an image has no id or name, or two have
            the same.
    """
    found: dict[str, ParsedImage] = {}
    for image in images:
        number = key_of(image['id'])
        if number in found:
            raise ValueError(f'two images have the id {image["id"]!r}')
        name = image.get('file_name') or image.get('coco_url')  # LVIS has URLs
        if not name:
            raise ValueError(f"the image {image['id']!r} has no 'file_name'")
        stated = stated_size(image.get('width'), image.get('height'))
        found[number] = ParsedImage(str(name), stated=stated)
    return found


def categories_of(content: Json) -> Sequence[Json]:
    """The categories, which some files store as names by id, ids by name, or objects by either."""
    found = content['categories']
    if not isinstance(found, Mapping):
        return found
    by_name = all(isinstance(value, int) for value in found.values())
    pairs = (pair[::-1] if by_name else pair for pair in found.items())
    return [
        {'id': key, 'name': key, **(value if isinstance(value, Mapping) else dict(name=value))}
        for key, value in pairs
    ]


def _instance(name: str, found: Json, origin: str) -> Instance:
    mask, box = found.get('segmentation'), found.get('bbox')
    if isinstance(mask, list):
        if mask and not isinstance(mask[0], (list, dict)):
            mask = [mask]  # one polygon without the list around it
        mask = [part for part in mask if part]
        if len(mask) == 1 and isinstance(mask[0], dict):
            mask = mask[0]  # run lengths within a list
    properties = properties_of(found)
    return Instance(
        name,
        box if isinstance(box, (list, tuple)) else [box] if box else (),
        mask or None,
        are_ignored(properties),
        found.get('area'),
        # CVAT stores it in the attributes, other programs next to the box.
        next((value for key, value in properties if key == 'rotation' and value), None),
        origin,
    )
