"""VGG Image Annotator (VIA): image regions, with attributes that annotators name freely."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyfolder.bounded import json_in

from ..column_titles import LABEL_TITLES
from ..geometry import circle
from ..records import Instance
from ..tables import Row
from .json_values import Json, is_ignored, is_yes, text_of
from .parsed import Fault, Parsed, ParsedImage

SHAPE, ATTRIBUTES = 'shape_attributes', 'region_attributes'
# Attributes that name the class, in order of preference.
CLASS_ATTRIBUTES = (*LABEL_TITLES, 'name', 'type', 'object')
ONLY_CLASS = 'object'  # class of regions without an attribute


def is_via(content: Any, file: Path) -> bool:
    """True if this is the content of a VIA project or export with a region."""
    return any(SHAPE in region for image in _images(content) for region in _regions(image))


def parse_via(content: Any, file: Path) -> Parsed:
    """The images of a project or an export. Points and open lines are not objects.

    Raises:
        KeyError, TypeError, ValueError: if a region is incomplete.
    """
    entries = list(_images(content))
    attribute = _class_attribute([region for entry in entries for region in _regions(entry)])
    images, faults = [], []
    for entry in entries:
        name = str(entry['filename'])
        image = ParsedImage(name)
        for region in _regions(entry):
            origin = f'{name} in {file}'
            if instance := _instance(region, attribute, origin):
                image.objects.append(instance)
            else:
                what = f'shapes left out, {region[SHAPE].get("name")}'
                faults.append(Fault(what, origin))
        images.append(image)
    return Parsed(images, faults=faults)


def is_via_table(rows: Sequence[Row], file: Path) -> bool:
    """True if these rows belong to a table exported by VIA."""
    return any(f'region_{SHAPE}' in row for row in rows[:1])


def parse_via_table(rows: Sequence[Row], file: Path) -> Parsed:
    """The images of a table, whose cells hold JSON.

    Raises:
        InputError, KeyError, TypeError, ValueError: if a row is incomplete.
    """
    images: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = row.get('filename') or row['#filename']  # '#filename' in exports of VIA 1
        image = images.setdefault(name, dict(filename=name, regions=[]))
        cells = (row[f'region_{SHAPE}'], row[ATTRIBUTES])
        shape, attributes = (json_in(cell or '{}', file) for cell in cells)
        if shape:
            image['regions'].append({SHAPE: shape, ATTRIBUTES: attributes})
    return parse_via(images, file)


def _images(content: Any) -> Iterable[Json]:
    """The images of a project, or of an export of its annotations."""
    if isinstance(content, Mapping):
        metadata = content.get('_via_img_metadata', content)
        for image in metadata.values() if isinstance(metadata, Mapping) else ():
            if isinstance(image, Mapping) and {'filename', 'regions'} <= image.keys():
                yield image


def _regions(image: Json) -> Sequence[Json]:
    """The regions of an image: a list, or in version 1 an object by number."""
    regions = image['regions']
    if isinstance(regions, Mapping):
        regions = [*regions.values()]
    if not isinstance(regions, list):
        return []
    return [region for region in regions if isinstance(region, Mapping)]


def _class_attribute(regions: Sequence[Json]) -> str | None:
    """The attribute that names the class: one of :data:`CLASS_ATTRIBUTES`, or the only one.

    None if the regions have no attributes.

    Raises:
        ValueError: if there are several, and none is in :data:`CLASS_ATTRIBUTES`.
    """
    names = dict.fromkeys(name for region in regions for name in region.get(ATTRIBUTES) or ())
    named = [name for known in CLASS_ATTRIBUTES for name in names if name.casefold() == known]
    if len(names) > 1 and not named:
        raise ValueError(
            f'none of its attributes {", ".join(names)} names the class; call one '
            f'{" or ".join(CLASS_ATTRIBUTES)}'
        )
    return next(iter([*named, *names]), None)


def _instance(region: Json, attribute: str | None, origin: str) -> Instance | None:
    """The object of a region; None for points and open lines."""
    shape, attributes = region[SHAPE], region.get(ATTRIBUTES) or {}
    name = _class_in(attributes.get(attribute)) if attribute else ONLY_CLASS
    crowd = is_ignored(attributes)
    shape_name = shape.get('name')
    if shape_name == 'rect':
        box = [shape[key] for key in ('x', 'y', 'width', 'height')]
        return Instance(name, box, crowd=crowd, origin=origin)
    if shape_name == 'polygon':
        pairs = zip(shape['all_points_x'], shape['all_points_y'], strict=True)
        points = [value for pair in pairs for value in pair]
    elif shape_name in ('circle', 'ellipse'):
        radii = (shape['r'], shape['r']) if shape_name == 'circle' else (shape['rx'], shape['ry'])
        points = circle((shape['cx'], shape['cy']), radii, radians=shape.get('theta') or 0)
    else:
        return None
    return Instance.of_polygons(name, [points], origin, crowd)


def _class_in(value: Any) -> str:
    """The class in an attribute: text, or the only checked checkbox, or else empty."""
    if not isinstance(value, Mapping):
        return text_of(value)
    chosen = [str(name) for name, on in value.items() if is_yes(on)]
    return chosen[0] if len(chosen) == 1 else ''
