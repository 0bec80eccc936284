"""Images with masks or depth maps by a layout."""

from functools import partial

from anyfolder.readers.build_listing import DEPTH, MASKS, build_listing
from anyfolder.readers.depth_range import DepthRange, check_depth
from anyfolder.readers.drawn_masks import with_drawn_masks
from anyfolder.readers.listing import Listing
from anyfolder.readers.mask_classes import NOT_LABELED, MaskValues
from anyfolder.readers.mask_values import probe_mask
from anyfolder.readers.pixel_maps import probe_maps
from anyfolder.readers.records import Records

from .laid_out_folder import LaidOutFolder
from .layout_boxes import read_boxes
from .paired_maps import paired_maps


def read_masks(folder: LaidOutFolder) -> Listing:
    """The images of a layout with the class of each mask value.

    The numbers of the classes are in the order of ``classes``. Polygons are drawn as masks.

    Raises:
        InputError: see :func:`~anyfolder.readers.build_listing.build_listing`, and for a value
            without a name.
    """
    layout, findings = folder.layout, folder.findings
    if layout.format != 'masks' and 'mask' not in layout.named_columns:
        return with_drawn_masks(read_boxes(folder, True))
    draft, codes = folder.draft(MASKS, paired_maps(folder)), folder.codes
    names = {name: number for number, name in enumerate(codes.classes)}
    numbers: dict[int, int] = {}

    def compare(records: Records) -> Records:
        probe, kept = partial(probe_mask, by_color=codes.by_color), []
        for record, seen in probe_maps(records, probe, 'masks', findings):
            new = codes.of_values([value for value in seen.counts if value not in numbers])
            numbers.update(
                (value, NOT_LABELED if name is None else names.setdefault(name, len(names)))
                for value, name in new.items()
            )
            own = {numbers[value] for value in seen.counts} - {NOT_LABELED}
            record.labels = tuple(name for name, number in names.items() if number in own)
            kept.append(record)
        draft.names = [*names]
        return kept

    listing = build_listing(draft, findings, compare)
    listing.masks = MaskValues(listing.classes, numbers, codes.by_color)
    return listing


def read_depth(folder: LaidOutFolder, check_all: bool) -> tuple[Listing, DepthRange]:
    """The images of a layout with their depth maps, and the range of these.

    Args:
        folder: a folder with a layout for depth, whose ``units`` are the meters per unit.
        check_all: whether all maps are read instead of a sample.

    Raises:
        InputError: see :func:`~anyfolder.readers.depth_folders.read_depth_folder`.
    """
    draft, depths = folder.draft(DEPTH, paired_maps(folder)), list[DepthRange]()

    meters = folder.layout.meters or 1.0

    def compare(records: Records) -> Records:
        kept, found = check_depth(records, meters, check_all, folder.findings, is_certain=True)
        depths.append(found)
        return kept

    return build_listing(draft, folder.findings, compare), depths[0]
