from anyfolder.readers.listing import Listing


def sizes_of(found: Listing) -> list[int]:
    """The number of images to train on, to validate and to test."""
    return [len(part) for part in found.parts.values()]


def notes_of(found: Listing) -> list[tuple[str, int]]:
    """What was repaired or left out, and how often."""
    return [row[:2] for row in found.findings.rows()]
