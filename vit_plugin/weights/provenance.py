"""Provenance of weights: a record that files carry through trainings and conversions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vit_plugin import __version__

from .licenses import license_kind

PROVENANCE_KEY = 'provenance'  # key in a checkpoint's meta and in other files' metadata
# Limits of a record: depth of the chain, characters of a text, number of links, and number of
# records in the chain. A pickle can repeat one link at each level, at no cost to its size.
MAX_DEPTH, MAX_TEXT_LETTERS, MAX_LINKS, MAX_RECORDS = 32, 500, 1000, 10_000


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
        """The record as plain values. Each link is ``{'part': role, 'of': record}``."""
        texts = {name: value for name in TEXT_FIELDS if (value := getattr(self, name))}
        links = [dict(part=role, of=record.plain()) for role, record in self.links]
        return {**texts, **({'links': links} if links else {})}

    def text(self) -> str:
        """The record in one line, as metadata of other files have it."""
        return json.dumps(self.plain(), ensure_ascii=True)

    def walk(self, role: str = '', depth: int = 0) -> Iterator[tuple[int, str, 'Provenance']]:
        """The record and everything it was made from, each as (depth, role, record)."""
        yield depth, role, self
        for link_role, record in self.links:
            yield from record.walk(link_role, depth + 1)

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
        for depth, role, record in self.walk():
            license = record.license or 'license not stated'
            facts = [license + (f' ({record.stated})' if record.stated else '')]
            if made := ', '.join(filter(None, (record.made, record.by))):
                facts.append(made)
            if record.sha256:
                facts.append(f'sha256 {record.sha256}')
            prefix = f'{role}: ' if role else ''
            yield f'{"  " * depth}{prefix}{record.source}: {"; ".join(facts)}'
        concerns = self.concerns()
        yield (
            f'Not permissive: {"; ".join(concerns)}.'
            if concerns
            else 'Each license that is stated in this chain is permissive.'
        )
        trained = [record for _, _, record in self.walk() if record.made in TRAINED_HERE]
        if any('data' not in dict(record.links) for record in trained):
            yield 'The license of the training data is not stated.'


TRAINED_HERE = ('trained', 'distilled')
TEXT_FIELDS = ('source', 'license', 'stated', 'sha256', 'made', 'by')
LICENSE_NOTES = {
    'unknown': 'no license is known',
    'noncommercial': '{}, which excludes commercial use',
    'own terms': '{}, which has terms of its own',
}


def read_record(value: Any) -> Provenance | None:
    """Parse a record from untrusted plain values, or return None for anything else."""
    return _read_record(value, 0, iter(range(MAX_RECORDS)))


def _read_record(value: Any, depth: int, left: Iterator[int]) -> Provenance | None:
    """The record at a depth of the chain, which takes one of those that are left."""
    if not isinstance(value, Mapping) or depth > MAX_DEPTH or next(left, None) is None:
        return None
    texts = {name: value.get(name, '') for name in TEXT_FIELDS}
    links = value.get('links', [])
    if not all(isinstance(text, str) and len(text) <= MAX_TEXT_LETTERS for text in texts.values()):
        return None
    if not isinstance(links, Sequence) or len(links) > MAX_LINKS:
        return None
    records = []
    for link in links:
        if not isinstance(link, Mapping):
            return None
        role, record = link.get('part'), _read_record(link.get('of'), depth + 1, left)
        if record is None or not isinstance(role, str) or len(role) > MAX_TEXT_LETTERS:
            return None
        records.append((role, record))
    return Provenance(**texts, links=tuple(records))


def read_text_record(text: str) -> Provenance | None:
    """The record in metadata of a file, or None."""
    try:
        return read_record(json.loads(text)) if text else None
    except (ValueError, RecursionError):  # not JSON, or nested too deeply
        return None


def made_of(
    made: str, source: str, links: Sequence[tuple[str, Provenance]] = (), license: str = ''
) -> Provenance:
    """The record of weights that this package makes, with the license that their maker states.

    Args:
        made: how they are made, see :class:`Provenance`.
        source: the address, or the path of the file, whose name alone is recorded.
        links: what they are made from, each with its role.
        license: the license of the new weights; empty if it is not stated.
    """
    stated = 'who made it' if license else ''
    name = source if '://' in source else Path(source).name
    return Provenance(name, license, stated, '', made, f'vit_plugin {__version__}', tuple(links))


def converted_record(
    before: Provenance, target: str, license: str = '', made: str = 'converted'
) -> Provenance:
    """The record of the same weights in another file, under the same license unless stated."""
    record = made_of(made, target, [('start', before)], license)
    return record if license else replace(record, license=before.license, stated=before.stated)


# The settings that name initial weights.
WEIGHT_SETTINGS = ('load_from', 'begin_from', 'checkpoint', 'pretrained')


def initial_weights(settings: Any, role: str = 'start') -> Iterator[tuple[str, str]]:
    """The weights that a config names anywhere, as ``'start'`` or as ``'teacher'``."""
    if isinstance(settings, Mapping):
        for name in WEIGHT_SETTINGS:
            if isinstance(settings.get(name), str) and settings[name]:
                yield role, settings[name]
        init = settings.get('init_cfg')
        entries = init if isinstance(init, (list, tuple)) else [init]
        by_name = f'timm://{str(settings.get("model_name")).removeprefix("timm://")}'
        if any(isinstance(cfg, Mapping) and cfg.get('checkpoint') is True for cfg in entries):
            yield role, str(settings.get('arch') or by_name)
        if settings.get('pretrained') is True:
            yield role, by_name
        teacher = settings.get('teacher')
        source = teacher.get('source') if isinstance(teacher, Mapping) else teacher
        if isinstance(source, str):
            yield 'teacher', source
    items = settings.items() if isinstance(settings, Mapping) else enumerate(settings)
    for key, value in items:
        if key == 'patch_embed' and isinstance(value, Mapping):  # the arch may name its CNN
            cnn = str(settings.get('arch')).rpartition('+')[0]
            value = dict(value, model_name=value.get('model_name') or cnn)
        if isinstance(value, (Mapping, list, tuple)):
            yield from initial_weights(value, 'teacher' if key == 'teacher' else role)
