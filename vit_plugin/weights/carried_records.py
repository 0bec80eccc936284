"""Read and write provenance records in files, and find licenses that only publishers state.

For what a record is, see :mod:`~vit_plugin.weights.provenance`.
"""

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
from vit_plugin.project import declared_rows

from .hub import offline, timm_name
from .hub_files import CARD
from .licenses import find_owned
from .opening import Checkpoint, may_be_local, open_checkpoint
from .provenance import MAX_TEXT_LETTERS, PROVENANCE_KEY, Provenance, read_record, read_text_record

CHUNK = 1 << 20  # bytes per read
MAX_COMMENT_BYTES = 60_000  # the comment of a zip archive may have 65,535


def carried_record(checkpoint: Checkpoint) -> Provenance | None:
    """The record that a checkpoint carries: in its meta, or in the metadata of its file."""
    if (record := read_record(checkpoint.meta.get(PROVENANCE_KEY))) is not None:
        return record
    path = checkpoint.path
    return file_record(path) if path is not None and path.is_file() else None


def file_record(path: Path) -> Provenance | None:
    """The record in the metadata of a file: safetensors, or an archive of torch or numpy."""
    if path.suffix == '.safetensors':
        from safetensors import safe_open

        with safe_open(path, framework='numpy') as file:
            return read_text_record((file.metadata() or {}).get(PROVENANCE_KEY, ''))
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return read_text_record(archive.comment.decode(errors='replace'))
    return None


def append_record(path: Path, record: Provenance) -> None:
    """Write a record into a zip archive of torch or numpy, as its comment, which readers skip.

    Any other file stays unchanged, and so does an archive if the record is too long.
    """
    text = record.text().encode()
    if zipfile.is_zipfile(path) and len(text) <= MAX_COMMENT_BYTES:
        with zipfile.ZipFile(path, 'a') as archive:
            archive.comment = text


def checkpoint_record(checkpoint: Checkpoint) -> Provenance:
    """The record of an open checkpoint, with its hash."""
    return _for_file(carried_record(checkpoint), str(checkpoint.source), checkpoint.path)


def exported_record(path: Path, metadata: Mapping[str, str] | None = None) -> Provenance:
    """The record of an exported file, with its hash.

    Args:
        path: the file.
        metadata: the metadata that its runtime reads. None for an archive of ``torch.export``.
    """
    record = (
        file_record(path)
        if metadata is None
        else read_text_record(metadata.get(PROVENANCE_KEY, ''))
    )
    return _for_file(record, str(path), path)


def address_record(address: str, download: bool = True) -> Provenance:
    """The record of weights at a path, at an address or in a hub.

    Args:
        address: the path, URL or name in a hub.
        download: whether to download a missing file. Otherwise its record has only the name and the
            license.
    """
    if timm_name(address) is None:  # timm's weights can only be read by building the model
        # If the weights cannot be read, the record only has what their publisher states.
        with suppress(ConfigError), nullcontext() if download else offline():
            if download or may_be_local(address):
                return checkpoint_record(open_checkpoint(address, payload=False))
    return _for_file(None, address, None)


def _for_file(record: Provenance | None, address: str, path: Path | None) -> Provenance:
    """A record with a file's name and hash, and if it states no license, with its publisher's.

    Args:
        record: the record that the file carries, if any.
        address: the path or address of the file.
        path: the local file, if there is one.
    """
    name = address if '://' in address else Path(address).name
    names = [address, name, *([path.name] if path else [])]
    record = replace(record or Provenance(name), source=name, sha256=digest(path) if path else '')
    if record.license:
        return record
    license, stated = record_license(names, path)
    return replace(record, license=license, stated=stated)


def record_license(names: Sequence[str], path: Path | None) -> tuple[str, str]:
    """The license of third-party weights, and who states it. Both are empty if nobody does.

    Args:
        names: their addresses and file names.
        path: their file, maybe with a model card next to it.
    """
    for name in names:
        if (timm_model := timm_name(name)) is not None:
            from timm.models import get_pretrained_cfg

            try:
                stated = getattr(get_pretrained_cfg(timm_model), 'license', None)
            except RuntimeError:  # an unknown tag
                continue
            if stated:
                return stated, 'timm'
    for offered, (license, _, address) in declared_rows('offered').items():
        if {offered, address} & {*names}:
            return license.lower(), address
    if path and (license := _read_card_license(path.with_name(CARD))):
        return license, CARD
    if row := find_owned(names):
        return row.license, row.page
    return '', ''


def _read_card_license(card: Path) -> str:
    """The license in the metadata of a model card, or ''."""
    if not card.is_file():
        return ''
    text = read_text(card).lstrip()
    if not text.startswith('---'):  # a page without metadata, whose text may be of anything
        return ''
    head = text.partition('\n---')[0]  # the YAML between two lines of dashes
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
def _digest(path: str, modified: int, size: int) -> str:
    """The SHA-256 of a file, cached until its modification time or size changes."""
    hasher = sha256()
    with open(path, 'rb') as file:
        while chunk := file.read(CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()
