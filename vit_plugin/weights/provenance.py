"""Where weights come from: a record that each file carries, through trainings and conversions."""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from anyfolder.text import read_text
from vit_plugin import __version__
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.project import declared

from .hub import CARD, offline, timm_name
from .licenses import kind_of, owned
from .opening import Checkpoint, may_be_here, open_checkpoint

KEY = 'provenance'  # of a checkpoint's meta, and of the metadata of other files
DEEPEST, LONGEST, MOST = 32, 500, 1000  # links below one another, letters of a text, links
CHUNK = 1 << 20  # bytes that are read at once
ZIP_COMMENT = 60_000  # bytes that the end of a zip archive holds


@dataclass(frozen=True)
class Provenance:
    """Where some weights come from.

    Attributes:
        source: the address or the name of the file, without the folders of a machine.
        license: as its owner states it; empty if it is not stated.
        stated: who or which page states it.
        sha256: of the file, if there is one.
        made: how they were made of what they begin with: ``'trained'``, ``'distilled'``,
            ``'converted'``, ``'exported'``; empty for weights of others.
        by: the program that made them, with its version.
        links: what they were made of, each with its part: ``'start'``, ``'teacher'``, ``'data'``.
    """

    source: str
    license: str = ''
    stated: str = ''
    sha256: str = ''
    made: str = ''
    by: str = ''
    links: tuple[tuple[str, 'Provenance'], ...] = ()

    def plain(self) -> dict[str, Any]:
        """The record as plain values."""
        texts = {name: value for name in TEXTS if (value := getattr(self, name))}
        links = [dict(part=part, of=one.plain()) for part, one in self.links]
        return {**texts, **({'links': links} if links else {})}

    def text(self) -> str:
        """The record in one line, as metadata of other files have it."""
        return json.dumps(self.plain(), ensure_ascii=True)

    def walk(self, part: str = '', depth: int = 0) -> Iterator[tuple[int, str, 'Provenance']]:
        """The record and all that it was made of, with their depths and parts."""
        yield depth, part, self
        for name, one in self.links:
            yield from one.walk(name, depth + 1)

    def concerns(self) -> list[str]:
        """What has no permissive license, in words, once each."""
        found = []
        for _, _, one in self.walk():
            kind = kind_of(one.license)
            if kind == 'unknown' and one.made:  # what counts is what it was made of
                continue
            if kind != 'permissive':
                found.append(f'{one.source}: {SAID[kind].format(one.license)}')
        return [*dict.fromkeys(found)]

    def lines(self) -> Iterator[str]:
        """The chain, a line for each link."""
        for depth, part, one in self.walk():
            made = ', '.join(filter(None, (one.made, one.by)))
            license = one.license or 'license not stated'
            facts = [license + (f' ({one.stated})' if one.stated else '')]
            facts += [made] * bool(made) + [f'sha256 {one.sha256}'] * bool(one.sha256)
            yield f'{"  " * depth}{part + ": " if part else ""}{one.source}: {"; ".join(facts)}'
        concerns = self.concerns()
        yield (
            f'Not permissive: {"; ".join(concerns)}.'
            if concerns
            else 'Each license that is stated in this chain is permissive.'
        )
        trained = [one for _, _, one in self.walk() if one.made in TRAINED]
        if any('data' not in dict(one.links) for one in trained):
            yield 'The license of the training data is not stated.'


TRAINED = ('trained', 'distilled')
TEXTS = ('source', 'license', 'stated', 'sha256', 'made', 'by')
SAID = {
    'unknown': 'no license is known',
    'noncommercial': '{}, which excludes commercial use',
    'own terms': '{}, which has terms of its own',
}


def read_record(value: Any, depth: int = 0) -> Provenance | None:
    """A record of plain values, which may be those of an unknown person; None for anything else."""
    if not isinstance(value, Mapping) or depth > DEEPEST:
        return None
    texts = {name: value.get(name, '') for name in TEXTS}
    links = value.get('links', [])
    if not all(isinstance(one, str) and len(one) <= LONGEST for one in texts.values()):
        return None
    if not isinstance(links, Sequence) or len(links) > MOST:
        return None
    found = []
    for link in links:
        part, of = (
            link.get(name) if isinstance(link, Mapping) else None for name in ('part', 'of')
        )
        record = read_record(of, depth + 1)
        if record is None or not isinstance(part, str) or len(part) > LONGEST:
            return None
        found.append((part, record))
    return Provenance(**texts, links=tuple(found))


def read_text_record(text: str) -> Provenance | None:
    """The record in metadata of a file, or None."""
    try:
        return read_record(json.loads(text)) if text else None
    except (ValueError, RecursionError):
        return None


def carried(checkpoint: Checkpoint) -> Provenance | None:
    """The record that a checkpoint carries: in its meta, or in the metadata of its file."""
    if (record := read_record(checkpoint.meta.get(KEY))) is not None:
        return record
    path = checkpoint.path
    return of_file(path) if path is not None and path.is_file() else None


def of_file(path: Path) -> Provenance | None:
    """The record in the metadata of a file: safetensors, ONNX, or an archive of torch or numpy."""
    if path.suffix == '.safetensors':
        from safetensors import safe_open

        with safe_open(path, framework='numpy') as file:
            return read_text_record((file.metadata() or {}).get(KEY, ''))
    if path.suffix == '.onnx':
        with needed_by('A file in ONNX'):
            import onnxruntime
        session = onnxruntime.InferenceSession(str(path), providers=['CPUExecutionProvider'])
        return read_text_record(session.get_modelmeta().custom_metadata_map.get(KEY, ''))
    if path.suffix == '.xml':
        with needed_by("A file in OpenVINO's format"):
            import openvino
        model = openvino.Core().read_model(str(path))
        return read_text_record(str(model.rt_info[KEY].value) if model.has_rt_info([KEY]) else '')
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return read_text_record(archive.comment.decode(errors='replace'))
    return None


