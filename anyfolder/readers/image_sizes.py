"""The sizes of images as displayed, by their headers and by annotations."""

from pathlib import Path

from anyfolder.errors import InputError

from .depth import check_bit_depth
from .findings import Findings
from .image_tree import Tree
from .probe import Probe
from .records import Records

MAX_HEADERS = 100_000  # `max_headers` of the readers whose labels do not need sizes


def read_sizes(
    tree: Tree, records: Records, findings: Findings, max_headers: int | None = None
) -> Records:
    """Read the sizes of images as displayed, and leave out unreadable images.

    Args:
        tree: the files of the folder.
        records: the images. Those that were already probed are not probed again.
        findings: collects unreadable images.
        max_headers: above this number of images, only the headers of a sample are read. Default:
            all are read.

    Returns:
        The images that can be read.

    Raises:
        InputError: if none can be read.
    """
    unprobed = [record for record in records if record.bands is None]
    all_headers = max_headers is None or len(unprobed) <= max_headers
    probes = tree.probes.probe([record.path for record in unprobed], all_headers)
    images_of_bits: dict[int, list[tuple[Path, Probe]]] = {}  # images of more than 8 bits
    unread = set()
    for record, probe in zip(unprobed, probes, strict=True):
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
                images_of_bits.setdefault(probe.bits, []).append((record.path, probe))
        if probe.fault or probe.bits > 16:  # `check_bit_depth` rejects the latter
            unread.add(id(record))
    for bits, images in images_of_bits.items():
        are_all = len(images) == sum(probe is not None and not probe.fault for probe in probes)
        window = check_bit_depth(bits, images, findings, all_have_bits=are_all)
        tree.probes.window = window or tree.probes.window
    kept = [record for record in records if id(record) not in unread]
    if unread and not (images_of_bits or any(any(record.size) for record in kept)):
        first = next(probe.fault for probe in probes if probe)
        raise InputError(
            f'none of {len(unread)} images can be read, such as {str(records[0].path)!r} '
            f'({first}); check how they were saved.'
        )
    return kept


def with_right_size(records: Records, findings: Findings) -> Records:
    """Reject images whose size differs from their annotation.

    Args:
        records: images whose size is known.
        findings: collects images of other sizes.

    Returns:
        The images that have the stated size, up to a pixel, or no stated size.
    """
    kept = []
    for record in records:
        width, height = record.stated_size
        difference = max(abs(width - record.size[0]), abs(height - record.size[1]))
        if not width or difference <= 1:
            if width and difference:
                findings.warn(
                    'sizes off by a pixel in the annotation, corrected by the files', record.origin
                )
            kept.append(record)
            continue
        what = 'image sizes differ from their annotation'
        remedy = 'correct the sizes and boxes in the annotation'
        if (height, width) == record.size:
            what = 'width and height are swapped in the annotation'
            remedy = (
                'save the images upright, as `mogrify -auto-orient` does, or rotate the annotation'
            )
        findings.reject(
            what,
            remedy,
            f'{record.path} with {record.size[0]} x {record.size[1]} pixels, and '
            f'{width:g} x {height:g} in {record.origin}',
        )
    return kept
