"""Folders of images with boxes, in the forms of Pascal VOC and COCO: which classes, images and boxes they have."""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vit_plugin.errors import ConfigError

from .folders import SEED, hold_out

VALIDATION = ('val', 'test')  # parts of file names, the first that exists is taken
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')


class Part(NamedTuple):
    """The images for training or for validation.

    Attributes:
        listing: the content of the annotation file: names for VOC, COCO's JSON. None if ``file`` is it already.
        file: COCO's file that lists them.
        folder: where COCO's images are, within the data's folder.
        images: paths of the images.
        boxes: width and height of each box, as shares of the longer side of its image (N, 2).
        classes: names of the classes that have a box here.
    """
    listing: str | None
    file: str
    folder: str
    images: list[Path]
    boxes: np.ndarray
    classes: set[str]


class AnnotatedFolder(NamedTuple):
    """What a folder of images with boxes has.

    Attributes:
        form: ``'voc'`` or ``'coco'``.
        classes: names of the classes that have a box to train on, in the order of their labels.
        train, val: the images.
        held_out: whether ``val`` was drawn from the images for training.
    """
    form: str
    classes: tuple[str, ...]
    train: Part
    val: Part
    held_out: bool


def read_annotated_folder(folder: str | Path) -> AnnotatedFolder:
    """Read a folder of Pascal VOC (``Annotations/*.xml``) or of COCO (``annotations/*.json``).

    Without a list for validation, a tenth of the images is held out, the same ones each time.

    Raises:
        ConfigError: if it is neither, if a file is missing or cannot be read, if there are no boxes, or if a class for
            validation is not among those for training.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f'--data: there is no folder {str(folder)!r}.')
    form = form_of(folder)
    if form is None:
        raise ConfigError(f'--data: {str(folder)!r} has neither Annotations/*.xml as Pascal VOC nor annotations/*.json '
                          'as COCO; put the boxes there, or leave out --task for a folder of classes.')
    classes, train, val, held_out = dict(voc=_read_voc, coco=_read_coco)[form](folder)
    if not train.classes:
        raise ConfigError(f'--data: no image of {str(folder)!r} to train on has a box; add some.')
    foreign = sorted(val.classes - train.classes)
    if foreign and not held_out:
        raise ConfigError(f'--data: images for validation in {str(folder)!r} have boxes of the class {foreign[0]!r}, '
                          'and those for training have none; remove them, or add boxes to train on.')
    return AnnotatedFolder(form, tuple(name for name in classes if name in train.classes), train, val, held_out)


def form_of(folder: Path) -> str | None:
    """``'voc'``, ``'coco'``, or None where a folder has no boxes in one of these forms."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()  # some disks do not tell A from a
    forms = dict(voc='Annotations/*.xml', coco='annotations/*.json')
    return next((form for form, files in forms.items() if Path(files).parts[0] in names and any(folder.glob(files))),
                None)


def _divide(items: list[Any]) -> tuple[list[Any], list[Any]]:
    """The items to train on, and those that are held out."""
    held, others = hold_out(items, np.random.default_rng(SEED))
    if not held:
        raise ConfigError('--data: one image cannot be trained on and held out; add more.')
    return others, held


def _part(listing: str | None, file: str, folder: str, images: list[Path],
          boxes: Iterable[tuple[str, float, float, float]]) -> Part:
    """A part of which each box is given by its class, width, height and the longer side of its image."""
    named = list(boxes)
    sides = np.array([box[1:] for box in named], dtype=float).reshape(-1, 3)
    return Part(listing, file, folder, images, sides[:, :2] / sides[:, 2:], {box[0] for box in named})


def _read_voc(folder: Path) -> tuple[list[str], Part, Part, bool]:
    lists = folder / 'ImageSets/Main'
    val = next((lists / f'{name}.txt' for name in VALIDATION if (lists / f'{name}.txt').is_file()), None)
    train = lists / 'train.txt'
    if train.is_file() and val:
        parts, held_out = [_names(folder, train), _names(folder, val)], False
    else:
        every = next((file for file in (train, lists / 'trainval.txt') if file.is_file()), None)
        parts = list(_divide(_names(folder, every) if every else sorted(
            path.stem for path in (folder / 'Annotations').glob('*.xml'))))
        held_out = True
    train, val = (_voc_part(folder, names) for names in parts)
    return sorted(train.classes), train, val, held_out


def _names(folder: Path, file: Path) -> list[str]:
    """The images of a list. The list of a class has -1, 0 or 1 after each."""
    lines = [line.strip() for line in file.read_text().splitlines() if line.strip()]
    return [line if (folder / f'Annotations/{line}.xml').is_file() else re.sub(r'\s+(-1|0|1)$', '', line)
            for line in lines]


