"""A traced graph as a ``torch.export`` archive."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import torch
from torch.export import ExportedProgram

from vit_plugin.errors import ConfigError

from .onnx_file import Run


def write_pt2(
    program: ExportedProgram,
    path: Path,
    dtype: str,
    outputs: Sequence[str] = (),
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Write a ``torch.export`` archive. Returns a function that runs it.

    Raises:
        ConfigError: if the dtype is int8 or float16, which need ONNX.
    """
    if dtype in ('int8', 'float16'):
        raise ConfigError(f'--dtype {dtype} is written as .onnx, not {path.suffix}.')
    # torch's own writer aborts the process some time after it has met a full disk.
    archive = BytesIO()
    torch.export.save(program, archive)
    path.write_bytes(archive.getvalue())
    return torch.export.load(path).module()
