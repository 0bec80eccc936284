"""A look at an image: at its header, or at all its pixels, where it may run in its own process."""

import json
import os
import sys
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image

from anyfolder.errors import first_line
from anyfolder.pixels.bands import read_bands
from anyfolder.pixels.image_headers import has_end, header_of
from anyfolder.pixels.images import decode


class Look(NamedTuple):
    """What an image is.

    Attributes:
        state: size of the file in bytes and time of its last change, by which it is known again;
            nothing where a fault is of the machine.
        size: width and height in pixels as it is seen.
        bands: their number, 0 of a photograph.
        bits: of a value of a photograph.
        fault: why it cannot be read, or nothing.
        digest: of the content, where the pixels were looked at.
        values: the lowest and the highest value of a photograph of more than 8 bits, likewise.
    """

    state: Sequence[int] = ()
    size: Sequence[int] = (0, 0)
    bands: int = 0
    bits: int = 0
    fault: str = ''
    digest: str = ''
    values: Sequence[float] = ()


def state_of(file: str | int) -> list[int]:
    """The state of a file that is there, see :class:`Look`."""
    found = os.stat(file)
    return [found.st_size, found.st_mtime_ns]


def digest_of(content: bytes) -> str:
    """A number by which copies of a file are known."""
    return blake2b(content, digest_size=16).hexdigest()


def look_at(paths: Sequence[str], decoded: bool) -> list[Look]:
    """Look at images. The pixels of one that may break off are always looked at."""
    return [_look_at(path, decoded) for path in paths]


def _look_at(path: str, decoded: bool) -> Look:
    look = Look()
    try:
        with open(path, 'rb') as file:
            look = Look(state_of(file.fileno()))
            size, bands, bits, _ = header_of(file)
            look = look._replace(size=size, bands=bands, bits=bits)
            if not decoded and (bands or bits > 16 or has_end(file)):
                return look
            file.seek(0)
            content = file.read()
        look = look._replace(digest=digest_of(content))
        if bands:
            read_bands(content)
        elif bits > 8:
            values = decode(content, 'unchanged', deep=True)
            colors = values.reshape(*values.shape[:2], -1)[..., :3]  # without alpha
            look = look._replace(values=(float(np.nanmin(colors)), float(np.nanmax(colors))))
        if not bands and bits <= 16:
            decode(content)
    except Exception as error:  # noqa: BLE001  whatever a decoder trips over
        look = look._replace(fault=first_line(error))
        of_machine = isinstance(error, (MemoryError, ImportError)) or getattr(error, 'errno', None)
        return look._replace(state=()) if of_machine else look
    return look


def main() -> None:
    """Answer lines of JSON with the paths of images by lines with what they are."""
    Image.MAX_IMAGE_PIXELS = json.loads(sys.argv[1])
    cv2.setNumThreads(1)
    for line in sys.stdin:
        print(json.dumps(look_at(json.loads(line), True)), flush=True)


if __name__ == '__main__':
    main()
