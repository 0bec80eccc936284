"""Stream tensors to a safetensors file, and hash it on the way."""

import hashlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from vit_plugin.weights.reading.folders import SHARD_OFFSETS

# safetensors' names of the types.
SAFETENSORS_DTYPES = {
    torch.float64: 'F64',
    torch.float32: 'F32',
    torch.float16: 'F16',
    torch.bfloat16: 'BF16',
    torch.int64: 'I64',
    torch.int32: 'I32',
    torch.int16: 'I16',
    torch.int8: 'I8',
    torch.uint8: 'U8',
    torch.bool: 'BOOL',
}


def write_safetensors(path: Path, items: list, resolve: Callable[[Any], Any]) -> dict[str, Any]:
    """Write the tensor shards that torch's DCP has planned. Return the file's size and hash.

    Args:
        path: the file.
        items: the items of a rank's DCP plan.
        resolve: (item) -> its tensor.
    """
    header, offsets, end = {}, {}, 0
    for item in items:
        chunk, name = item.tensor_data.chunk, item.index.fqn
        begin, end = end, end + chunk.sizes.numel() * item.tensor_data.properties.dtype.itemsize
        header[name] = dict(
            dtype=SAFETENSORS_DTYPES[item.tensor_data.properties.dtype],
            shape=list(chunk.sizes),
            data_offsets=[begin, end],
        )
        offsets[name] = dict(saved_offsets=list(chunk.offsets))
    text = json.dumps(
        {'__metadata__': {SHARD_OFFSETS: json.dumps(offsets), 'format': 'pt'}, **header}
    ).encode()
    text += b' ' * (-len(text) % 8)  # the data begins at a multiple of 8 bytes
    blocks = (
        resolve(item).detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
        for item in items
    )
    return write_hashed(path, struct.pack('<Q', len(text)) + text, *blocks)


def write_hashed(path: Path, *blocks: Any) -> dict[str, Any]:
    """Write blocks of bytes to a file. Return its size and hash, as the manifest has them."""
    digest, size = hashlib.sha256(), 0
    with open(path, 'wb') as file:
        for block in blocks:
            file.write(block)
            digest.update(block)
            size += len(block)
        file.flush()
        os.fsync(file.fileno())
        # Drop the pages, so that reading back reaches the disk, not the page cache.
        if hasattr(os, 'posix_fadvise'):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return dict(bytes=size, sha256=digest.hexdigest())
