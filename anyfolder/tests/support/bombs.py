"""Small files whose header states a huge content."""

import struct
import zlib


def bomb() -> bytes:
    """A PNG whose header states 60,000 x 60,000 pixels, and which holds none."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack('>I', len(content))
            + name
            + content
            + struct.pack('>I', zlib.crc32(name + content))
        )

    header = struct.pack('>IIBBBBB', 60000, 60000, 8, 2, 0, 0, 0)
    return (
        b'\x89PNG\r\n\x1a\n'
        + chunk(b'IHDR', header)
        + chunk(b'IDAT', zlib.compress(b''))
        + chunk(b'IEND', b'')
    )
