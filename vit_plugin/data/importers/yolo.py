"""YOLO: a text file per image. Lines are ``class x y width height`` or an outline, normalised."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.files.text import read_lines, read_text

from .findings import Findings
from .instances import Instance
from .photos import Annotations, Photo, Tree, read_sizes
from .splits import SPLITS, Split, split_of

NAMES = (
    'classes.txt',
    'obj.names',
    '_darknet.labels',
    'labels.txt',
    'names.txt',
)  # a name on each line
BEYOND = 0.05  # of the image, by which a value may exceed it by rounding
FORM = 'a class and 4 numbers, or an outline'


def find_settings(tree: Tree) -> tuple[Path, dict[str, Any]] | None:
    """The YAML file with the names of the classes, and its content, or None."""
    for file in tree.others:
        if file.suffix.lower() not in ('.yaml', '.yml'):
            continue
        try:
            content = yaml.safe_load(read_text(file))
        except yaml.YAMLError as error:
            raise ConfigError(
                f'--data: {str(file)!r} is not YAML ({first_line(error)}); correct it.'
            ) from error
        if isinstance(content, dict) and 'names' in content:
            return file, content
    return None


def find_names(tree: Tree) -> tuple[Path, list[str]] | None:
    """The file with the names of the classes, and the names, or None.

    Raises:
        ConfigError: if the names in a YAML file are not a list.
    """
    settings = find_settings(tree)
    if settings:
        names = settings[1]['names']
        if isinstance(names, dict) and all(str(key).isdecimal() for key in names):
            names = [
                names.get(i, names.get(str(i), f'class {i}'))
                for i in range(1 + max(map(int, names)))
            ]
        if not isinstance(names, list):
            raise ConfigError(
                f'--data: names of {str(settings[0])!r} must be a list of the classes, or number: '
                'name.'
            )
        return settings[0], [str(name).strip() for name in names]
    file = next((path for name in NAMES for path in tree.others if path.name == name), None)
    return (file, read_lines(file)) if file else None


def label_files(tree: Tree) -> dict[Path, Path]:
    """The image of each text file: of the same name in ``images`` for ``labels``, or beside it."""
    found = {}
    for file in tree.others:
        if file.suffix.lower() == '.txt' and file.name not in NAMES:
            folders = ['images' if part == 'labels' else part for part in tree.parts(file)]
            image = tree.with_stem(file.stem, Path(tree.folder, *folders, file.name))
            if image is not None:
                found[file] = image
    return found


def read_yolo(tree: Tree, labels: dict[Path, Path], findings: Findings) -> Annotations:
    """The photographs and class names of a YOLO folder. Those without a label file have no objects.

    Raises:
        ConfigError: if no file names the classes, or if a line is not of this form.
    """
    named = find_names(tree)
    if named is None:
        raise ConfigError(
            f'--data: {str(tree.folder)!r} has boxes as YOLO, and no file with the names of the '
            'classes; add data.yaml with names: [...], or classes.txt with a name on each line.'
        )
    places = list(_places(tree))
    listed: dict[Path, Split] = {}
    for place, split in places:
        for image in _images_of(tree, place):
            if listed.setdefault(image, split) != split:
                findings.note('images that are named for two parts, taken for the first', image)
    of_image = {image: file for file, image in labels.items()}
    photos = [
        Photo(image, listed.get(image) or tree.split(image), origin=str(of_image.get(image, image)))
        for image in tree.images
    ]
    photos = read_sizes(photos, findings)
    settings = find_settings(tree)
    keypoints = math.prod(settings[1].get('kpt_shape') or [0]) if settings else 0
    for photo in photos:
        file = of_image.get(photo.path)
        if file is None:
            findings.note('images without a file of labels, taken as without an object', photo.path)
            continue
        for number, line in enumerate(read_lines(file), 1):
            origin = f'line {number} of {file}'
            found = _instance(line.split(), photo, named, keypoints, origin, findings)
            if found:
                photo.instances.append(found)
    orphans = [
        file
        for file in tree.others
        if file.suffix == '.txt'
        and 'labels' in tree.parts(file)
        and file not in labels
        and file.name not in NAMES
    ]
    findings.note_all('files of labels left out, without an image of their name', orphans)
    return Annotations(photos, named[1], [named[0], *orphans, *(place for place, _ in places)])


def _instance(
    words: Sequence[str],
    photo: Photo,
    named: tuple[Path, list[str]],
    keypoints: int,
    origin: str,
    findings: Findings,
) -> Instance | None:
    try:
        label, *values = map(float, words)
    except ValueError:
        label, values = math.nan, []
    names, text = named[1], ' '.join(words)
    if len(values) == 4 + keypoints:
        values = values[:4]
    outline = len(values) >= 6
    if outline and len(values) % 2:
        values = values[:-1]  # with a score
    if (
        label != int(label if math.isfinite(label) else -1)
        or len(values) < 4
        or not all(map(math.isfinite, values))
    ):
        findings.refuse(f'lines are not {FORM}', 'correct them', f'{text!r}, {origin}')
        return None
    if not 0 <= label < len(names):
        findings.refuse(
            f'lines have a class that {named[0].name} does not name; it has {len(names)}, from 0',
            'add its name',
            f'class {label:g}, {origin}',
        )
        return None
    if max(values) > 1 + BEYOND or min(values) < -BEYOND:
        findings.refuse(
            'lines have values beyond 0 to 1, which are shares of the width and height',
            'divide pixels by the size of the image',
            f'{text!r}, {origin}',
        )
        return None
    width, height = photo.size
    if outline:
        points = [value * (width, height)[i % 2] for i, value in enumerate(values)]
        return Instance.of_polygons(names[int(label)], [points], origin)
    x, y, w, h = values[:4]
    box = (x - w / 2) * width, (y - h / 2) * height, w * width, h * height
    return Instance(names[int(label)], box, origin=origin)


def _places(tree: Tree) -> Iterator[tuple[Path, Split]]:
    """The image folders and lists of each split, from the YAML file, else ``train.txt`` etc."""
    settings = find_settings(tree)
    if not settings:
        lists = [path for path in tree.others if path.suffix.lower() == '.txt']
        yield from ((path, split) for path in lists if (split := split_of(path.stem)))
        return
    file, content = settings
    roots = [file.parent, file.parent / str(content.get('path') or ''), tree.folder]
    for split in SPLITS:
        places = content.get(split) or content.get('valid' if split == 'val' else split) or []
        for place in [places] if isinstance(places, str) else places:
            # It may begin with ../
            kept = Path(*(part for part in Path(place).parts if part not in ('..', '.', '/')))
            found = next((root / kept for root in roots if (root / kept).exists()), None)
            if found:
                yield found, split


def _images_of(tree: Tree, place: Path) -> list[Path]:
    """The images in a folder, or in a list."""
    if place.is_dir():
        return [image for image in tree.images if place in image.parents]
    return [image for line in read_lines(place) if (image := tree.find(line, place))]
