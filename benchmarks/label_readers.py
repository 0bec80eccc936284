"""Read labeled folders with one library, in the library's own environment, for :mod:`reading`.

    PYTHON benchmarks/label_readers.py LIBRARY < jobs.json

``jobs.json`` is a list. A job has a ``folder`` and a ``task``, and may have a folder ``first``,
which is read before, so that imports are not measured. Each job is answered by a line of JSON: the
``images``, as lists of the fields of :class:`Labeled`, with the ``seconds``, ``processor`` seconds
and MB of ``memory`` that reading took (on Linux); or ``refused``, the library's error.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

SUFFIXES = '.jpg', '.jpeg', '.png', '.bmp', '.gif', '.tif'
SPLITS = 'train', 'val', 'valid', 'test'


class Labeled(NamedTuple):
    """An image with its labels, whatever the library.

    Attributes:
        path: the file, or the library's name of the image.
        labels: its classes, or those in its mask.
        boxes: name, left, top, right and bottom in pixels of each object.
        pixels: the number of pixels of each class.
    """

    path: str
    labels: list[str] = []
    boxes: list[list[Any]] = []
    pixels: dict[str, int] = {}


class NotReadableError(Exception):
    """The library has no reader for such a folder."""


# The result of a library, and a function that converts it to the common form, which is not
# measured.
Read = tuple[Any, Callable[[Any], Iterable[Labeled]]]


def unwrapped(folder: Path) -> Path:
    """The outermost folder with several folders in it, which people would give to the library."""
    inner = [path for path in folder.iterdir() if path.is_dir()]
    return unwrapped(inner[0]) if len(inner) == 1 else folder


def read_anyfolder(folder: Path, task: str) -> Read:
    import numpy as np

    import anyfolder

    def as_labeled(data: Any) -> Iterator[Labeled]:
        for _, image in data.images():
            boxes, pixels = [], {}
            for item in image.objects:
                left, top, width, height = item.box
                if item.label and not item.crowd:
                    boxes.append([item.label, left, top, left + width, top + height])
            if task == 'segmentation':
                counts = np.bincount(data.class_map(image).ravel(), minlength=256)
                pixels = {name: int(counts[i]) for i, name in enumerate(data.classes) if counts[i]}
            yield Labeled(str(image.path), [*(pixels or image.labels)], boxes, pixels)

    return anyfolder.read(folder, task), as_labeled


def read_datumaro(folder: Path, task: str) -> Read:
    """Read in the format that datumaro detects. Of several, take the first with suitable labels."""
    from datumaro.components.annotation import AnnotationType
    from datumaro.components.dataset import Dataset
    from datumaro.components.environment import Environment

    types = {
        'classification': {AnnotationType.label},
        'segmentation': {AnnotationType.mask},
        'panoptic': {AnnotationType.mask},
        'depth': {AnnotationType.depth_annotation},
    }.get(task, {AnnotationType.bbox, AnnotationType.polygon, AnnotationType.mask})

    def as_labeled(items: Any) -> Iterator[Labeled]:
        names = items[0]
        for item in items[1]:
            objects = [
                label
                for label in item.annotations
                if label.type in types and label.label is not None
            ]
            if types & {AnnotationType.bbox}:  # a box and its polygon are one object
                objects = [*{(label.label, *label.get_bbox()): label for label in objects}.values()]
            boxes, pixels = [], Counter[str]()
            for label in objects if task != 'classification' else ():
                name = names[label.label].name
                if label.type == AnnotationType.mask:
                    pixels[name] += int(label.image.sum())
                left, top, width, height = label.get_bbox()
                boxes.append([name, left, top, left + width, top + height])
            labels = list(dict.fromkeys(names[label.label].name for label in objects))
            path = getattr(item.media, 'path', None) or item.id
            yield Labeled(path, labels, boxes if task != 'segmentation' else [], dict(pixels))

    faults = []
    for form in sorted(Environment().detect_dataset(str(folder), depth=3)):
        try:
            data = Dataset.import_from(str(folder), form)
            names, items = data.categories().get(AnnotationType.label), [*data]
        except Exception as error:  # another format may fit
            faults.append(f'{form}: {error.__cause__ or error}')
            continue
        if names and any(label.type in types for item in items for label in item.annotations):
            return (names, items), as_labeled
        faults.append(f'{form}: no such labels')
    raise NotReadableError('; '.join(faults) or 'no format is found')


def read_supervision(folder: Path, task: str) -> Read:
    """Read with supervision's function for the format, which gets the folders that it asks for."""
    import supervision

    if task == 'classification':
        folder = unwrapped(folder)
        splits = [folder / split for split in SPLITS if (folder / split).is_dir()] or [folder]
        read = supervision.ClassificationDataset.from_folder_structure
        data = [read(str(split)) for split in splits]
        return data, lambda data: (
            Labeled(path, [dataset.classes[int(found.class_id[0])]])
            for dataset in data
            for path, found in dataset.annotations.items()
        )

    def as_labeled(data: Any) -> Iterator[Labeled]:
        for dataset in data:
            for path, found in dataset.annotations.items():
                boxes = zip(found.class_id, found.xyxy.tolist(), strict=True)
                yield Labeled(path, [], [[dataset.classes[int(i)], *box] for i, box in boxes])

    if task not in ('detection', 'instance'):
        raise NotReadableError(f'no reader of labels for {task}')
    calls = [*_calls_of_supervision(folder)]
    if not calls:
        raise NotReadableError('no reader of such labels')
    data = [getattr(supervision.DetectionDataset, f'from_{form}')(*args) for form, args in calls]
    return data, as_labeled


