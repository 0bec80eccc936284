"""The count of each class in each split of a data set, as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.files.untrusted_text import escape_markdown, markdown_table


def data_table(splits: Mapping[str, Any], classes: Sequence[str]) -> str:
    """A table in Markdown: the images of each split, then its count of each class.

    Args:
        splits: by name of a split, its entry in ``parts`` of ``data_report.json``: the number of
            its ``images``, and the count ``by_class`` of each class.
        classes: the classes, one per row.
    """
    rows = [['', *splits], ['images', *(split['images'] for split in splits.values())]]
    rows += [[name, *(split['by_class'][name] for split in splits.values())] for name in classes]
    return markdown_table([[*map(escape_markdown, row)] for row in rows], numbers=len(splits))
