"""A digest of the content of a data set's files, independent of their names and places."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any

import numpy as np

from anyfolder.sampling import evenly_spaced

COMPARED_SAMPLES = 10_000  # evenly spaced; the sizes of all their files count
MAX_BYTES_READ = 1 << 28  # up to this total, every byte counts
# Above that total: the number of files to sample, and the size of each of three blocks to read.
SAMPLED_FILES, BLOCK_BYTES = 1_000, 1 << 14
CONTENT_THREADS = 16  # network storage answers late, but many requests at once


def content_digest(dataset: Any) -> str | None:
    """A digest of the images, masks and maps of a data set, and of pixels held in memory.

    It covers at most 10,000 evenly spaced samples: the size of each file and, up to 256 MiB in
    total, every byte. Above that, it covers the first, middle and last 16 KiB of 1,000 files.

    Args:
        dataset: a data set with MMEngine's ``get_data_info``, whose entries ``*_path`` are files.

    Returns:
        16 hexadecimal digits, or None if there are neither local files nor pixels.
    """
    if not (hasattr(dataset, 'get_data_info') and hasattr(dataset, '__len__')):
        return None
    total = blake2b(digest_size=8)
    known = False
    paths: dict[str, None] = {}  # in the order of the samples, each once
    for i in evenly_spaced(len(dataset), COMPARED_SAMPLES):
        info = dataset.get_data_info(i)
        paths.update(dict.fromkeys(_local_files(info)))
        pixels = info.get('img')
        if isinstance(pixels, np.ndarray):
            known = True
            total.update(repr((pixels.shape, pixels.dtype)).encode())
            total.update(np.ascontiguousarray(pixels).tobytes())
    for size, digest in _sizes_and_digests([*paths]):
        known |= size >= 0
        total.update(repr((size, digest)).encode())
    return total.hexdigest() if known else None


def _local_files(info: Mapping[str, Any]) -> Iterator[str]:
    """The paths of local files in a data info, in the order of their entries' names."""
    for name, value in sorted(info.items()):
        if name.endswith('path') and isinstance(value, str) and '://' not in value:
            yield value


def _sizes_and_digests(paths: Sequence[str]) -> list[tuple[int, str]]:
    """The size of each file, -1 if it is missing, and a digest of the bytes read."""
    with ThreadPoolExecutor(CONTENT_THREADS) as pool:
        sizes = [*pool.map(_size, paths)]
        if sum(sizes) <= MAX_BYTES_READ:
            return [*zip(sizes, pool.map(_digest, paths), strict=True)]
        chosen = evenly_spaced(len(paths), SAMPLED_FILES)
        blocks = pool.map(_digest_blocks, [paths[i] for i in chosen], [sizes[i] for i in chosen])
        digests = dict(zip(chosen, blocks, strict=True))
    return [(size, digests.get(i, '')) for i, size in enumerate(sizes)]


def _size(path: str) -> int:
    """The size of a file in bytes; -1 if it is missing or not a regular file."""
    try:
        status = os.stat(path)
    except OSError:
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def _digest(path: str) -> str:
    """A digest of all bytes of a file, empty if it cannot be read."""
    return _digest_blocks(path, 0)  # a small file is read completely


def _digest_blocks(path: str, size: int) -> str:
    """A digest of the first, middle and last block of a file, or of all of a small one."""
    if not os.path.isfile(path):  # opening a pipe would block
        return ''
    digest = blake2b(digest_size=8)
    try:
        with open(path, 'rb') as file:
            if size <= 3 * BLOCK_BYTES:
                digest.update(file.read())
            else:
                for begin in (0, (size - BLOCK_BYTES) // 2, size - BLOCK_BYTES):
                    file.seek(begin)
                    digest.update(file.read(BLOCK_BYTES))
    except OSError:
        return ''
    return digest.hexdigest()
