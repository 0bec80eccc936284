"""WIDER FACE: lists in ``wider_face_split`` with the boxes of all images, one after another."""

from collections.abc import Sequence
from pathlib import Path

from ..records import Instance
from .parsed import Fault, Parsed, ParsedImage

FACE = 'face'
INVALID_INDEX = 7  # index of the flag for faces that are too small or unclear to be scored


def is_wider_face(lines: Sequence[str], file: Path) -> bool:
    """True if the first lines are a path, a number of boxes and ten numbers."""
    return len(lines) > 2 and lines[1].strip().isdecimal() and len(lines[2].split()) == 10


def parse_wider_face(lines: Sequence[str], file: Path) -> Parsed:
    """The images of a list. An image without a face may have a line of zeros instead of boxes.

    Raises:
        ValueError: if a number of boxes or a box is missing, or a number is negative.
    """
    images, faults, line = [], [], 0
    while line < len(lines):
        image = ParsedImage(lines[line])
        count = int(lines[line + 1]) if line + 1 < len(lines) else 0
        if count < 0:  # the loop would go back and never end
            raise ValueError(f'line {line + 2} announces {count} boxes')
        rows = lines[line + 2 : line + 2 + max(count, 1)]
        if len(rows) < count:
            raise ValueError(f'line {line + 2} announces {count} boxes, but {len(rows)} follow')
        for number, row in enumerate(rows[:count], line + 3):
            origin = f'line {number} of {file}'
            values = row.split()
            box = [float(value) for value in values[:4]]
            is_invalid = len(values) > INVALID_INDEX and values[INVALID_INDEX] == '1'
            if min(box[2:]) > 0:
                image.objects.append(Instance(FACE, box, crowd=is_invalid, origin=origin))
            else:
                faults.append(Fault('faces without a side left out', f'{row!r}, {origin}'))
        images.append(image)
        # Not all editions of the data set have the line of zeros. The next image has a slash.
        has_zeros = count == 0 and rows and len(rows[0].split()) > 1 and '/' not in rows[0]
        line += 2 + (1 if has_zeros else count)
    return Parsed(images, [FACE], faults)
