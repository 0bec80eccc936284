"""Limit the total pixels that threads decode at the same time, to bound their memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from PIL import Image

_changed = Condition()  # guards the list, and is notified when an image leaves it
_in_progress: list[int] = []  # the number of pixels of each image that is being decoded


@contextmanager
def room_for(pixels: int) -> Iterator[None]:
    """Wait until an image of this many pixels fits in addition to those that other threads decode.

    The limit is the largest number of pixels that one image may have. Without it, four images of
    that size in four threads would take four times the memory of one. An image that exceeds the
    limit by itself waits until no other is decoded.
    """
    # The limit of `check_pixels` for one image; without Pillow's limit, twice this image.
    max_pixels = 2 * (Image.MAX_IMAGE_PIXELS or pixels)
    with _changed:
        _changed.wait_for(lambda: not _in_progress or sum(_in_progress) + pixels <= max_pixels)
        _in_progress.append(pixels)
    try:
        yield
    finally:
        with _changed:
            _in_progress.remove(pixels)
            _changed.notify_all()
