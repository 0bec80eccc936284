"""How much of each class the parts of a data set have, as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.files.untrusted_text import markdown, markdown_table


def data_table(parts: Mapping[str, Any], classes: Sequence[str]) -> str:
    """A table of Markdown: the images of each part, then what it has of each class.

    Args:
        parts: those of ``data_report.json``, by name.
        classes: what has a row.
    """
    rows = [['', *parts], ['images', *(part['images'] for part in parts.values())]]
    rows += [[name, *(part['by_class'][name] for part in parts.values())] for name in classes]
    return markdown_table([[*map(markdown, row)] for row in rows], numbers=len(parts))
