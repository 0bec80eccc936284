"""Check the memory that a weight file asks for before it is read.

Tensors are memory-mapped, and so limited by their file. Names and pickles are not: a pickle of a
few bytes can ask for a table of gigabytes.
"""

import io
import os
import pickletools
import struct
import zipfile
from pathlib import Path
from typing import IO

from anyfolder.limits import check_limit
from vit_plugin.errors import ConfigError

# The largest vision models have about 3,000 tensors, and pickles of 200,000 operations.
WEIGHT_LIMITS = {
    'tensors': 10_000,
    'bytes of names and shapes': 32 << 20,
    'bytes of a pickle': 256 << 20,
    'operations of a pickle': 1_000_000,
    'characters of a config': 4_000_000,
    'pixels of a patch at a side': 1_024,
}
LENGTHS = 26  # offset of the lengths of the name and the extra field in a local zip header
INDEXED = ('PUT', 'BINPUT', 'LONG_BINPUT')  # operations with an index into the memo table


def check_weights(source: object, what: str, amount: float) -> None:
    """Check a quantity of a checkpoint against :data:`WEIGHT_LIMITS`.

    Raises:
        LimitError: if it exceeds the limit.
    """
    check_limit(source, what, amount, limits=WEIGHT_LIMITS)


def check_pickle(path: object, stream: IO[bytes]) -> None:
    """Check a pickle before its operations run. The stream ends up after it.

    Args:
        path: path of the file, for messages.
        stream: positioned at the start of the pickle.

    Raises:
        LimitError: if it has too many operations.
        ConfigError: if it asks for a table larger than itself.
        ValueError: if it is damaged, such as by a length beyond its end.
    """
    for count, (operation, value, _) in enumerate(pickletools.genops(stream)):
        if operation.name in INDEXED and int(value or 0) > count:
            raise ConfigError(
                f'The pickle in {str(path)!r} asks for a table of {value:,} values after {count:,} '
                'operations; it is damaged or hostile, and is not read.'
            )
        if count % 10_000 == 0:
            check_weights(path, 'operations of a pickle', count)


def check_stored_pickle(path: Path, member: zipfile.ZipInfo) -> None:
    """Check a pickle that is an uncompressed member of an archive, see :func:`check_pickle`.

    Its checksum is not compared, since it may have none.
    """
    check_weights(path, 'bytes of a pickle', member.file_size)
    with open(path, 'rb') as file:
        file.seek(member.header_offset + LENGTHS)
        file.seek(sum(struct.unpack('<HH', file.read(4))), os.SEEK_CUR)
        check_pickle(path, io.BytesIO(file.read(member.file_size)))


def check_headers(path: object, archive: zipfile.ZipFile) -> None:
    """Check that uncompressed members of an archive are not larger than the file.

    Raises:
        ConfigError: if members overlap.
    """
    stored = sum(member.compress_size for member in archive.infolist())
    length = archive.start_dir
    if stored > length:
        raise ConfigError(
            f'The archive {str(path)!r} has {length:,} bytes, and parts of {stored:,} in them; it '
            'is damaged or hostile, and is not read.'
        )
