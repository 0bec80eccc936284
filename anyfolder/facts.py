"""Summarize a data set: as plain values, for JSON, and as a table for the terminal."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .readers.findings import Findings
from .readers.listing import Listing
from .terminal import aligned, printable


def facts_of(listing: Listing) -> dict[str, Any]:
    """The summary of a data set, as plain values for JSON.

    Returns:
        ``form``: the name of the folder's format; ``folder``: its path; ``classes``: their names;
        ``parts``: for each split that has images, the number of images, of objects if the data has
        any, and by class; ``sizes``: see :func:`_sizes`; ``findings``: see :func:`problems_of`.
    """
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
    """The kinds of findings, with their counts and examples."""
    return [
        dict(what=what, count=count, examples=examples) for what, count, examples in findings.rows()
    ]


def _sizes(listing: Listing) -> dict[str, list[int]]:
    """The smallest, the median and the largest [width, height]; empty if not all are known.

    The smallest and the largest are compared by area, equal areas by width; the median is that of
    each side.
    """
    sizes = [record.size for part in listing.parts.values() for record in part]
    if (0, 0) in sizes:  # only a sample of headers was read
        return {}
    by_area = sorted(sizes, key=lambda size: (size[0] * size[1], size[0]))
    return dict(
        smallest=list(by_area[0]),
        median=np.median(sizes, axis=0).astype(int).tolist(),
        largest=list(by_area[-1]),
    )


def as_text(facts: Mapping[str, Any]) -> str:
    """The summary in lines: a table with a row per split, the sizes, and each kind of finding."""
    rows = [['', 'images', 'objects', 'classes', 'smallest class', 'largest class']]
    for split, part in facts['parts'].items():
        ranked = sorted(part['by_class'].items(), key=lambda pair: pair[1])
        present = [name for name, count in ranked if count]
        ends = [f'{name} ({count})' for name, count in (*ranked[:1], *ranked[-1:])] or ['', '']
        rows.append(
            [split, str(part['images']), str(part.get('objects', '')), str(len(present)), *ends]
        )
    if not facts['classes']:
        rows = [row[:2] for row in rows]
    elif not any(row[2] for row in rows[1:]):  # no objects
        rows = [row[:2] + row[3:] for row in rows]
    lines = aligned(rows)
    if facts['sizes']:
        smallest, median, largest = (' x '.join(map(str, size)) for size in facts['sizes'].values())
        lines.append(
            f'Sizes from {smallest} to {largest} pixels, median {median}.'
            if smallest != largest
            else f'All images have {median} pixels.'
        )
    lines += [
        f'- {printable(finding["what"])}: {finding["count"]}, the first is '
        f'{printable(finding["examples"][0])}'
        for finding in facts['findings']
    ]
    return '\n'.join(lines)
