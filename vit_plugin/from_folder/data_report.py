"""Data report: a table for the terminal, and files with all that was left out or repaired."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from anyfolder.readers.findings import Findings
from anyfolder.readers.listing import Listing
from anyfolder.terminal import aligned, printable
from vit_plugin.files.untrusted_text import markdown
from vit_plugin.report.data_table import data_table

SHOWN = 200  # examples of a kind in the page


def facts_of(listing: Listing) -> dict[str, Any]:
    """All that is known of a data set, as plain values."""
    parts, has_objects = {}, any(record.instances for record in listing.train)
    for split, part in listing.parts.items():
        if not part:
            continue
        counts = listing.counts(part)
        parts[split] = dict(
            images=len(part),
            **(dict(objects=sum(counts.values())) if has_objects else {}),
            by_class={name: counts.get(name, 0) for name in listing.classes},
        )
    return dict(
        form=listing.form,
        folder=str(listing.folder.absolute()),
        classes=list(listing.classes),
        parts=parts,
        sizes=_sizes(listing),
        findings=problems_of(listing.findings),
    )


def problems_of(findings: Findings) -> list[dict[str, Any]]:
    """Findings, how often, and the first of each."""
    return [
        dict(what=what, count=count, examples=examples) for what, count, examples in findings.rows()
    ]


def _sizes(listing: Listing) -> dict[str, list[int]]:
    sizes = [record.size for part in listing.parts.values() for record in part]
    if (0, 0) in sizes:  # of very many images only some were read
        return {}
    by_area = sorted(sizes, key=lambda size: size[0] * size[1])
    return dict(
        smallest=list(by_area[0]),
        median=np.median(sizes, axis=0).astype(int).tolist(),
        largest=list(by_area[-1]),
    )


def as_text(facts: Mapping[str, Any]) -> str:
    """A table: a row per part, the sizes, and a line for each kind of omission or repair."""
    rows = [['', 'images', 'objects', 'classes', 'smallest class', 'largest class']]
    for split, part in facts['parts'].items():
        ranked = sorted(part['by_class'].items(), key=lambda pair: pair[1])
        present = [name for name, count in ranked if count]
        ends = [f'{name} ({count})' for name, count in (*ranked[:1], *ranked[-1:])] or ['', '']
        rows.append(
            [split, str(part['images']), str(part.get('objects', '')), str(len(present)), *ends]
        )
    if not any(row[2] for row in rows[1:]):
        rows = [row[:2] + row[3:] for row in rows]
    lines = aligned(rows)
    if facts['sizes']:
        smallest, median, largest = (' x '.join(map(str, size)) for size in facts['sizes'].values())
        lines.append(
            f'Sizes from {smallest} to {largest} pixels, {median} in the middle.'
            if smallest != largest
            else f'All images have {median} pixels.'
        )
    lines += [
        f'- {kind["what"]}: {kind["count"]}, the first is {printable(kind["examples"][0])}'
        for kind in facts['findings']
    ]
    return '\n'.join(lines)


def as_markdown(facts: Mapping[str, Any]) -> str:
    """The page ``data_report.md``: images and objects by class and part, omissions and repairs."""
    lines = [
        f'# {markdown(facts["folder"])}',
        '',
        f'{facts["form"]}, {len(facts["classes"])} classes.',
        '',
    ]
    table = data_table(facts['parts'], facts['classes'])
    return '\n'.join([*lines, table, '', *problem_lines(facts['findings'])]) + '\n'


def problem_lines(problems: list[dict[str, Any]]) -> list[str]:
    """A section of a page for each kind of what was left out or repaired."""
    lines = []
    for kind in problems:
        lines += [
            f'## {markdown(kind["what"])}: {kind["count"]}',
            '',
            *(f'- {markdown(each)}' for each in kind['examples'][:SHOWN]),
            '',
        ]
    return lines


def as_json(facts: Mapping[str, Any]) -> str:
    """The same as ``data_report.json``."""
    return json.dumps(facts, indent=1) + '\n'
