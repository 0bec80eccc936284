"""Read maps, files with a value for each pixel of an image: masks, depth and segments."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from anyfolder.cores import cores
from anyfolder.errors import first_line
from anyfolder.pixels.decoded_at_once import room_for
from anyfolder.pixels.image_headers import displayed_size

from .findings import Findings
from .records import ImageRecord, Records

Statistics = TypeVar('Statistics')


def probe_maps(
    records: Records,
    probe: Callable[[Path], tuple[Sequence[int], Statistics]],
    what: str,
    findings: Findings,
) -> Iterator[tuple[ImageRecord, Statistics]]:
    """The images whose map is readable and has their size, with statistics of its values.

    Args:
        records: the images.
        probe: returns the shape (H, W) of a map, and any statistics of its values.
        what: the name of the maps, in the plural, for messages.
        findings: collects unreadable maps, and maps of another size.
    """

    def attempt(record: ImageRecord) -> tuple[Sequence[int], Statistics] | str:
        assert record.mask is not None
        try:
            with room_for(_claimed_pixels(record.mask)):
                return probe(record.mask)
        except Exception as error:  # noqa: BLE001  decoders raise any error
            return first_line(error)

    with ThreadPoolExecutor(min(4, cores())) as pool:
        for record, result in zip(records, pool.map(attempt, records), strict=True):
            if isinstance(result, str):  # the error
                where = f'{record.mask} ({result})'
                findings.reject(f'{what} cannot be read', 'repair or remove them', where)
                continue
            (height, width), statistics = result
            if (width, height) == tuple(record.size):
                yield record, statistics
            else:
                size = f'{record.size[0]} x {record.size[1]}'
                findings.reject(
                    f'{what} have another size than their image as displayed',
                    'make them equal',
                    f'{record.mask} with {width} x {height} pixels, and {record.path} with {size}',
                )


def _claimed_pixels(file: Path) -> int:
    """The number of pixels of a map by its header; without a header, the bytes of the file."""
    try:
        width, height = displayed_size(file)
    except Exception:  # noqa: BLE001  decoders raise any error
        return file.stat().st_size
    return width * height