def append_to(path: Path, record: Provenance) -> None:
    """Write a record at the end of an archive of torch or numpy, whose readers pass over it."""
    text = record.text().encode()
    if zipfile.is_zipfile(path) and len(text) <= ZIP_COMMENT:
        with zipfile.ZipFile(path, 'a') as archive:
            archive.comment = text


def of_checkpoint(checkpoint: Checkpoint) -> Provenance:
    """The record of a checkpoint that is open, with its hash."""
    return _completed(carried(checkpoint), str(checkpoint.source), checkpoint.path)


def of_exported(path: Path) -> Provenance:
    """The record of a file in ONNX, or of an archive of ``torch.export``, with its hash."""
    return _completed(of_file(path), str(path), path)


def of_address(address: str, download: bool = True) -> Provenance:
    """The record of weights at a path, at an address or in a hub, as far as they can be read.

    Args:
        address: where they are.
        download: whether to fetch what is not on this machine. Else its name and address tell.
    """
    if timm_name(address) is None:  # whose weights are read by building their model
        with suppress(ConfigError), nullcontext() if download else offline():
            if download or may_be_here(address):
                return of_checkpoint(open_checkpoint(address, payload=False))
    return _completed(None, address, None)


def _completed(record: Provenance | None, address: str, path: Path | None) -> Provenance:
    """A record with the name of its file now, and what others state of the license."""
    name = address if '://' in address else Path(address).name
    names = [address, name, *([path.name] if path else [])]
    record = replace(record or Provenance(name), source=name, sha256=digest(path) if path else '')
    if record.license:
        return record
    license, stated = record_license(names, path)
    return replace(record, license=license, stated=stated)


def record_license(names: Sequence[str], path: Path | None) -> tuple[str, str]:
    """The license of weights of others, and who states it; empty if nobody does.

    Args:
        names: their addresses and names of files.
        path: their file. A card of the hub may be beside it.
    """
    for name in names:
        if (of_timm := timm_name(name)) is not None:
            from timm.models import get_pretrained_cfg

            try:
                found = getattr(get_pretrained_cfg(of_timm), 'license', None)
            except RuntimeError:  # of an unknown tag
                continue
            if found:
                return found, 'timm'
    for offered, (license, _, address) in declared('offered').items():
        if {offered, address} & {*names}:
            return license.lower(), address
    if path and (license := _of_card(path.with_name(CARD))):
        return license, CARD
    if row := owned(names):
        return row.license, row.page
    return '', ''


def _of_card(card: Path) -> str:
    """The license in the head of a card of the hub, or nothing."""
    if not card.is_file():
        return ''
    head = read_text(card).partition('\n---')[0]
    found = {
        key: value.strip(' "\'')
        for key, value in re.findall(r'(?m)^(license|license_name): *(\S.*)$', head)
    }
    name = found.get('license', '')
    return (found.get('license_name', name) if name == 'other' else name)[:LONGEST]


def digest(path: Path) -> str:
    """The SHA-256 of a file, or of the manifest of a checkpoint folder."""
    file = path / 'manifest.json' if path.is_dir() else path
    if not file.is_file():
        return ''
    status = file.stat()
    return _digest(str(file), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _digest(path: str, changed: int, size: int) -> str:
    found = sha256()
    with open(path, 'rb') as file:
        while part := file.read(CHUNK):
            found.update(part)
    return found.hexdigest()


def made_of(
    made: str, source: str, links: Sequence[tuple[str, Provenance]] = (), license: str = ''
) -> Provenance:
    """The record of weights that this program makes."""
    stated = 'who made it' if license else ''
    name = source if '://' in source else Path(source).name
    return Provenance(name, license, stated, '', made, f'vit_plugin {__version__}', tuple(links))


def converted(
    before: Provenance, target: str, license: str = '', made: str = 'converted'
) -> Provenance:
    """The record of the same weights in another file, under the same license unless stated."""
    record = made_of(made, target, [('start', before)], license)
    return record if license else replace(record, license=before.license, stated=before.stated)


# The settings that name weights to begin with.
BEGINNINGS = ('load_from', 'begin_from', 'checkpoint', 'pretrained')


def begun_with(settings: Any, part: str = 'start') -> Iterator[tuple[str, str]]:
    """The weights that a config names anywhere, as ``'start'`` or as ``'teacher'``."""
    if isinstance(settings, Mapping):
        for name in BEGINNINGS:
            if isinstance(settings.get(name), str) and settings[name]:
                yield part, settings[name]
        init = settings.get('init_cfg')
        if isinstance(init, Mapping) and init.get('checkpoint') is True:
            yield part, str(settings.get('arch') or f'timm://{settings.get("model_name")}')
        if settings.get('pretrained') is True:
            yield part, f'timm://{settings.get("model_name")}'
        teacher = settings.get('teacher')
        source = teacher.get('source') if isinstance(teacher, Mapping) else teacher
        if isinstance(source, str):
            yield 'teacher', source
    items = settings.items() if isinstance(settings, Mapping) else enumerate(settings)
    for key, value in items:
        if isinstance(value, (Mapping, list, tuple)):
            yield from begun_with(value, 'teacher' if key == 'teacher' else part)