def _calls_of_supervision(folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The calls that read a folder: a format, as in ``from_yolo``, and its arguments.

    supervision does not find files by itself, so they are found here. A format may need several
    calls, such as one for each split.
    """
    files = sorted(folder.rglob('*'))
    images = {path.name: path.parent for path in files if path.suffix.lower() in SUFFIXES}
    places = sorted({*images.values()})
    settings = [path for path in files if path.suffix in ('.yaml', '.yml')]
    lines = {path.stem: path.parent for path in files if path.suffix == '.txt'}
    for place in places if settings else ():
        own = next((lines[one.stem] for one in sorted(place.iterdir()) if one.stem in lines), None)
        if own:
            yield 'yolo', (str(place), str(own), str(settings[0]))
    for file in files:
        content = json.loads(file.read_text()) if file.suffix == '.json' else None
        if isinstance(content, dict) and content.get('images') and content.get('annotations'):
            first = Path(content['images'][0].get('file_name', ''))
            place = images.get(first.name)
            if place:
                yield 'coco', (str(_above(place, first)), str(file))
        elif isinstance(content, list) and content and 'annotations' in content[0]:
            yield 'createml', (str(images[content[0]['image']]), str(file))
        elif isinstance(content, dict) and 'shapes' in content:
            yield (
                'labelme',
                (str(images[PureWindowsPath(content['imagePath']).name]), str(file.parent)),
            )
            return
    for place in sorted({path.parent for path in files if path.suffix == '.xml'}):
        stem = next(place.glob('*.xml')).stem
        own = next((images[name] for name in images if Path(name).stem == stem), None)
        if own:
            yield 'pascal_voc', (str(own), str(place))


def _above(place: Path, name: Path) -> Path:
    """The folder that an image's name is relative to: ``place`` less the folders in the name."""
    for _ in name.parts[:-1]:
        place = place.parent
    return place


def read_ultralytics(folder: Path, task: str) -> Read:
    """Read with the check and the data set that ultralytics' training uses."""
    from ultralytics.cfg import get_cfg
    from ultralytics.data.dataset import ClassificationDataset, YOLODataset
    from ultralytics.data.utils import check_cls_dataset, check_det_dataset

    if task == 'classification':
        checked = check_cls_dataset(str(unwrapped(folder)))
        data = [
            ClassificationDataset(str(checked[split]), get_cfg())
            for split in ('train', 'val', 'test')
            if checked.get(split)
        ]
        return data, lambda data: (
            Labeled(str(sample[0]), [checked['names'][sample[1]]])
            for dataset in data
            for sample in dataset.samples
        )
    settings = sorted(folder.rglob('*.yaml'))
    if task not in ('detection', 'instance') or not settings:
        raise NotReadableError('no YAML file of a data set for detection')
    checked = check_det_dataset(str(settings[0]), autodownload=False)
    kind = 'segment' if task == 'instance' else 'detect'
    data = [
        YOLODataset(img_path=checked[split], data=checked, task=kind, augment=False)
        for split in ('train', 'val', 'test')
        if checked.get(split)
    ]

    def as_labeled(data: Any) -> Iterator[Labeled]:
        for label in (label for dataset in data for label in dataset.labels):
            height, width = label['shape']
            boxes = []
            for number, (x, y, w, h) in zip(
                label['cls'][:, 0], label['bboxes'].tolist(), strict=True
            ):
                corners = x - w / 2, y - h / 2, x + w / 2, y + h / 2
                box = [a * b for a, b in zip(corners, [width, height] * 2, strict=True)]
                boxes.append([checked['names'][int(number)], *box])
            yield Labeled(str(label['im_file']), [], boxes)

    return data, as_labeled


LIBRARIES = dict(
    anyfolder=read_anyfolder,
    datumaro=read_datumaro,
    supervision=read_supervision,
    ultralytics=read_ultralytics,
)


def seconds_used() -> tuple[float, float]:
    """Wall-clock and processor seconds of this process, without its children."""
    return time.perf_counter(), time.process_time()


def memory(key: str) -> float:
    """Memory of this process in MB: ``VmRSS`` is the current, ``VmHWM`` the peak since a reset."""
    lines = Path('/proc/self/status').read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024


def answer(name: str, job: dict[str, str]) -> dict[str, Any]:
    """The answer of a library to a job."""
    read = LIBRARIES[name]
    try:
        if 'first' in job:
            read(Path(job['first']), job['task'])
        Path('/proc/self/clear_refs').write_text('5')  # resets the peak
        held, before = memory('VmRSS'), seconds_used()
        data, as_labeled = read(Path(job['folder']), job['task'])
        seconds, processor = (
            after - start for start, after in zip(before, seconds_used(), strict=True)
        )
        measured = dict(seconds=seconds, processor=processor, memory=memory('VmHWM') - held)
        return dict(images=[*as_labeled(data)], **measured)
    except Exception as error:  # any error of a library counts as a refusal
        return dict(refused=f'{type(error).__name__}: {error}')


def main() -> None:
    name, out = sys.argv[1], sys.stdout
    for job in json.load(sys.stdin):
        with redirect_stdout(sys.stderr):
            line = json.dumps(answer(name, job), default=float)
        print(line, file=out, flush=True)


if __name__ == '__main__':
    main()
