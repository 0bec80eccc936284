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
# Offset of the lengths of the name and the extra field in a local zip header, whose size is 30.
LENGTHS_OFFSET = 26
MEMO_OPERATIONS = ('PUT', 'BINPUT', 'LONG_BINPUT')  # operations with an index into the memo table


def check_weight_limit(source: object, what: str, amount: float) -> None:
    """Check a quantity of a checkpoint against :data:`WEIGHT_LIMITS`.

    Raises:
        LimitError: if it exceeds the limit.
    """
    check_limit(source, what, amount, limits=WEIGHT_LIMITS)


def check_pickle(path: object, stream: IO[bytes]) -> None:
    """Check a pickle before its operations run. Leaves the stream after the pickle.

    Args:
        path: path of the file, for messages.
        stream: positioned at the start of the pickle.

    Raises:
        LimitError: if it has too many operations.
        ConfigError: if it asks for a memo table larger than itself.
        ValueError: if it is damaged, such as by a length beyond its end.
    """
    for count, (operation, value, _) in enumerate(pickletools.genops(stream)):
        # A memo index cannot exceed the number of operations so far.
        if operation.name in MEMO_OPERATIONS and int(value or 0) > count:
            raise ConfigError(
                f'The pickle in {str(path)!r} asks for a table of {value:,} values after {count:,} '
                'operations; it is damaged or hostile, and is not read.'
            )
        if count % 10_000 == 0:  # not at each operation, which would be slow
            check_weight_limit(path, 'operations of a pickle', count)


def check_stored_pickle(path: Path, member: zipfile.ZipInfo) -> None:
    """Check a pickle that is an uncompressed member of an archive, see :func:`check_pickle`.

    Its checksum is not compared, since some files have no checksums.
    """
    check_weight_limit(path, 'bytes of a pickle', member.file_size)
    with open(path, 'rb') as file:
        file.seek(member.header_offset + LENGTHS_OFFSET)
        file.seek(sum(struct.unpack('<HH', file.read(4))), os.SEEK_CUR)
        check_pickle(path, io.BytesIO(file.read(member.file_size)))


def check_member_sizes(path: object, archive: zipfile.ZipFile) -> None:
    """Check the sum of the sizes of an archive's members, as they are stored.

    Their bytes must fit before the central directory. Those of overlapping members would not.

    Raises:
        ConfigError: if they do not fit.
    """
    stored = sum(member.compress_size for member in archive.infolist())
    available = archive.start_dir
    if stored > available:
        raise ConfigError(
            f'The archive {str(path)!r} has {available:,} bytes, and parts of {stored:,} in them; '
            'it is damaged or hostile, and is not read.'
        )
