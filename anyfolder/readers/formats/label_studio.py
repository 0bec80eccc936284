"""Label Studio: JSON of tasks with their annotations, or JSON-MIN, with values in percent."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..geometry import circle
from ..records import Instance
from .image_lists import NO_BOX
from .json_values import Json, stated_size, text_of
from .parsed import Fault, Parsed, ParsedImage

ANNOTATIONS = ('annotations', 'completions')  # keys of a task; the second is from old versions
# Keys for the classes of a region, each in a list. `labels` is a result of its own, which repeats
# the shape under the same id.
LABELS = ('rectanglelabels', 'polygonlabels', 'ellipselabels', 'labels')
# A fault: rotated boxes and ellipses become polygons, and `to_pixels` takes the upright rectangle
# around a polygon for its box.
ROTATED = 'rotated boxes, replaced by the upright rectangle around them'


class Task(NamedTuple):
    """An image and its annotations.

    Attributes:
        image: its URL or path.
        annotations: the regions of each annotation.
    """

    image: str
    annotations: Sequence[Sequence[Json]]


def is_label_studio(content: Any, file: Path) -> bool:
    """True if this is the content of an export with a box, a polygon or an ellipse."""
    regions = chain.from_iterable(
        regions for task in tasks_in(content) for regions in task.annotations
    )
    return any(_names_of(region) and _has_shape(region) for region in regions)


def parse_label_studio(content: Any, file: Path) -> Parsed:
    """The images of an export with boxes, polygons and ellipses, the first annotation of each.

    Images without an annotation are left out. An empty annotation means that there is no object.
    Regions without a class, or of another shape, are left out with a fault.

    Raises:
        KeyError, TypeError, ValueError: if a region is incomplete.
    """
    images, faults = [], []
    for task in tasks_in(content):
        origin = f'{task.image} in {file}'
        if not task.annotations:
            faults.append(Fault('images without an annotation left out', origin))
            continue
        if len(task.annotations) > 1:
            faults.append(Fault('annotations left out after the first of their image', origin))
        image = ParsedImage(task.image)
        for region in task.annotations[0]:
            names = _names_of(region)
            if not (names and _has_shape(region)):
                faults.append(Fault(NO_BOX, origin))
                continue
            if region.get('image_rotation'):
                what = 'objects were drawn on images that were rotated in Label Studio'
                faults.append(Fault(what, origin, 'rotate them back there, and export again'))
            if region.get('rotation') and 'points' not in region:
                faults.append(Fault(ROTATED, origin))
            image.stated_size = stated_size(
                region.get('original_width'), region.get('original_height')
            )
            image.objects += [_instance(region, text_of(name), origin) for name in names]
        images.append(image)
    return Parsed(images, faults=faults)


def tasks_in(content: Any) -> Iterator[Task]:
    """The images of an export; empty for other content."""
    for task in content if isinstance(content, list) else ():
        if not isinstance(task, Mapping):
            continue
        key = next((key for key in ANNOTATIONS if isinstance(task.get(key), list)), '')
        if key and isinstance(task.get('data'), Mapping):
            kept = [annotation for annotation in task[key] if not annotation.get('was_cancelled')]
            # False comes first, so the ground truth does.
            kept.sort(key=lambda annotation: not annotation.get('ground_truth'))
            regions = [_regions(annotation['result']) for annotation in kept]
            yield Task(_image_in(task['data']), regions)
        elif 'annotation_id' in task or 'annotator' in task:  # JSON-MIN
            lists = (value for value in task.values() if isinstance(value, list))
            yield Task(_image_in(task), [[*chain.from_iterable(map(_regions, lists))]])


def _image_in(data: Json) -> str:
    """The image of a task, by the key ``image`` or else the first text."""
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    return next((texts[key] for key in ('image', 'img', *texts) if key in texts), '')


def _regions(results: Sequence[Any]) -> list[Json]:
    """The regions of an annotation.

    A region is a result's ``value`` merged over the result, which has the image size. JSON-MIN
    stores regions already merged. A shape is left out if a ``labels`` result of the same id repeats
    it with its class.
    """
    results = [result for result in results if isinstance(result, Mapping)]
    labeled = {result.get('id') for result in results if result.get('type') == 'labels'}
    regions = []
    for result in results:
        is_shape = result.get('type') in ('rectangle', 'polygon', 'ellipse')
        if is_shape and result.get('id') in labeled:
            continue
        value = result.get('value')
        regions.append({**result, **value} if isinstance(value, Mapping) else result)
    return regions


def _names_of(region: Json) -> Sequence[Any]:
    """The classes of a region; empty without one."""
    return next((region[key] for key in LABELS if region.get(key)), ())


def _has_shape(region: Json) -> bool:
    is_box = {'x', 'y', 'width', 'height'} <= region.keys()  # keypoints have a width alone
    return is_box or not {'points', 'radiusX'}.isdisjoint(region)


def _instance(region: Json, name: str, origin: str) -> Instance:
    """An object, in fractions of the image; in pixels if it is rotated."""
    if not region.get('rotation') and not {'points', 'radiusX'} & region.keys():
        box = [region[key] / 100 for key in ('x', 'y', 'width', 'height')]
        return Instance(name, box, origin=origin, relative=True)
    if points := region.get('points'):
        outline = [float(value) for point in points for value in point]
    else:
        # The center of an ellipse, or the upper left corner of a box. Both rotate around it.
        x, y = float(region['x']), float(region['y'])
        if 'radiusX' in region:
            outline = circle((x, y), (region['radiusX'], region['radiusY']))
        else:
            right, bottom = x + region['width'], y + region['height']
            outline = [x, y, right, y, right, bottom, x, bottom]
        if region.get('rotation'):
            return Instance.of_polygons(name, [_rotated(outline, (x, y), region)], origin)
    polygon = Instance.of_polygons(name, [[value / 100 for value in outline]], origin)
    polygon.relative = True
    return polygon


def _rotated(points: Sequence[float], center: Sequence[float], region: Json) -> list[float]:
    """Points in percent -> pixels, rotated clockwise around ``center``."""
    scales = [region[key] / 100 for key in ('original_width', 'original_height')]
    angle = math.radians(region['rotation'])
    cos, sin = math.cos(angle), math.sin(angle)
    x0, y0 = (value * scale for value, scale in zip(center, scales, strict=True))
    rotated = []
    for x, y in zip(points[::2], points[1::2], strict=True):
        right, down = x * scales[0] - x0, y * scales[1] - y0
        rotated += [x0 + right * cos - down * sin, y0 + right * sin + down * cos]
    return rotated
