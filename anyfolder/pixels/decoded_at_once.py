"""Limit the pixels that threads decode at once to those of one image of the largest valid size."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from PIL import Image

_decoded_changed = Condition()
_decoded: list[int] = []  # the pixels of each image that is being decoded


@contextmanager
def room_for(pixels: int) -> Iterator[None]:
    """Wait until an image of this many pixels fits in addition to those that other threads decode.

    Four images of the largest size in four threads would take four times the memory of one. An
    image that exceeds the limit alone waits until no other is decoded.
    """
    # The limit of `check_pixels` for one image; without Pillow's limit, twice this image.
    max_pixels = 2 * (Image.MAX_IMAGE_PIXELS or pixels)
    with _decoded_changed:
        _decoded_changed.wait_for(lambda: not _decoded or sum(_decoded) + pixels <= max_pixels)
        _decoded.append(pixels)
    try:
        yield
    finally:
        with _decoded_changed:
            _decoded.remove(pixels)
            _decoded_changed.notify_all()
