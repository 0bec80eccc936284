from collections import Counter

import numpy as np

from anyfolder.readers.listing import Listing


def sizes_of(found: Listing) -> list[int]:
    """The number of images to train on, to validate and to test."""
    return [len(part) for part in found.parts.values()]


def notes_of(found: Listing) -> list[tuple[str, int]]:
    """What was repaired or left out, and how often."""
    return [row[:2] for row in found.findings.rows()]


def boxes_of(listing: Listing) -> Counter:
    """The name and the corners of all boxes."""
    found = Counter()
    for record in (record for part in listing.parts.values() for record in part):
        for instance in record.instances:
            left, top, width, height = instance.box
            corners = np.round((left, top, left + width, top + height)).astype(int)
            found[(instance.name, *corners.tolist())] += 1
    return found
