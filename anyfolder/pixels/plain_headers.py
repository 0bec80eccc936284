"""The headers of plain JPEG and PNG files, as nearly all images of data sets are.

Unusual files, such as those with an orientation, are left to Pillow, which takes several times as
long.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

HEAD_BYTES = 1 << 13  # first bytes of a file, which contain the header of a plain image
# The first bytes of all supported formats except ISO files such as AVIF and HEIC.
JPEG, PNG = b'\xff\xd8\xff', b'\x89PNG\r\n\x1a\n'
STARTS = (
    *(JPEG, PNG, b'BM', b'GIF8', b'RIFF', b'II', b'MM', b'\0\0\0\x0cjP', b'\xff\x4f\xff\x51'),
    *(b'\x93NUMPY', *(b'P%d' % kind for kind in range(1, 7)), b'Pf', b'PF', b'Py'),
)
# The second byte of JPEG markers: of frames (baseline, extended and progressive), and of segments
# without a length. Then the marker of the pixels.
FRAME_MARKERS, MARKERS_WITHOUT_LENGTH = (0xC0, 0xC1, 0xC2), range(0xD0, 0xDA)
SCAN_MARKER = b'\xff\xda'
FRAME = struct.Struct('>BHHB')  # bits, height, width and number of colors
IHDR = struct.Struct('>4sIIBBBBBI')  # its name, width, height, bits, colors, ... and checksum
# The valid bits per value by PNG's color type: gray, RGB, palette, gray with alpha, and RGBA.
PNG_BITS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


class PlainHeader(NamedTuple):
    """Width and height in pixels, and the bits per value."""

    width: int
    height: int
    bits: int


def may_be_image(start: bytes) -> bool:
    """False if no supported image has these first bytes, 12 or more."""
    return start.startswith(STARTS) or start[4:8] == b'ftyp'


def plain_header(start: bytes) -> PlainHeader | None:
    """The header of a plain JPEG or PNG; None for any other file, or if it is incomplete.

    Args:
        start: the first :data:`HEAD_BYTES` bytes of the file, or all.
    """
    readers: dict[bytes, Callable[[bytes], PlainHeader | None]] = {
        JPEG: _jpeg_header,
        PNG: _png_header,
    }
    for first, read in readers.items():
        if start.startswith(first):
            try:
                return read(start)
            except (struct.error, IndexError):  # the header is longer than `start`
                return None
    return None


def _jpeg_header(start: bytes) -> PlainHeader | None:
    """The frame header of a JPEG, which is found by the lengths of the segments before it."""
    position = 2  # after the marker of the start
    while start[position] == 0xFF and start[position + 1] not in MARKERS_WITHOUT_LENGTH:
        if start[position + 1] in FRAME_MARKERS:
            content = position + 4  # after the marker and the length of the segment
            bits, height, width, colors = FRAME.unpack_from(start, content)
            is_plain = bits == 8 and colors in (1, 3, 4) and width and height
            # EXIF, which may hold an orientation, comes before the frame. Files whose pixels do not
            # begin within `start` are left to Pillow.
            is_plain = (
                is_plain and SCAN_MARKER in start[position:] and b'Exif' not in start[:position]
            )
            return PlainHeader(width, height, bits) if is_plain else None
        # The length of a segment includes its own two bytes, but not the marker.
        position += 2 + int.from_bytes(start[position + 2 : position + 4], 'big')
    return None


def _png_header(start: bytes) -> PlainHeader | None:
    """The chunk IHDR of a PNG, which is the first one."""
    position = len(PNG) + 4  # after the signature and the length of the chunk
    name, width, height, bits, colors, *_, checksum = IHDR.unpack_from(start, position)
    pixels = start.find(b'IDAT')
    is_plain = name == b'IHDR' and width and height and bits in PNG_BITS.get(colors, ())
    is_plain = is_plain and pixels > 0 and b'eXIf' not in start[:pixels]
    in_checksum = start[position : position + IHDR.size - 4]  # the chunk before its checksum
    if not is_plain or crc32(in_checksum) != checksum:
        return None
    return PlainHeader(width, height, 16 if bits == 16 else 8)
