"""The count of each class in each split of a data set, as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.files.untrusted_text import markdown, markdown_table


def data_table(parts: Mapping[str, Any], classes: Sequence[str]) -> str:
    """A table in Markdown: the images of each split, then its count of each class.

    Args:
        parts: the splits in ``data_report.json``, by name.
        classes: the classes, one per row.
    """
    rows = [['', *parts], ['images', *(part['images'] for part in parts.values())]]
    rows += [[name, *(part['by_class'][name] for part in parts.values())] for name in classes]
    return markdown_table([[*map(markdown, row)] for row in rows], numbers=len(parts))
