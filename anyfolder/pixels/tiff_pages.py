"""The tags of a TIFF's pages that describe its images, without decoding.

A file of a few kilobytes can have a million pages, or tags whose values are the whole file. Both
are rejected here, before another library reads the tags.
"""

import os
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from anyfolder.limits import describe_excess

BIG_TIFFS = b'II+\0', b'MM\0+'
TIFFS = b'II*\0', b'MM\0*', *BIG_TIFFS
# The tags to read. All are of integers.
WIDTH_TAG, HEIGHT_TAG, PHOTOMETRIC_TAG, SAMPLES_TAG, EXTRA_SAMPLES_TAG = 256, 257, 262, 277, 338
READ_TAGS = {WIDTH_TAG, HEIGHT_TAG, PHOTOMETRIC_TAG, SAMPLES_TAG, EXTRA_SAMPLES_TAG}
# Bytes per value by type, and the integer types.
VALUE_SIZES = dict(enumerate((1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4), 1)) | {16: 8, 17: 8, 18: 8}
INTEGER_TYPES = {1, 3, 4, 13, 16, 18}
MAX_VALUES = 64  # values that are read from a tag

Tags = Mapping[int, tuple[int, ...]]  # the values of each tag by its number


def tags_of_pages(file: BinaryIO) -> Iterator[Tags]:
    """The tags of :data:`READ_TAGS` of each page.

    Args:
        file: the TIFF.

    Raises:
        ValueError: if it is damaged, has too many pages, or tags larger than itself.
    """
    reader = _Reader(file)
    offset, visited = reader.first_offset, {0}  # 0 marks the end
    while offset not in visited:
        visited.add(offset)
        if excess := describe_excess('pages', len(visited) - 1):
            raise ValueError(f'it {excess}')
        tags, offset = reader.page(offset)
        yield tags


class _Reader:
    """Reads numbers of a TIFF.

    Attributes:
        first_offset: the position of the first page.
        count_size: the bytes of the number of tags of a page.
        address_size: the bytes of an address, and of the number of values of a tag.
        tag_size: the bytes of a tag.
        page_bytes: the bytes of the tags of all pages that were read.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.length = file, file.seek(0, os.SEEK_END)
        self.page_bytes = 0
        file.seek(0)
        head = file.read(16)
        self.is_little = head.startswith(b'II')
        is_big = head.startswith(BIG_TIFFS)
        self.count_size, self.address_size, self.tag_size = (8, 8, 20) if is_big else (2, 4, 12)
        self.first_offset = self.number(head[self.address_size : 2 * self.address_size])

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

    def page(self, offset: int) -> tuple[Tags, int]:
        """The tags of a page, and the position of the next page.

        Raises:
            ValueError: see :func:`tags_of_pages`.
        """
        self.file.seek(min(offset, self.length))
        content = self.read(self.number(self.read(self.count_size)) * self.tag_size)
        self.page_bytes += len(content)
        if self.page_bytes > self.length:
            raise ValueError('its pages overlap, and claim more bytes than the file has')
        next_offset = self.number(self.read(self.address_size))
        tags, claimed = {}, 0
        for start in range(0, len(content), self.tag_size):
            entry = content[start : start + self.tag_size]
            tag, value_type = self.number(entry[:2]), self.number(entry[2:4])
            count = self.number(entry[4 : 4 + self.address_size])
            value_or_offset = entry[4 + self.address_size :]
            claimed += VALUE_SIZES.get(value_type, 1) * count
            if tag in READ_TAGS and value_type in INTEGER_TYPES and count:
                tags[tag] = self.values(VALUE_SIZES[value_type], count, value_or_offset)
        if claimed > self.length:
            raise ValueError('its tags claim more bytes than the file has')
        return tags, next_offset

    def values(self, size: int, count: int, value_or_offset: bytes) -> tuple[int, ...]:
        """The first values of a tag: stored in the tag if they fit, or else at the address in it.

        Args:
            size: bytes per value.
            count: the number of values.
            value_or_offset: the last bytes of the tag: its values, or their address.
        """
        count = min(count, MAX_VALUES)
        if size * count > self.address_size:
            self.file.seek(min(self.number(value_or_offset), self.length))
            value_or_offset = self.read(size * count)
        return tuple(self.number(value_or_offset[i * size : (i + 1) * size]) for i in range(count))
