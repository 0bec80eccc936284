"""The tags of a TIFF's pages, as far as they say what its images are. Without decoding.

A file of a few kilobytes can have a million pages, or tags whose values all are the whole file.
Both are refused here, before another library reads the tags.
"""

import os
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from anyfolder.limits import beyond

BIG_TIFFS = b'II+\0', b'MM\0+'
TIFFS = b'II*\0', b'MM\0*', *BIG_TIFFS
# Tags that are read.
WIDTH_TAG, HEIGHT_TAG, PHOTOMETRIC_TAG, SAMPLES_TAG, EXTRA_SAMPLES_TAG = 256, 257, 262, 277, 338
READ = {WIDTH_TAG, HEIGHT_TAG, PHOTOMETRIC_TAG, SAMPLES_TAG, EXTRA_SAMPLES_TAG}
# Bytes of a value by its type, and the types that are whole numbers.
SIZES = dict(enumerate((1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4), 1)) | {16: 8, 17: 8, 18: 8}
WHOLE = {1, 3, 4, 13, 16, 18}
VALUES = 64  # of a tag that are read

Tags = Mapping[int, tuple[int, ...]]


def tags_of_pages(file: BinaryIO) -> Iterator[Tags]:
    """The tags of :data:`READ` of each page.

    Args:
        file: at the start of a TIFF.

    Raises:
        ValueError: if it is damaged, has too many pages, or tags larger than itself.
    """
    length = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(16)
    order = 'little' if head.startswith(b'II') else 'big'
    # Bytes of the number of tags, of an address, and of a tag.
    of_count, of_place, of_tag = (8, 8, 20) if head.startswith(BIG_TIFFS) else (2, 4, 12)

    def number(content: bytes) -> int:
        return int.from_bytes(content, 'little' if order == 'little' else 'big')

    def read(size: int) -> bytes:
        content = file.read(size)
        if len(content) < size:
            raise ValueError('its tags are damaged, or it is cut short')
        return content

    place, seen = number(head[of_place : 2 * of_place]), {0}
    while place not in seen:
        seen.add(place)
        if said := beyond('pages', len(seen) - 1):
            raise ValueError(f'it {said}')
        file.seek(min(place, length))
        count = number(read(of_count))
        content = read(count * of_tag if count * of_tag <= length else length + 1)
        place = number(read(of_place))
        found, claimed = {}, 0
        for start in range(0, len(content), of_tag):
            tag, kind = number(content[start : start + 2]), number(content[start + 2 : start + 4])
            values = number(content[start + 4 : start + 4 + of_place])
            inside = content[start + 4 + of_place : start + of_tag]
            size = SIZES.get(kind, 1)
            claimed += size * values
            if tag in READ and kind in WHOLE:
                if size * values > of_place:
                    file.seek(min(number(inside), length))
                    inside = read(size * min(values, VALUES))
                found[tag] = tuple(
                    number(inside[i * size : (i + 1) * size]) for i in range(min(values, VALUES))
                )
        if claimed > length:
            raise ValueError('its tags claim more bytes than the file has')
        yield found
