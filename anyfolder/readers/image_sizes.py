"""The sizes of images as they are seen, by their headers, and by what annotations state."""

from pathlib import Path

from anyfolder.errors import InputError

from .depth import warn_depth
from .findings import Findings
from .image_tree import Tree
from .probe import Probe
from .records import Records

MOST_HEADERS = 100_000  # images whose header is read if only their size is needed


def read_sizes(
    tree: Tree, records: Records, findings: Findings, most: int | None = None
) -> Records:
    """Read the sizes of images as they are seen, and leave out those that cannot be read.

    Args:
        tree: the files of the folder.
        records: the images. Those whose size is known are not probed again.
        findings: gets the others.
        most: above this number of images, only the headers of a sample are read. Default: all.

    Returns:
        The images that can be read.

    Raises:
        InputError: if none can.
    """
    new = [record for record in records if record.bands is None]
    probes = tree.probes.probe([record.path for record in new], most is None or len(new) <= most)
    deep: dict[int, list[tuple[Path, Probe]]] = {}
    unread = set()
    for record, probe in zip(new, probes, strict=True):
        if probe is None:
            continue
        if probe.fault:
            findings.warn(
                'images left out, since they cannot be read', f'{record.path} ({probe.fault})'
            )
        else:
            width, height = probe.size
            record.size, record.bands, record.digest = (width, height), probe.bands, probe.digest
            if probe.bits > 8:
                deep.setdefault(probe.bits, []).append((record.path, probe))
        if probe.fault or probe.bits > 16:
            unread.add(id(record))
    for bits, found in deep.items():
        window = warn_depth(bits, found, findings, len(found) == sum(map(bool, probes)))
        tree.probes.window = window or tree.probes.window
    kept = [record for record in records if id(record) not in unread]
    if unread and not (deep or any(any(record.size) for record in kept)):
        first = next(probe.fault for probe in probes if probe)
        raise InputError(
            f'none of {len(unread)} images can be read, such as {str(records[0].path)!r} '
            f'({first}); look at how they were saved.'
        )
    return kept


def with_right_size(records: Records, findings: Findings) -> Records:
    """Reject the images that have another size than their annotation states.

    Args:
        records: images whose size is known.
        findings: gets the others.

    Returns:
        The images that have the stated size, or of which none is stated.
    """
    kept = []
    for record in records:
        width, height = record.stated
        apart = max(abs(width - record.size[0]), abs(height - record.size[1]))
        if not width or apart <= 1:
            if width and apart:
                findings.warn(
                    'sizes a pixel off in the annotation, taken from the files', record.origin
                )
            kept.append(record)
            continue
        what = 'images have another size than their annotation says'
        remedy = 'make the sizes and boxes those of the files'
        if (height, width) == record.size:
            what = 'images have the sides that their annotation says the other way round'
            remedy = (
                'save the images upright, as `mogrify -auto-orient` does, or turn the annotation'
            )
        findings.reject(
            what,
            remedy,
            f'{record.path} with {record.size[0]} x {record.size[1]} pixels, and '
            f'{width:g} x {height:g} in {record.origin}',
        )
    return kept
