"""Provenance records in files, and what publishers state for files without one."""

import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from anyfolder.text import read_text
from vit_plugin.errors import ConfigError
from vit_plugin.project import declared

from .hub import CARD, offline, timm_name
from .licenses import owned
from .opening import Checkpoint, may_be_here, open_checkpoint
from .provenance import MAX_TEXT_LETTERS, PROVENANCE_KEY, Provenance, read_record, read_text_record

CHUNK = 1 << 20  # bytes per read
ZIP_COMMENT = 60_000  # limit of a zip archive's comment in bytes


def carried(checkpoint: Checkpoint) -> Provenance | None:
    """The record that a checkpoint carries: in its meta, or in the metadata of its file."""
    if (record := read_record(checkpoint.meta.get(PROVENANCE_KEY))) is not None:
        return record
    path = checkpoint.path
    return of_file(path) if path is not None and path.is_file() else None


def of_file(path: Path) -> Provenance | None:
    """The record in the metadata of a file: safetensors, or an archive of torch or numpy."""
    if path.suffix == '.safetensors':
        from safetensors import safe_open

        with safe_open(path, framework='numpy') as file:
            return read_text_record((file.metadata() or {}).get(PROVENANCE_KEY, ''))
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return read_text_record(archive.comment.decode(errors='replace'))
    return None


def append_to(path: Path, record: Provenance) -> None:
    """Append a record to an archive of torch or numpy, whose readers skip it."""
    text = record.text().encode()
    if zipfile.is_zipfile(path) and len(text) <= ZIP_COMMENT:
        with zipfile.ZipFile(path, 'a') as archive:
            archive.comment = text


def of_checkpoint(checkpoint: Checkpoint) -> Provenance:
    """The record of an open checkpoint, with its hash."""
    return _complete(carried(checkpoint), str(checkpoint.source), checkpoint.path)


def of_exported(path: Path, metadata: Mapping[str, str] | None = None) -> Provenance:
    """The record of an exported file, with its hash.

    Args:
        path: the file.
        metadata: the metadata that its runtime reads. None for an archive of ``torch.export``.
    """
    record = (
        of_file(path) if metadata is None else read_text_record(metadata.get(PROVENANCE_KEY, ''))
    )
    return _complete(record, str(path), path)


def of_address(address: str, download: bool = True) -> Provenance:
    """The record of weights at a path, at an address or in a hub.

    Args:
        address: the path, URL or name in a hub.
        download: whether to download missing files. Otherwise only the name and address are used.
    """
    if timm_name(address) is None:  # timm's weights can only be read by building the model
        with suppress(ConfigError), nullcontext() if download else offline():
            if download or may_be_here(address):
                return of_checkpoint(open_checkpoint(address, payload=False))
    return _complete(None, address, None)


def _complete(record: Provenance | None, address: str, path: Path | None) -> Provenance:
    """Complete a record with the current file name, and the license that others state."""
    name = address if '://' in address else Path(address).name
    names = [address, name, *([path.name] if path else [])]
    record = replace(record or Provenance(name), source=name, sha256=digest(path) if path else '')
    if record.license:
        return record
    license, stated = record_license(names, path)
    return replace(record, license=license, stated=stated)


def record_license(names: Sequence[str], path: Path | None) -> tuple[str, str]:
    """The license of third-party weights, and who states it; empty if nobody does.

    Args:
        names: their addresses and file names.
        path: their file, maybe with a model card next to it.
    """
    for name in names:
        if (of_timm := timm_name(name)) is not None:
            from timm.models import get_pretrained_cfg

            try:
                stated = getattr(get_pretrained_cfg(of_timm), 'license', None)
            except RuntimeError:  # an unknown tag
                continue
            if stated:
                return stated, 'timm'
    for offered, (license, _, address) in declared('offered').items():
        if {offered, address} & {*names}:
            return license.lower(), address
    if path and (license := _read_card_license(path.with_name(CARD))):
        return license, CARD
    if row := owned(names):
        return row.license, row.page
    return '', ''


def _read_card_license(card: Path) -> str:
    """The license in the metadata of a model card, or ''."""
    if not card.is_file():
        return ''
    head = read_text(card).partition('\n---')[0]
    metadata = {
        key: value.strip(' "\'')
        for key, value in re.findall(r'(?m)^(license|license_name): *(\S.*)$', head)
    }
    name = metadata.get('license', '')
    return (metadata.get('license_name', name) if name == 'other' else name)[:MAX_TEXT_LETTERS]


def digest(path: Path) -> str:
    """The SHA-256 of a file, or of the manifest of a checkpoint folder."""
    file = path / 'manifest.json' if path.is_dir() else path
    if not file.is_file():
        return ''
    status = file.stat()
    return _digest(str(file), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _digest(path: str, changed: int, size: int) -> str:
    digest = sha256()
    with open(path, 'rb') as file:
        while part := file.read(CHUNK):
            digest.update(part)
    return digest.hexdigest()
