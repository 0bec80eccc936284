"""The tags of a TIFF's pages that describe its images, without decoding.

A file of a few kilobytes can have a million pages, or tags whose values are the whole file. Both
are rejected here, before another library reads the tags.
"""

import os
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from anyfolder.limits import beyond

BIG_TIFFS = b'II+\0', b'MM\0+'
TIFFS = b'II*\0', b'MM\0*', *BIG_TIFFS
# The tags to read.
WIDTH_TAG, HEIGHT_TAG, PHOTOMETRIC_TAG, SAMPLES_TAG, EXTRA_SAMPLES_TAG = 256, 257, 262, 277, 338
READ = {WIDTH_TAG, HEIGHT_TAG, PHOTOMETRIC_TAG, SAMPLES_TAG, EXTRA_SAMPLES_TAG}
# Bytes per value by type, and the integer types.
SIZES = dict(enumerate((1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4), 1)) | {16: 8, 17: 8, 18: 8}
INTEGER_TYPES = {1, 3, 4, 13, 16, 18}
VALUES = 64  # number of values that are read from a tag

Tags = Mapping[int, tuple[int, ...]]


def tags_of_pages(file: BinaryIO) -> Iterator[Tags]:
    """The tags of :data:`READ` of each page.

    Args:
        file: the TIFF.

    Raises:
        ValueError: if it is damaged, has too many pages, or tags larger than itself.
    """
    reader = _Reader(file)
    place, seen = reader.first, {0}
    while place not in seen:
        seen.add(place)
        if said := beyond('pages', len(seen) - 1):
            raise ValueError(f'it {said}')
        tags, place = reader.page(place)
        yield tags


class _Reader:
    """Reads numbers of a TIFF.

    Attributes:
        first: the position of the first page.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.length = file, file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(16)
        self.is_little = head.startswith(b'II')
        # Bytes of a tag count, of an address or a count of values, and of a tag.
        is_big = head.startswith(BIG_TIFFS)
        self.of_count, self.of_place, self.of_tag = (8, 8, 20) if is_big else (2, 4, 12)
        self.first = self.number(head[self.of_place : 2 * self.of_place])

    def number(self, content: bytes) -> int:
        """An integer in the byte order of the file."""
        return int.from_bytes(content, 'little' if self.is_little else 'big')

    def read(self, size: int) -> bytes:
        """Read this many bytes.

        Raises:
            ValueError: if there are fewer.
        """
        content = self.file.read(size) if size <= self.length else b''
        if len(content) < size:
            raise ValueError('its tags are damaged, or it is truncated')
        return content

    def page(self, place: int) -> tuple[Tags, int]:
        """The tags of a page, and the position of the next page.

        Raises:
            ValueError: see :func:`tags_of_pages`.
        """
        self.file.seek(min(place, self.length))
        content = self.read(self.number(self.read(self.of_count)) * self.of_tag)
        following = self.number(self.read(self.of_place))
        found, claimed = {}, 0
        for start in range(0, len(content), self.of_tag):
            entry = content[start : start + self.of_tag]
            tag, kind = self.number(entry[:2]), self.number(entry[2:4])
            count, inside = self.number(entry[4 : 4 + self.of_place]), entry[4 + self.of_place :]
            claimed += SIZES.get(kind, 1) * count
            if tag in READ and kind in INTEGER_TYPES and count:
                found[tag] = self.values(SIZES[kind], count, inside)
        if claimed > self.length:
            raise ValueError('its tags claim more bytes than the file has')
        return found, following

    def values(self, size: int, count: int, inside: bytes) -> tuple[int, ...]:
        """The first values of a tag, stored in it if they fit, or else at the address in it."""
        count = min(count, VALUES)
        if size * count > self.of_place:
            self.file.seek(min(self.number(inside), self.length))
            inside = self.read(size * count)
        return tuple(self.number(inside[i * size : (i + 1) * size]) for i in range(count))
