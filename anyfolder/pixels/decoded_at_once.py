"""Threads decode images in parallel as long as these have no more pixels in total than one may."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from PIL import Image

_changed = Condition()
_decoded: list[int] = []  # the pixels of each image that is being decoded


@contextmanager
def room_for(pixels: int) -> Iterator[None]:
    """Wait until an image of this many pixels fits in addition to those that other threads decode.

    Four images of the largest size in four threads would take four times the memory of one.
    """
    most = 2 * (Image.MAX_IMAGE_PIXELS or pixels)
    with _changed:
        _changed.wait_for(lambda: not _decoded or sum(_decoded) + pixels <= most)
        _decoded.append(pixels)
    try:
        yield
    finally:
        with _changed:
            _decoded.remove(pixels)
            _changed.notify_all()
