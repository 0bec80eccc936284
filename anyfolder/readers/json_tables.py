"""JSON with images and their classes, as the rows of a table, see :mod:`.label_tables`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anyfolder.pixels.image_files import IMAGE_SUFFIXES

from .formats.json_values import key_of
from .formats.label_studio import tasks_in
from .splits import split_of
from .tables import Row, text_in_cell

# Keys whose value can be a list of images, or of pairs of image and label.
LIST_KEYS = ('data', 'items', 'samples', 'images', 'labels', 'annotations')


def rows_in_json(content: Any) -> list[Row]:
    """The rows in the content of a JSON file, by column; empty for other files.

    Supported are images with COCO categories and no boxes, as in iNaturalist; MMPretrain's
    ``data_list``; a list of objects or of pairs of image and label, as in StyleGAN's
    ``dataset.json``; and an object with the label of each image.
    """
    rows = [*_rows(content)]
    columns = dict.fromkeys(key for row in rows for key in row)
    return [{key: text_in_cell(row.get(key)) for key in columns} for row in rows]


def _rows(content: Any) -> Iterator[Mapping[str, Any]]:
    """The rows of :func:`rows_in_json`, with the values as they are in the file."""
    match content:
        case {'images': [*images], 'annotations': [*annotations], 'categories': [*categories]}:
            yield from _rows_of_coco(images, annotations, categories)
        case [{'data': {}}, *_]:
            yield from _rows_of_label_studio(content)
        case {'metainfo': {'classes': [*classes]}, 'data_list': [*images]}:
            for image in _objects(images):
                label = _named(image.get('gt_label'), classes)
                yield {'file': image.get('img_path'), 'label': label}
        case [*_]:
            yield from _rows_of_list(content)
        case {}:
            yield from _rows_of_object(content)


def _named(label: Any, classes: Sequence[Any]) -> Any:
    """The name of a class number, or the names in a list of numbers; other labels as they are."""
    if isinstance(label, list):
        return [_named(one, classes) for one in label]
    is_number = isinstance(label, int) and 0 <= label < len(classes)
    return classes[label] if is_number else label


def _rows_of_object(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The label of each image, or lists of images, one for each split."""
    labeled = [key for key, value in content.items() if _is_labeled(key, value)]
    if 2 * len(labeled) > len(content):
        # If all values are splits, the file is a list for these.
        if not all(split_of(str(content[name])) for name in labeled):
            yield from ({'file': name, 'label': content[name]} for name in labeled)
        return
    for key, value in content.items():
        if isinstance(value, list) and (key in LIST_KEYS or split_of(key)):
            split = {'split': key} if split_of(key) else {}
            yield from ({**row, **split} for row in _rows_of_list(value))


def _is_labeled(key: str, value: Any) -> bool:
    """True if a key is an image or a folder of images, and its value a label.

    A key that is a number has a class name as its value, not a label.
    """
    if key.lower().endswith(IMAGE_SUFFIXES):
        return True
    return isinstance(value, (str, int)) and not key.isdecimal()


def _rows_of_list(values: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """The objects of a list, or its pairs of image and label."""
    yield from _objects(values)
    pairs = (value for value in values if isinstance(value, list) and len(value) == 2)
    for name, label in pairs:
        yield {'file': name, 'label': label}


def _rows_of_label_studio(content: Any) -> Iterator[Mapping[str, Any]]:
    """The choices of each image that was annotated."""
    for task in tasks_in(content):
        regions = task.annotations[0] if task.annotations else ()
        choices = [name for region in regions for name in region.get('choices') or ()]
        if choices:
            yield {'file': task.image, 'label': choices}


def _rows_of_coco(
    images: Sequence[Any], annotations: Sequence[Any], categories: Sequence[Any]
) -> Iterator[Mapping[str, Any]]:
    """The file and category of each annotation. Annotations of unlisted images are left out."""
    files = {key_of(image.get('id')): image.get('file_name') for image in _objects(images)}
    names = {key_of(category.get('id')): category.get('name') for category in _objects(categories)}
    for annotation in _objects(annotations):
        if file := files.get(key_of(annotation.get('image_id'))):
            number = key_of(annotation.get('category_id'))
            yield {'file': file, 'label': names.get(number) or number}


def _objects(values: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, Mapping))
