from collections import Counter

import numpy as np

from anyfolder.readers.listing import Listing


def sizes_of(listing: Listing) -> list[int]:
    """The number of training, validation and test images."""
    return [len(part) for part in listing.parts.values()]


def notes_of(listing: Listing) -> list[tuple[str, int]]:
    """The findings with their counts, without examples."""
    return [(what, count) for what, count, _ in listing.findings.rows()]


def boxes_of(listing: Listing) -> Counter:
    """How often each (name, left, top, right, bottom) occurs, in whole pixels."""
    counts = Counter()
    for record in (record for part in listing.parts.values() for record in part):
        for instance in record.instances:
            left, top, width, height = instance.box
            corners = np.round((left, top, left + width, top + height)).astype(int)
            counts[(instance.name, *corners.tolist())] += 1
    return counts
