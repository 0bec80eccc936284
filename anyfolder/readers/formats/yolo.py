"""YOLO: a text file for each image, with a class and a normalized box or polygon on each line."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..name_files import Names
from ..records import Instance
from .parsed import Fault, Parsed, ParsedImage
from .yolo_line_form import LineForm

LABEL = re.compile(r'\d+(\.0)?(\s+[-+.\de]+){4,}$')  # a class and four numbers or more


class YoloLabels(NamedTuple):
    """A label file with the class names and line form of its folder.

    Attributes:
        lines: the lines of the file.
        named: the file with the class names, and the names.
        form: the meaning of the numbers in a line.
    """

    lines: Sequence[str]
    named: Names
    form: LineForm


def are_labels(lines: Sequence[str], file: Path) -> bool:
    """True if the first line of a file is a class and four numbers or more."""
    return bool(LABEL.match(''.join(lines[:1])))


def parse_yolo(labels: YoloLabels, file: Path) -> Parsed:
    """The image of a label file. Values are fractions of the width and height."""
    objects, faults = [], []
    for number, line in enumerate(labels.lines, 1):
        instance = _instance(line, labels, f'line {number} of {file}')
        if isinstance(instance, Fault):
            faults.append(instance)
        else:
            objects.append(instance)
    return Parsed([ParsedImage('', objects)], faults=faults)


def _instance(line: str, labels: YoloLabels, origin: str) -> Instance | Fault:
    """The object of a line, or a fault if the line is invalid."""
    try:
        label, *values = map(float, line.split())
    except ValueError:
        label, values = math.nan, []
    file, names = labels.named
    box = labels.form.box_in(values)
    if box is None and len(values) % 2:
        values = values[:-1]  # a score after the polygon
    numbers = values if box is None else box
    if not (numbers and label.is_integer() and all(map(math.isfinite, numbers))):
        what = 'lines are neither a class and 4 numbers nor a polygon'
        return Fault(what, f'{line!r}, {origin}', 'correct them')
    if not (0 <= label < len(names) and names[int(label)]):
        what = f'lines have a class that {file.name} does not name'
        return Fault(what, f'class {label:g}, {origin}', 'add its name, and count from 0')
    instance = Instance(names[int(label)], box or (), origin=origin, form='center', relative=True)
    if box is None:
        instance.segmentation = [values]
    return instance
