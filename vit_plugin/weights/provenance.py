"""Provenance of weights: a record that files carry through trainings and conversions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vit_plugin import __version__

from .licenses import license_kind

PROVENANCE_KEY = 'provenance'  # key in a checkpoint's meta and in other files' metadata
# Limits of a record: depth of the chain, characters of a text, number of links.
MAX_DEPTH, MAX_TEXT_LETTERS, MAX_LINKS = 32, 500, 1000


@dataclass(frozen=True)
class Provenance:
    """The provenance of some weights.

    Attributes:
        source: the address or the file name, without local folders.
        license: as its owner states it; empty if it is not stated.
        stated: who or which page states it.
        sha256: hash of the file, if there is one.
        made: how they were made from their links: ``'trained'``, ``'distilled'``, ``'converted'``,
            ``'exported'``; empty for third-party weights.
        by: the program that made them, with its version.
        links: what they were made from, each with its role: ``'start'``, ``'teacher'``, ``'data'``.
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
        """The record and everything it was made from, with depths and roles."""
        yield depth, part, self
        for name, one in self.links:
            yield from one.walk(name, depth + 1)

    def concerns(self) -> list[str]:
        """Describe each source without a permissive license once."""
        concerns = []
        for _, _, record in self.walk():
            kind = license_kind(record.license)
            if kind == 'unknown' and record.made:  # only its sources matter
                continue
            if kind != 'permissive':
                concerns.append(f'{record.source}: {LICENSE_NOTES[kind].format(record.license)}')
        return [*dict.fromkeys(concerns)]

    def lines(self) -> Iterator[str]:
        """The chain as text, one line per link."""
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
        trained = [one for _, _, one in self.walk() if one.made in TRAINED_HERE]
        if any('data' not in dict(record.links) for record in trained):
            yield 'The license of the training data is not stated.'


TRAINED_HERE = ('trained', 'distilled')
TEXTS = ('source', 'license', 'stated', 'sha256', 'made', 'by')
LICENSE_NOTES = {
    'unknown': 'no license is known',
    'noncommercial': '{}, which excludes commercial use',
    'own terms': '{}, which has terms of its own',
}


def read_record(value: Any, depth: int = 0) -> Provenance | None:
    """Parse a record from untrusted plain values; None for anything else."""
    if not isinstance(value, Mapping) or depth > MAX_DEPTH:
        return None
    texts = {name: value.get(name, '') for name in TEXTS}
    links = value.get('links', [])
    if not all(isinstance(text, str) and len(text) <= MAX_TEXT_LETTERS for text in texts.values()):
        return None
    if not isinstance(links, Sequence) or len(links) > MAX_LINKS:
        return None
    records = []
    for link in links:
        part, of = (
            link.get(name) if isinstance(link, Mapping) else None for name in ('part', 'of')
        )
        record = read_record(of, depth + 1)
        if record is None or not isinstance(part, str) or len(part) > MAX_TEXT_LETTERS:
            return None
        records.append((part, record))
    return Provenance(**texts, links=tuple(records))


def read_text_record(text: str) -> Provenance | None:
    """The record in metadata of a file, or None."""
    try:
        return read_record(json.loads(text)) if text else None
    except (ValueError, RecursionError):
        return None


def made_of(
    made: str, source: str, links: Sequence[tuple[str, Provenance]] = (), license: str = ''
) -> Provenance:
    """The record of weights that this package makes."""
    stated = 'who made it' if license else ''
    name = source if '://' in source else Path(source).name
    return Provenance(name, license, stated, '', made, f'vit_plugin {__version__}', tuple(links))


def converted(
    before: Provenance, target: str, license: str = '', made: str = 'converted'
) -> Provenance:
    """The record of the same weights in another file, under the same license unless stated."""
    record = made_of(made, target, [('start', before)], license)
    return record if license else replace(record, license=before.license, stated=before.stated)


# The settings that name initial weights.
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
