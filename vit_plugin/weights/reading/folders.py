"""Read checkpoints that are folders of safetensors, without running any code in them.

Such a folder has ``shard-*.safetensors`` (each rank's tensors, in the form that torch's
``HuggingFaceStorageReader`` reads), ``run.json`` (everything else, see
:mod:`~vit_plugin.weights.reading.plain`) and ``manifest.json`` with the size and the SHA-256 of
each file. `vit_plugin.engine.checkpoints` writes them.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from typing_extensions import TypedDict

from anyfolder.bounded import json_in, read_json
from anyfolder.limits import LimitError, read_within
from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import OpenDict
from vit_plugin.errors import ConfigError

from .plain import join

MANIFEST, RUN = 'manifest.json', 'run.json'
FORMAT, VERSION = 'vit_plugin checkpoint', 1
# torch's entry in a file's metadata: the offset of each tensor in the full tensor.
SHARD_OFFSETS = 'DCP_SHARDING_INFO'
HASHED_AT_ONCE = 1 << 22  # bytes


class FileEntry(TypedDict):
    """The entry of a file in the manifest: its size and hash."""

    bytes: int
    sha256: str


class Manifest(OpenDict):
    """A manifest, apart from ``format`` and ``version``, which are read first."""

    files: dict[str, FileEntry]


def is_checkpoint_folder(path: str | Path) -> bool:
    """True if a folder has the manifest of a checkpoint. It may be damaged."""
    # Also False for a text that cannot be a path.
    return os.path.isfile(os.path.join(path, MANIFEST))


def manifest_text(facts: dict[str, Any]) -> str:
    """The text of a manifest file: the facts, and the SHA-256 of their own JSON.

    Args:
        facts: all entries of the manifest but this hash.
    """
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return json.dumps({**facts, 'sha256': digest}, indent=1, sort_keys=True) + '\n'


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The manifest of a folder: ``epoch``, ``iteration``, ``files`` with ``bytes`` and ``sha256``.

    Raises:
        ConfigError: if the folder is not a checkpoint, or of another version, or if its manifest is
            damaged.
    """
    file = Path(path, MANIFEST)
    if not file.is_file() or file.is_symlink():
        raise ConfigError(
            f'The folder {str(path)!r} is not a checkpoint of vit_plugin: it has no {MANIFEST}; '
            'give a file, or a folder that default_hooks.checkpoint wrote.'
        )
    try:
        text = read_within(file, 'bytes of JSON').decode()
        facts = json_in(text, file)
        version = facts['version'] if facts['format'] == FORMAT else None
    except LimitError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, f'{MANIFEST} cannot be read') from error
    if version != VERSION:
        raise ConfigError(
            f'The folder {str(path)!r} is of another version of the format (version {version!r} of '
            f'{facts["format"]!r}), but this vit_plugin reads version {VERSION} of {FORMAT!r}; '
            'install the vit_plugin that wrote it.'
        )
    facts.pop('sha256', None)
    if manifest_text(facts) != text:
        raise _damaged(path, f'{MANIFEST} has been changed')
    if not fits(Manifest, facts) or RUN not in facts['files']:
        raise _damaged(path, f'{MANIFEST} does not list the files with their bytes and sha256')
    return facts


def check_complete(path: str | Path) -> dict[str, Any]:
    """Compare every file of a folder with its manifest. Returns the manifest's facts.

    Raises:
        ConfigError: see :func:`read_manifest`, and if a file is missing, unexpected, a link, or has
            other content.
    """
    facts = read_manifest(path)
    if wrong := what_is_wrong(path, facts['files']):
        raise _damaged(path, wrong)
    return facts


