"""Write a listing as the annotation files that MMPretrain, MMSegmentation and MMEngine read."""

import json
from typing import Any

from anyfolder.readers.listing import Listing
from anyfolder.readers.records import ImageRecord, Records
from vit_plugin.errors import ConfigError


def as_text_list(listing: Listing, records: Records, with_labels: bool) -> str:
    """Images as lines of text, each with the number of its class if ``with_labels``.

    Raises:
        ConfigError: for a path that does not fit on a line, or with labels for an image whose class
            has no training images.
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
        lines.append(f'{name} {_number_of(listing, record)}' if with_labels else name)
    return ''.join(f'{line}\n' for line in lines)


def as_data_list(listing: Listing, records: Records) -> str:
    """Images as MMEngine's JSON: for images with several classes, or paths that are not UTF-8.

    Python reads such paths with lone surrogates, which JSON escapes.

    Raises:
        ConfigError: for an image with a single class that has no training images.
    """
    rows: list[dict[str, Any]] = []
    for record in records:
        # One of several classes may be without training images, and so without a number.
        labels = [listing.numbers[name] for name in record.labels if name in listing.numbers]
        label = labels if listing.multi_label else _number_of(listing, record)
        rows.append(dict(img_path=listing.name_of(record), gt_label=label))
    return json.dumps(dict(metainfo=dict(classes=listing.classes), data_list=rows))


def _number_of(listing: Listing, record: ImageRecord) -> int:
    """The number of the only class of an image.

    Raises:
        ConfigError: if all images of the class were held out, as the only group of a class may be.
    """
    name = record.labels[0]
    if name not in listing.numbers:
        raise ConfigError(
            f'--data: {listing.name_of(record)!r} in {str(listing.root)!r} is to validate, and no '
            f'image to train on has its class {name!r}; add other groups of images of this class, '
            "or give a folder 'val'."
        )
    return listing.numbers[name]
