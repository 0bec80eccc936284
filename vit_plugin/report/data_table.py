"""The count of each class in each split of a data set, as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.files.untrusted_text import markdown, markdown_table


def data_table(splits: Mapping[str, Any], classes: Sequence[str]) -> str:
    """A table in Markdown: the images of each split, then its count of each class.

    Args:
        splits: the splits in ``data_report.json``, by name.
        classes: the classes, one per row.
    """
    rows = [['', *splits], ['images', *(split['images'] for split in splits.values())]]
    rows += [[name, *(split['by_class'][name] for split in splits.values())] for name in classes]
    return markdown_table([[*map(markdown, row)] for row in rows], numbers=len(splits))
