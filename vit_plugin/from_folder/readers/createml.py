"""CreateML: a JSON list of images with boxes by their center."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .findings import Findings
from .image_tree import Tree
from .records import Annotations, ImageRecord, Instance, reading
from .splits import split_in


def is_createml(content: Any) -> bool:
    """True if this is the content of a file of CreateML."""
    first = content[0] if isinstance(content, list) and content else None
    return (
        isinstance(first, Mapping)
        and 'annotations' in first
        and bool({'image', 'imagefilename'} & first.keys())
    )


def read_createml(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> Annotations:
    """The images of some files of CreateML.

    Raises:
        ConfigError: if a file is not complete.
    """
    records = []
    for file, content in files.items():
        split = split_in(file.stem) or tree.split(file)
        for entry in content:
            with reading(file, 'an image or a box', 'CreateML'):
                name = entry.get('image') or entry['imagefilename']
                found = [_instance(each, f'{name} in {file}') for each in entry['annotations']]
                path = tree.find(name, file, split, findings)
            if path:
                records.append(ImageRecord(path, split, instances=found, origin=str(file)))
    return Annotations(records)


def _instance(entry: Mapping[str, Any], origin: str) -> Instance:
    x, y, width, height = (
        float(entry['coordinates'][key]) for key in ('x', 'y', 'width', 'height')
    )
    return Instance(
        str(entry['label']).strip(), (x - width / 2, y - height / 2, width, height), origin=origin
    )
