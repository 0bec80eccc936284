"""Read folders of images and masks, for semantic segmentation."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from anyfolder.pixels.image_headers import ON_ITS_SIDE, header_of

from .build_listing import MASKS, Draft, build_listing
from .classes_of_values import choose_classes
from .drawn_masks import from_polygons
from .findings import Findings
from .image_tree import Tree
from .listing import Listing
from .map_looks import are_nearly_the_same
from .mask_classes import NOT_LABELED, MaskValues
from .mask_names import NamedValues, names_in_files
from .mask_pairs import masked_images
from .mask_values import MaskProbe, lossy_kind, probe_mask
from .pixel_maps import probe_maps
from .records import ImageRecord, Records


def read_mask_folder(tree: Tree, skip_invalid: bool = False) -> Listing:
    """Read a folder of images and masks, in ``images`` and ``masks`` or side by side.

    A mask has the name of its image, maybe followed by ``_mask``, or names only differ in words
    that all images or all masks have. For mask values see :mod:`.classes_of_values`. Without masks,
    polygons are drawn as masks on a background class.

    Raises:
        InputError: if there are neither masks nor polygons, if a mask has another size than its
            image as displayed, or values that are not classes, or if there are no training images.
    """
    findings = Findings(skip_invalid)
    masked = masked_images(tree, findings)
    if masked is None:
        return from_polygons(tree, findings)
    named = names_in_files(tree)
    used = [named.file, *masked.unused_maps]
    draft = Draft(
        MASKS, 'images and masks', tree, masked.records, used_files=used, lists=masked.lists
    )
    values: MaskValues | None = None

    def compare(records: Records) -> Records:
        nonlocal values
        probes = _probe_masks(records, named, findings)
        records = [record for record in records if record.mask in probes]
        if not probes:
            return []
        if are_nearly_the_same([record.mask for record in records if record.mask]):
            what = 'masks that are nearly the same for all images, like a field of view'
            findings.warn(what, records[0].mask)
        values = _choose_values(probes, named, findings)
        for record in records:
            counts = probes[record.mask].counts
            numbers = sorted({values.numbers[value] for value in counts} - {NOT_LABELED})
            record.labels = tuple(values.classes[number] for number in numbers)
        draft.names = values.classes
        return records

    listing = build_listing(draft, findings, compare)
    assert values is not None  # without a readable mask, `build_listing` has raised an error
    listing.masks = values
    return listing


def _probe_masks(
    records: Records, named: NamedValues, findings: Findings
) -> dict[Path | None, MaskProbe]:
    """The statistics of each mask that can be read, with notes on unusual masks.

    Raises:
        InputError: for unreadable masks and different palettes, unless these are to be left out.
    """
    probe = partial(probe_mask, by_color=bool(named.colors))
    probes = {
        record.mask: mask_probe
        for record, mask_probe in probe_maps(records, probe, 'masks', findings)
    }
    _check_palettes(probes, findings)
    for record in records:
        if record.mask in probes:
            _check_orientation(record, findings)
    lengths = {len(mask_probe.counts) for mask_probe in probes.values()}
    # Each mask has all numbers from 0 to its largest one, as masks of numbered objects do.
    are_counted = all(
        max(mask_probe.counts) < len(mask_probe.counts) for mask_probe in probes.values()
    )
    if len(lengths) > 2 and are_counted and not named.numbers:
        what = 'masks that each count from 0 to another number, maybe objects instead of classes'
        findings.warn(what, next(iter(probes)))
    findings.check()
    return probes


def _choose_values(
    probes: Mapping[Path | None, MaskProbe], named: NamedValues, findings: Findings
) -> MaskValues:
    """The class of each value of all masks."""
    lossy = next((mask for mask in probes if mask and lossy_kind(mask)), None)
    total = MaskProbe(Counter(), Counter(), Counter())
    for probe in probes.values():
        total.counts.update(probe.counts)
        total.parts.update(probe.parts)
        total.at_edges.update(probe.at_edges)
    return choose_classes(total, named, findings, lossy)


def _check_palettes(probes: Mapping[Path | None, MaskProbe], findings: Findings) -> None:
    """Reject masks whose palettes disagree."""
    first: dict[int, tuple[tuple[int, ...], Path | None]] = {}
    for mask, probe in probes.items():
        for value, color in probe.palette.items():
            first_color, first_mask = first.setdefault(value, (color, mask))
            if color != first_color:
                findings.reject(
                    'mask palettes have different colors for one number',
                    'save all with one palette, or as RGB',
                    f'{value} of {first_mask} and {mask}',
                )


def _check_orientation(record: ImageRecord, findings: Findings) -> None:
    """Note a mask that may fit the unrotated pixels of its image, if sizes do not show it.

    The EXIF orientations of image and mask differ then.
    """
    assert record.mask is not None
    image, mask = header_of(record.path).orientation, header_of(record.mask).orientation
    sizes_tell = (image in ON_ITS_SIDE) != (mask in ON_ITS_SIDE) and len({*record.size}) > 1
    if image != mask and not sizes_tell:
        findings.warn(
            'masks without the EXIF orientation of their image, both taken as displayed',
            record.mask,
        )
