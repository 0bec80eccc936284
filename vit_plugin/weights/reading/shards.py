"""Weights split into several safetensors files, with an index that maps tensors to files.

``save_pretrained`` of Hugging Face's libraries writes them for large models.
"""

from pathlib import Path
from typing import Any

from safetensors import safe_open

from anyfolder.bounded import read_json
from anyfolder.limits import LimitError
from vit_plugin.arguments import fits
from vit_plugin.errors import ConfigError

from .lazy import Lazy, Weights

INDEX = 'model.safetensors.index.json'


def shard_files(index: Path) -> dict[str, str]:
    """The file of each tensor, by the tensors' names.

    Raises:
        ConfigError: if this is not such an index, or names a file in another folder.
    """
    files: Any = None
    try:
        files = read_json(index)['weight_map']
    except LimitError:
        raise
    except (ValueError, TypeError, KeyError):  # rejected below
        pass
    if not fits(dict[str, str], files) or any(Path(file).name != file for file in files.values()):
        raise ConfigError(
            f'{str(index)!r} does not say in weight_map which file next to it each tensor is in; '
            'download it again.'
        )
    return files


def read_shards(index: Path) -> Weights:
    """Read the tensors of all files, each on access.

    Raises:
        ConfigError: see :func:`shard_files`, and if a file is missing, or lacks a tensor.
    """
    files = shard_files(index)
    missing = [file for file in sorted({*files.values()}) if not index.with_name(file).is_file()]
    if missing:
        raise ConfigError(
            f'{str(index)!r} names {missing[0]}, which is not next to it; put it there.'
        )
    opened = {file: safe_open(index.with_name(file), framework='pt') for file in {*files.values()}}
    names = {file: {*content.keys()} for file, content in opened.items()}
    if lacking := [name for name, file in files.items() if name not in names[file]]:
        raise ConfigError(
            f'{str(index)!r} names {lacking[0]} in {files[lacking[0]]}, which lacks it; download '
            'both again.'
        )
    return Lazy(files, lambda name: opened[files[name]].get_tensor(name))
