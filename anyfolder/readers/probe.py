"""Probe an image: header only or full decode, optionally in a subprocess."""

import json
import os
import sys
from collections.abc import Sequence
from hashlib import blake2b
from io import BytesIO
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image

from anyfolder.errors import first_line
from anyfolder.limits import check_limit
from anyfolder.pixels.bands import read_bands
from anyfolder.pixels.decoded_at_once import room_for
from anyfolder.pixels.image_headers import has_end, header_of
from anyfolder.pixels.images import decode


class Probe(NamedTuple):
    """What a probe found about an image.

    Attributes:
        state: file size in bytes and time of the last change, which identify the file; empty if the
            fault lies in the machine.
        size: width and height in pixels as displayed.
        bands: the number of bands, 0 for a photograph.
        bits: the bits per value of a photograph.
        fault: the reason why the image cannot be read, or empty.
        digest: a digest of the content, if it was decoded.
        values: the lowest and highest finite value of a decoded photograph with more than 8 bits.
    """

    state: Sequence[int] = ()
    size: Sequence[int] = (0, 0)
    bands: int = 0
    bits: int = 0
    fault: str = ''
    digest: str = ''
    values: Sequence[float] = ()


def state_of(file: str | int) -> list[int]:
    """The state of an existing file, see :class:`Probe`."""
    status = os.stat(file)
    return [status.st_size, status.st_mtime_ns]


def digest_of(content: bytes) -> str:
    """A digest by which copies of a file are recognized."""
    return blake2b(content, digest_size=16).hexdigest()


def probe_images(paths: Sequence[str], fully_decoded: bool) -> list[Probe]:
    """Probe images: decode them, or read their headers.

    Without ``fully_decoded``, photographs that may be truncated are still decoded, except those of
    more than 16 bits, since these are rejected in any case.
    """
    return [_probe(path, fully_decoded) for path in paths]


def _probe(path: str, fully_decoded: bool) -> Probe:
    probe = Probe()
    try:
        with open(path, 'rb') as file:
            probe = Probe(state_of(file.fileno()))
            size, bands, bits, _ = header_of(file)
            probe = probe._replace(size=size, bands=bands, bits=bits)
            if not fully_decoded and (bands or bits > 16 or has_end(file)):
                return probe
            check_limit(path, 'bytes of an image', probe.state[0])
            file.seek(0)
            # A value of one band counts like a pixel.
            with room_for(size[0] * size[1] * max(bands, 1)):
                probe = _decode(file.read(), probe)
    except Exception as error:  # noqa: BLE001  decoders raise any error
        probe = probe._replace(fault=first_line(error))
        # Too little memory, a missing library or a failing disk say nothing about the file.
        is_machine_fault = isinstance(error, (MemoryError, ImportError)) or getattr(
            error, 'errno', None
        )
        return probe._replace(state=()) if is_machine_fault else probe
    return probe


def _decode(content: bytes, probe: Probe) -> Probe:
    """The probe of a header, completed by what the pixels show."""
    probe = probe._replace(digest=digest_of(content))
    if probe.bands:
        read_bands(content)
    elif probe.bits > 8:
        values = decode(content, 'unchanged', keep_depth=True)
        colors = values.reshape(*values.shape[:2], -1)[..., :3]  # without alpha
        finite = colors[np.isfinite(colors)] if colors.dtype.kind == 'f' else colors
        ends = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        probe = probe._replace(values=ends)
    if not probe.bands and probe.bits <= 16:
        # Values of 9 to 16 bits are decoded again, to 8 bits, since training reads them so. Gray
        # takes half the time. Without an end marker, truncation is found by a color test.
        decode(content, 'grayscale' if has_end(BytesIO(content)) else 'color')
    return probe


def main() -> None:
    """Read lines of JSON with image paths, and answer each line with their probes.

    This runs in a subprocess of :mod:`.probe_cache`. The first argument is Pillow's pixel limit, as
    JSON.
    """
    Image.MAX_IMAGE_PIXELS = json.loads(sys.argv[1])
    cv2.setNumThreads(1)
    for line in sys.stdin:
        print(json.dumps(probe_images(json.loads(line), fully_decoded=True)), flush=True)


if __name__ == '__main__':
    main()