def what_is_wrong(
    path: str | Path, files: Mapping[str, FileEntry], share: tuple[int, int] = (0, 1)
) -> str:
    """How a folder differs from the files of its manifest, or an empty text.

    Args:
        path: the folder.
        files: the manifest's facts of each file.
        share: (i, n) reads every n-th file, from the i-th on. The others must only exist.
    """
    path, names = Path(path), sorted(files)
    present, listed = {file.name for file in path.iterdir()}, {MANIFEST, *files}
    if missing := listed - present:
        return f'{min(missing)} is missing'
    if unlisted := present - listed:
        return f'{min(unlisted)} is there, but not in {MANIFEST}'
    first, step = share
    with ThreadPoolExecutor(4) as pool:
        damages = pool.map(lambda name: _damage(path / name, files[name]), names[first::step])
        return next(filter(None, damages), '')


def _damage(file: Path, entry: FileEntry) -> str:
    """How a file differs from its entry in the manifest, or an empty text."""
    try:
        if file.is_symlink() or not file.is_file():
            return f'{file.name} is not a regular file'
        if file.stat().st_size != entry['bytes']:
            return f'{file.name} has {file.stat().st_size} bytes instead of {entry["bytes"]}'
        digest = hashlib.sha256()
        with open(file, 'rb') as stream:
            while block := stream.read(HASHED_AT_ONCE):
                digest.update(block)
    except OSError as error:
        return f'{file.name} cannot be read ({error.strerror})'
    if digest.hexdigest() != entry['sha256']:
        return f'{file.name} has other content than when it was written'
    return ''


def _damaged(path: str | Path, reason: str) -> ConfigError:
    return ConfigError(
        f'The checkpoint {str(path)!r} is damaged ({reason}); take one from before, or copy it '
        'again.'
    )


def read_run(path: str | Path, parts: Sequence[str] | None = None) -> dict[str, Any]:
    """The content of ``run.json``, in which tensors are names.

    :func:`~vit_plugin.weights.reading.plain.join` puts the tensors in their place.

    Args:
        path: a folder that :func:`check_complete` has accepted.
        parts: the keys of MMEngine's checkpoint dict to read. Those that it lacks are left out.
            None reads all.
    """
    content = read_json(Path(path, RUN))
    return {name: content[name] for name in content if parts is None or name in parts}


def read_folder(
    path: str | Path, parts: Sequence[str] | None = ('meta', 'state_dict')
) -> dict[str, Any]:
    """Read a checkpoint folder with full tensors, in one process.

    Args:
        path, parts: see :func:`read_run`.
    """
    return join(read_run(path, parts), _Tensors(Path(path)))


class _Tensors(dict):
    """The tensors of a folder by name, assembled from their shards on access."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        # By name: the open files with a part of the tensor, and the offset of the part in it.
        self._parts: dict[str, list[tuple[Any, list[int]]]] = {}
        for file in sorted(folder.glob('*.safetensors')):
            content = safe_open(file, framework='pt')
            offsets = json_in((content.metadata() or {}).get(SHARD_OFFSETS, '{}'), file)
            for name in content.keys():  # noqa: SIM118  it is not a mapping
                offset = offsets.get(name, {}).get('saved_offsets')
                self._parts.setdefault(name, []).append((content, offset))

    def __missing__(self, name: str) -> Tensor:
        parts = [(content.get_tensor(name), offset) for content, offset in self._parts[name]]
        if len(parts) == 1:
            return parts[0][0]
        ends = [
            [start + size for start, size in zip(offset, part.shape, strict=True)]
            for part, offset in parts
        ]
        shape = [max(sizes) for sizes in zip(*ends, strict=True)]
        if math.prod(shape) != sum(part.numel() for part, _ in parts):
            raise ConfigError(
                f'The parts of {name!r} do not make up a tensor {tuple(shape)}: the checkpoint is '
                'damaged.'
            )
        full = torch.empty(shape, dtype=parts[0][0].dtype)
        for (part, offset), end in zip(parts, ends, strict=True):
            full[tuple(map(slice, offset, end))] = part
        return full


def check_checkpoint(path: str | None) -> None:
    """Raise a ``ConfigError`` if a local path is neither a file nor a checkpoint folder."""
    if path is not None and '://' not in path:
        if os.path.isdir(path):
            read_manifest(path)
        elif not os.path.isfile(path):
            raise ConfigError(f'There is no checkpoint file {path!r}.')
