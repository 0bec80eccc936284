"""YOLO: a text file per image. Lines are ``class x y width height`` or a polygon, normalized."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PureWindowsPath

import numpy as np

from vit_plugin.errors import ConfigError
from vit_plugin.files.text import read_lines

from .findings import Findings
from .image_tree import Tree, read_sizes
from .name_files import NAMES, Settings, find_names
from .records import Annotations, ImageRecord, Instance
from .split_lists import images_of
from .splits import SPLITS, Split, split_in

MAINLY = 0.9  # of all keypoints that lie in their box, and of all boxes that lie in the image
SCATTER = 0.5  # of the size minus the middle, over that of the middle; 0.1 of a polygon's points
BEYOND = 0.05  # of the image, by which a value may exceed it by rounding
FORM = 'a class and 4 numbers, or a polygon'


def _has_labels(file: Path) -> bool:
    return file.suffix.lower() == '.txt' and not any(fnmatch(file.name, name) for name in NAMES)


def is_label(file: Path) -> bool:
    """True if the first line of a file is a class and four numbers or more."""
    return bool(re.match(r'\d+(\.0)?(\s+[-+.\de]+){4,}$', ''.join(read_lines(file)[:1])))


def label_files(tree: Tree) -> list[Path]:
    """The text files of the name of an image. Those beside ``labels`` must have boxes."""
    found = [file for file in tree.others if _has_labels(file) and tree.index.has(file.stem)]
    within = {file for file in found if 'labels' in tree.parts(file)}
    return [file for file in found if not within or file in within or is_label(file)]


def read_yolo(
    tree: Tree, labels: Collection[Path], findings: Findings, settings: Settings | None
) -> Annotations:
    """Read the images of a YOLO folder. Those without a label file have no objects.

    Args:
        tree: the files of the folder.
        labels: from :func:`label_files`.
        findings: gets what is wrong.
        settings: from :func:`find_settings`.

    Raises:
        ConfigError: if no file names the classes, or if a line is not of this form.
    """
    named = find_names(tree, settings)
    if named is None:
        raise ConfigError(
            f'--data: {str(tree.folder)!r} has boxes as YOLO, and no file with the names of the '
            'classes; add data.yaml with names: [...], or classes.txt with a name on each line.'
        )
    places = list(_places(tree, settings, findings))
    listed = _listed(tree, places, findings)
    pairs = tree.index.pair({file: [file.stem] for file in labels}, findings)
    of_image = {image: file for file, image in pairs.image_of.items()}
    records = [
        ImageRecord(
            image, listed.get(image) or tree.split(image), origin=str(of_image.get(image, image))
        )
        for image in tree.images
        if image not in pairs.unclear
    ]
    records = read_sizes(tree, records, findings)
    lines = {file: read_lines(file) for file in of_image.values()}
    keypoints = _keypoints(settings, [line for found in lines.values() for line in found])
    for record in records:
        file = of_image.get(record.path)
        if file is None:
            findings.note(
                'images without a file of labels, taken as without an object', record.path
            )
            continue
        for number, line in enumerate(lines[file], 1):
            origin = f'line {number} of {file}'
            if found := _instance(line.split(), record, named, keypoints, origin, findings):
                record.instances.append(found)
    nameless = [
        file
        for file in tree.others
        if _has_labels(file) and 'labels' in tree.parts(file) and file not in labels
    ]
    orphans = [*pairs.lost, *nameless]
    findings.note_all('files of labels left out, without an image of their name', orphans)
    names = [name for name in named[1] if name]
    return Annotations(records, names, [named[0], *orphans, *(place for place, _ in places)])


def _keypoints(settings: Settings | None, lines: Sequence[str]) -> int:
    """The number of values behind each box, by ``kpt_shape``.

    Raises:
        ConfigError: if there are keypoints by the looks of all lines, and no ``kpt_shape``.
    """
    shape = settings[1].get('kpt_shape') if settings else None
    if isinstance(shape, list) and all(str(count).isdecimal() for count in shape):
        return math.prod(map(int, shape))
    values = _equal_rows(lines)
    if values is not None and (dimensions := _dimensions(values)):
        points = (values.shape[1] - 4) // dimensions
        first = max(lines, key=lambda line: len(line.split()))
        raise ConfigError(
            f'--data: the labels are of a box and {points} keypoints by their looks, such as '
            f'{first!r}; add kpt_shape: [{points}, {dimensions}] to data.yaml, and the boxes are '
            'read, or kpt_shape: [0, 2] if they are polygons.'
        )
    return 0


def _equal_rows(lines: Sequence[str]) -> np.ndarray | None:
    """The values of lines (N, values) that all have as many, more than a box and a score.

    Boxes alone, as of objects without keypoints, are left out.
    """
    rows = [row for line in lines if len(row := line.split()[1:]) > 5]
    if len({len(row) for row in rows}) != 1:
        return None
    try:
        return np.array(rows, float)
    except ValueError:
        return None


def _dimensions(values: np.ndarray) -> int:
    """The number of values of a keypoint, if there are some behind boxes; 0 for polygons.

    These are points with a visibility of 0, 1 or 2, or most of them lie in the box. The first two
    points of a polygon, read as a box, are no box within the image, or lie near each other,
    wherever the polygon is.
    """
    middle, size, behind = values[:, None, :2], values[:, None, 2:4], values[:, 4:]
    if behind.shape[1] % 3 == 0 and np.isin(behind[:, 2::3], (0, 1, 2)).all():
        return 3
    in_image = (np.abs(middle - 0.5) + size / 2 <= 0.5 + BEYOND).all(axis=-1)
    scatter, scatter_of_middle = (part.var(axis=0).sum() for part in (size - middle, middle))
    if in_image.mean() <= MAINLY or scatter <= SCATTER * scatter_of_middle:
        return 0
    for dimensions in (2, 3):
        if behind.shape[1] % dimensions == 0:
            points = behind.reshape(len(values), -1, dimensions)[..., :2]
            in_box = (np.abs(points - middle) <= size / 2 + BEYOND).all(axis=-1)
            seen = (points != 0).any(axis=-1)
            if in_box[seen].sum() > MAINLY * max(seen.sum(), 1):
                return dimensions
    return 0


def _instance(
    words: Sequence[str],
    record: ImageRecord,
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
    if len(values) in (4 + keypoints, 5):  # the fifth is a score, or the number of a track
        values = values[:4]
    elif keypoints and len(values) > 5:
        values = []  # neither a box, nor one with as many keypoints
    polygon = len(values) >= 6
    if polygon and len(values) % 2:
        values = values[:-1]  # with a score
    if (
        label != int(label if math.isfinite(label) else -1)
        or len(values) < 4
        or not all(map(math.isfinite, values))
    ):
        findings.reject(f'lines are not {FORM}', 'correct them', f'{text!r}, {origin}')
        return None
    if not (0 <= label < len(names) and names[int(label)]):
        findings.reject(
            f'lines have a class that {named[0].name} does not name',
            'add its name, and count from 0',
            f'class {label:g}, {origin}',
        )
        return None
    if max(values) > 1 + BEYOND or min(values) < -BEYOND:
        findings.reject(
            'lines have values beyond 0 to 1, which are shares of the width and height',
            'divide pixels by the size of the image',
            f'{text!r}, {origin}',
        )
        return None
    width, height = record.size
    if polygon:
        points = [value * (width, height)[i % 2] for i, value in enumerate(values)]
        return Instance.of_polygons(names[int(label)], [points], origin)
    x, y, w, h = values[:4]
    box = (x - w / 2) * width, (y - h / 2) * height, w * width, h * height
    return Instance(names[int(label)], box, origin=origin)


def _places(
    tree: Tree, settings: Settings | None, findings: Findings
) -> Iterator[tuple[Path, Split]]:
    """The image folders and lists of each split, from the YAML file, else ``train_list.txt`` etc.

    The end of a path of another machine is enough, as far as it is there.
    """
    file, content = settings or (tree.folder, {})
    if not {*SPLITS, 'valid'} & content.keys():
        for path in tree.others:
            split = split_in(path.stem) if path.suffix.lower() == '.txt' else None
            if split and not is_label(path):
                yield path, split
        return
    roots = [file.parent, file.parent / str(content.get('path') or ''), tree.folder]
    for split in SPLITS:
        places = content.get(split) or content.get('valid' if split == 'val' else split) or []
        for place in [places] if isinstance(places, str) else places:
            # It may begin with ../, or with folders of another machine.
            parts = [part for part in PureWindowsPath(place).parts if part.strip('./\\')]
            tried = (root.joinpath(*parts[i:]) for i in range(len(parts)) for root in roots)
            found = next(filter(Path.exists, tried), None)
            if found:
                yield found, split
            elif place not in ('null', '~'):
                findings.note(f'places that {file.name} names, which are not there', place)


def _listed(
    tree: Tree, places: Sequence[tuple[Path, Split]], findings: Findings
) -> dict[Path, Split]:
    """The part of each image in these folders and lists."""
    named_for: dict[Path, list[Split]] = {}
    for place, split in places:
        for image in images_of(tree, place, findings):
            named_for.setdefault(image, []).append(split)
    of_last = any({*splits} == {'train'} for splits in named_for.values())
    findings.note_all(
        f'images that are named for two parts, taken for the {"last" if of_last else "first"}',
        (image for image, splits in named_for.items() if len({*splits}) > 1),
    )
    return {image: splits[-1 if of_last else 0] for image, splits in named_for.items()}
