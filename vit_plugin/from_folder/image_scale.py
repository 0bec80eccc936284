"""The size to which a training resizes its images, and its lower bound."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from anyfolder.readers.listing import Listing
from anyfolder.readers.records import ImageRecord
from vit_plugin.errors import ConfigError

from .starting_point import StartingPoint

MIN_SIDE = 2  # pixels; the frameworks cannot pack a flipped image that is one pixel wide


def image_scale(listing: Listing, largest: int, img_size: int | None = None) -> tuple[int, int]:
    """The data's width and height, with a longer side of at most ``largest``.

    Args:
        listing: the data.
        largest: upper bound of the longer side, in pixels.
        img_size: the longer side, if given.

    Raises:
        ConfigError: if an image is so thin or small that a side would have less than
            :data:`MIN_SIDE` pixels.
    """
    sides = typical_size(listing.train)
    longer = img_size or min(max(sides), largest)
    width, height = (max(round(side * longer / max(sides)), 1) for side in sides)
    for record in chain(*listing.parts.values()):
        if min(record.size) * longer < MIN_SIDE * max(record.size):
            raise ConfigError(
                f'--data: {str(record.path)!r} has {record.size[0]} x {record.size[1]} pixels, '
                f'of which a side has less than {MIN_SIDE} within {width} x {height}; leave it '
                'out, or give a larger --img-size.'
            )
    return width, height


def typical_size(records: Sequence[ImageRecord]) -> tuple[int, int]:
    """The median width and height of the images of known size, in pixels."""
    width, height = np.median([record.size for record in records if any(record.size)], axis=0)
    return int(width), int(height)


def check_side(start: StartingPoint, side: int) -> None:
    """Raise a ``ConfigError`` for an ``--img-size`` below a patch, before any image is read."""
    patch = start.patch_side(side)
    if side < max(patch, MIN_SIDE):
        raise ConfigError(
            f'--img-size {side}: a patch of the model has {patch} x {patch} pixels; give '
            f'{max(patch, MIN_SIDE)} or more, or an --arch of smaller patches.'
        )