def _voc_part(folder: Path, names: list[str]) -> Part:
    images, boxes = [], []
    for name in names:
        file, image = folder / f'Annotations/{name}.xml', folder / f'JPEGImages/{name}.jpg'
        for path in (file, image):
            if not path.is_file():
                raise ConfigError(f'--data: there is no {str(path)!r}, which belongs to an image of that name in '
                                  'ImageSets/Main or Annotations; Pascal VOC has .jpg files only.')
        images.append(image)
        try:
            root = ET.parse(file).getroot()
            size = max(float(_text(root, f'size/{side}')) for side in ('width', 'height'))
            if not size > 0:
                raise ValueError('its size is 0')
            for found in root.findall('object'):
                left, top, right, bottom = (float(_text(found, f'bndbox/{corner}')) for corner in CORNERS)
                boxes.append((_text(found, 'name'), right - left, bottom - top, size))
        except (ET.ParseError, ValueError) as error:
            raise ConfigError(f'--data: {str(file)!r} is not an annotation of Pascal VOC with size, name and bndbox '
                              f'({type(error).__name__}: {error}); correct it.') from error
    return _part('\n'.join(names) + '\n', '', '', images, boxes)


def _text(node: ET.Element, path: str) -> str:
    text = node.findtext(path)
    if not text:
        raise ValueError(f'it has no {path}')
    return text


def _read_coco(folder: Path) -> tuple[list[str], Part, Part, bool]:
    files = sorted((folder / 'annotations').glob('*.json'), key=lambda file: (not file.stem.startswith('inst'), file))
    train = next((file for file in files if 'train' in file.stem), files[0] if len(files) == 1 else None)
    if train is None:
        raise ConfigError(f"--data: no file in {str(folder / 'annotations')!r} has train in its name, such as "
                          'instances_train.json; name one so.')
    val = next((file for name in VALIDATION for file in files if name in file.stem and file != train), None)
    content = _coco(train)
    categories = [category['name'] for category in content['categories']]
    if val:
        other = _coco(val)
        if [category['name'] for category in other['categories']] != categories:
            raise ConfigError(f'--data: {str(train)!r} and {str(val)!r} have different lists of categories, or in '
                              'another order; make them equal.')
        return categories, _coco_part(folder, train, content), _coco_part(folder, val, other), False
    parts = []
    for images in _divide(content['images']):
        chosen = {image['id'] for image in images}
        annotations = [found for found in content['annotations'] if found['image_id'] in chosen]
        part = {**content, 'images': images, 'annotations': annotations}
        parts.append(_coco_part(folder, train, part, complete=False))
    return categories, parts[0], parts[1], True


def _coco(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
        _ = [content[key] for key in ('images', 'annotations', 'categories')]
        if not content['images']:
            raise ValueError('no images')
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f'--data: {str(file)!r} is not a file of COCO with images, annotations and categories '
                          f'({type(error).__name__}: {error}); correct it.') from error
    return content


def _longer(image: Mapping[str, Any]) -> float:
    sides = image['width'], image['height']
    if not all(0 < side < math.inf for side in sides):
        raise ValueError(f'an image has the size {sides}')
    return max(sides)


def _box(found: Mapping[str, Any]) -> tuple[float, float]:
    box = found['bbox']
    if len(box) != 4 or not all(isinstance(value, (int, float)) and math.isfinite(value) for value in box):
        raise ValueError(f'the bbox {box!r} is not 4 finite numbers')
    return box[2], box[3]


def _coco_part(folder: Path, file: Path, content: Mapping[str, Any], complete: bool = True) -> Part:
    try:
        names = {category['id']: category['name'] for category in content['categories']}
        sizes = {image['id']: _longer(image) for image in content['images']}
        boxes = [(names[found['category_id']], *_box(found), sizes[found['image_id']])
                 for found in content['annotations'] if not found.get('iscrowd')]
        first = content['images'][0]['file_name']
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f'--data: {str(file)!r} has an image or a box that is not complete in the format of COCO '
                          f'({type(error).__name__}: {error}); correct it.') from error
    part = file.stem.rpartition('_')[2]
    short = 'train' if 'train' in part else part[:3]
    candidates = (part, f'images/{part}', short, f'images/{short}', 'images', 'JPEGImages', '')
    location = next((name for name in candidates if (folder / name / first).is_file()), None)
    if location is None:
        raise ConfigError(f'--data: the image {first!r} of {str(file)!r} is in none of the folders '
                          f'{", ".join(name or "." for name in candidates)} of {str(folder)!r}; put the images there.')
    return _part(None if complete else json.dumps(content), file.as_posix(), location,
                 [folder / location / image['file_name'] for image in content['images']], boxes)
