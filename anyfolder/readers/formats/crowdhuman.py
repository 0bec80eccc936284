"""CrowdHuman: ``annotation_train.odgt``, an image as JSON on each line."""

from collections.abc import Sequence
from pathlib import Path

from ..records import Instance
from .json_values import Json, is_yes
from .parsed import Parsed, ParsedImage

PERSON = 'person'  # the other tag, mask, is for crowds, reflections and similar regions


def is_crowdhuman(content: Sequence[Json], file: Path) -> bool:
    """True if the first line has an ID and boxes."""
    return bool(content) and {'ID', 'gtboxes'} <= content[0].keys()


def parse_crowdhuman(content: Sequence[Json], file: Path) -> Parsed:
    """The images of a file, with the box of each whole body.

    Raises:
        KeyError, TypeError, AttributeError: if a line has no ID, or a box is incomplete.
    """
    images = []
    for number, line in enumerate(content, 1):
        origin = f'line {number} of {file}'
        objects = [
            Instance(
                PERSON,
                box['fbox'],
                crowd=box['tag'] != PERSON or is_yes(box.get('extra', {}).get('ignore')),
                origin=origin,
            )
            for box in line['gtboxes']
        ]
        images.append(ParsedImage(str(line['ID']), objects))
    return Parsed(images, [PERSON])
