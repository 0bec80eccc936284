"""Read the classes of images by a layout: from folders, tables, or the objects in annotations."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from anyfolder.readers.build_listing import ONE_LABEL, SEVERAL_LABELS, build_listing
from anyfolder.readers.image_sizes import MAX_HEADERS
from anyfolder.readers.listing import Listing
from anyfolder.readers.records import ImageRecord

from .laid_out_folder import LaidOutFolder
from .layout_formats import OBJECT_FORMATS
from .layout_labels import parsed_images
from .row_objects import labels_in, separator_of


def read_classes(folder: LaidOutFolder) -> Listing:
    """The images of a layout and their classes.

    The classes are in the order of the key ``classes``, or else alphabetical.

    Raises:
        InputError: see :func:`~anyfolder.readers.build_listing.build_listing`, and for classes
            without a name.
    """
    findings, codes = folder.findings, folder.codes
    allows_several = not {'classes', 'flags'}.isdisjoint(folder.layout.named_columns)
    records: dict[Path, ImageRecord] = {}
    for path, names, origin in _classes_by_image(folder):
        known = [name for name in names if name is not None]
        if None in names and not known:
            findings.warn('images left out, since the layout ignores their class', path)
        elif len(known) > 1 and not allows_several:
            remedy = 'call the column classes if an image can have several'
            findings.reject('images have two classes', remedy, f'{path}: {", ".join(known)}')
        # An empty value in the column `class` is no class, and the draft notes the image.
        elif known or allows_several:
            records[path] = ImageRecord(path, labels=tuple(known), origin=origin)
    multi_label = allows_several and any(len(record.labels) != 1 for record in records.values())
    draft = folder.draft(SEVERAL_LABELS if multi_label else ONE_LABEL, records)
    draft.names, draft.max_headers = codes.classes, MAX_HEADERS
    if not multi_label:
        # Validation images are held out from each class alike.
        draft.stratum = lambda record: record.labels[0]
    listing = build_listing(draft, findings)
    listing.multi_label = multi_label
    return listing


def _classes_by_image(folder: LaidOutFolder) -> Iterator[tuple[Path, Sequence[str | None], str]]:
    """Each labeled image with its classes, None for an ignored one, and where they are stated."""
    codes, findings, rows = folder.codes, folder.findings, folder.rows
    texts = [
        row['classes']
        for image_rows in rows.values()
        for row in image_rows.labels
        if isinstance(row.get('classes'), str)
    ]
    separator, parsed = separator_of(texts), _parsed_codes(folder)
    for path, image in folder.images.of_path.items():
        try:
            names = [*map(codes.name_of, parsed.get(path, ()))]
            if 'class' in image.fields:
                names.append(codes.name_of(image.fields['class']))
            if path in rows:
                names += labels_in(rows[path], codes, separator)
        except KeyError as error:
            code = str(error.args[0])
            what, remedy = 'images have a class without a name', codes.remedy(code)
            findings.reject(what, remedy, f'{code!r}, {path}')
            continue
        except ValueError:  # from `labels_in`, so the image has rows
            what, remedy = 'rows do not have one flag per class', 'correct them, or classes'
            findings.reject(what, remedy, rows[path].origin)
            continue
        names = [name for name in names if name != '']  # an object or a folder without a class
        # A row without classes states that the image has none.
        if names or (path in rows and rows[path].labels):
            origin = rows[path].origin if path in rows else ''
            yield path, list(dict.fromkeys(names)), origin


def _parsed_codes(folder: LaidOutFolder) -> dict[Path, list[str]]:
    """The codes of the objects in each image; empty unless the labels are annotations as COCO's."""
    codes: dict[Path, list[str]] = {}
    if folder.layout.format in OBJECT_FORMATS:
        for path, image, _ in parsed_images(folder, names=[]):
            codes.setdefault(path, []).extend(instance.name for instance in image.objects)
    return codes
