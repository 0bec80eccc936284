"""Read images with masks or depth maps by a layout."""

from functools import partial

from anyfolder.errors import InputError
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

    Classes are numbered in the order of the key ``classes``. If the labels are polygons, masks are
    drawn from them.

    Raises:
        InputError: see :func:`~anyfolder.readers.build_listing.build_listing`, and for a value
            without a name, or more than 255 classes.
    """
    layout, findings = folder.layout, folder.findings
    if layout.format != 'masks' and 'mask' not in layout.named_columns:
        # No mask files: draw the objects' polygons.
        return with_drawn_masks(read_boxes(folder, with_masks=True))
    draft, codes = folder.draft(MASKS, paired_maps(folder)), folder.codes
    number_of_name = {name: number for number, name in enumerate(codes.classes)}
    number_of_value: dict[int, int] = {}

    def compare(records: Records) -> Records:
        probe, kept = partial(probe_mask, by_color=codes.by_color), []
        for record, probed in probe_maps(records, probe, 'masks', findings):
            new_values = [value for value in probed.counts if value not in number_of_value]
            for value, name in codes.of_values(new_values).items():
                # With others: '*', classes appear that the layout does not list.
                if name is not None and name not in number_of_name:
                    number_of_name[name] = len(number_of_name)
                if name is not None and number_of_name[name] >= NOT_LABELED:
                    raise InputError(
                        f'{str(record.mask)!r} has a pixel of {name!r}, after {NOT_LABELED} other '
                        'classes, but masks have at most that many; name fewer in classes.'
                    )
                number_of_value[value] = NOT_LABELED if name is None else number_of_name[name]
            present = {number_of_value[value] for value in probed.counts} - {NOT_LABELED}
            record.labels = tuple(
                name for name, number in number_of_name.items() if number in present
            )
            kept.append(record)
        draft.names = [*number_of_name]
        return kept

    listing = build_listing(draft, findings, compare)
    listing.masks = MaskValues(listing.classes, number_of_value, codes.by_color)
    return listing


def read_depth(folder: LaidOutFolder, check_all: bool) -> tuple[Listing, DepthRange]:
    """The images of a layout with their depth maps, and the range of these.

    Args:
        folder: a folder whose layout states ``units``; a table of depth maps without them is read
            in meters.
        check_all: whether all maps are read instead of a sample.

    Raises:
        InputError: see :func:`~anyfolder.readers.depth_folders.read_depth_folder`.
    """
    draft = folder.draft(DEPTH, paired_maps(folder))
    meters = folder.layout.meters or 1.0
    depth_range: DepthRange | None = None

    def compare(records: Records) -> Records:
        nonlocal depth_range
        kept, depth_range = check_depth(
            records, meters, check_all, folder.findings, scale_is_stated=True
        )
        return kept

    listing = build_listing(draft, folder.findings, compare)
    assert depth_range is not None  # `build_listing` has called `compare`
    return listing, depth_range
