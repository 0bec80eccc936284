"""Write a listing as the annotation files that MMPretrain, MMSegmentation and MMEngine read."""

import json
from typing import Any

from anyfolder.readers.listing import Listing
from anyfolder.readers.records import Records
from vit_plugin.errors import ConfigError


def as_text_list(listing: Listing, records: Records, with_labels: bool) -> str:
    """Images as lines of text, each with the number of its class if ``with_labels``.

    Raises:
        ConfigError: for a path that does not fit on a line.
    """
    lines = []
    for record in records:
        name = listing.name_of(record)
        if name.splitlines() != [name.strip()]:
            raise ConfigError(
                f'--data: the path {name!r} in {str(listing.root)!r} has a line break or begins '
                'with a space or ends with one, and a list of images has a path on each line; '
                'rename it.'
            )
        lines.append(f'{name} {listing.numbers[record.labels[0]]}' if with_labels else name)
    return ''.join(f'{line}\n' for line in lines)


def as_data_list(listing: Listing, records: Records) -> str:
    """Images as MMEngine's JSON: for images with several classes, or paths that are not UTF-8.

    Python reads such paths with lone surrogates, which JSON escapes.
    """
    rows: list[dict[str, Any]] = []
    for record in records:
        # One of several classes may be without training images, and so without a number. A single
        # class always has one.
        labels = [listing.numbers[name] for name in record.labels if name in listing.numbers]
        rows.append(
            dict(
                img_path=listing.name_of(record),
                gt_label=labels if listing.multi_label else labels[0],
            )
        )
    return json.dumps(dict(metainfo=dict(classes=listing.classes), data_list=rows))
