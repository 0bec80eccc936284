"""Find the mask or depth map of each image by a layout.

``map`` stands for both, since the same rules find them.
"""

from collections.abc import Iterator
from pathlib import Path

from anyfolder.readers.records import ImageRecord

from .laid_out_folder import LaidOutFolder
from .layout_files import LayoutImages, MatchedFile


def paired_maps(folder: LaidOutFolder) -> dict[Path, ImageRecord]:
    """The images with a map, by their paths. Two maps for one image are rejected."""
    records: dict[Path, ImageRecord] = {}
    pairs = _maps_in_tables(folder) if folder.layout.format == 'table' else maps_by_fields(folder)
    for path, file, origin in pairs:
        first = records.setdefault(path, ImageRecord(path, mask=file, origin=origin))
        if first.mask != file:
            what = 'images have two maps by the layout'
            remedy = 'name one of them in labels'
            folder.findings.reject(what, remedy, f'{path}: {first.mask} and {file}')
    return records


def maps_by_fields(folder: LaidOutFolder) -> Iterator[tuple[Path, Path, str]]:
    """Each image, the map whose path has the same fields, and that path as text, for messages."""
    for file in folder.labels:
        if path := folder.image_of_label_file(file):
            folder.add_label_fields(path, file.fields)
            yield path, file.path, str(file.path)


def _maps_in_tables(folder: LaidOutFolder) -> Iterator[tuple[Path, Path, str]]:
    """Each image, the map that its row in a table names, and the position of that row."""
    tree, images = folder.tree, folder.images.of_path
    candidates = (path for path in [*tree.images, *tree.others] if path not in images)
    maps = LayoutImages(MatchedFile(path, path.as_posix(), {}) for path in candidates)
    table = folder.labels[0]  # among maps of the same name, one in the table's folder is preferred
    rows_and_names = (
        (path, rows, name)
        for path, rows in folder.rows.items()
        for name in rows.masks or [rows.fields.get('mask', '')]
    )
    for path, rows, name in rows_and_names:
        matches = maps.named(name, table) if name else ()
        if len(matches) == 1:
            yield path, matches[0].path, rows.origin
        elif matches:
            what, remedy = 'names of maps match several files', 'say the folder of each'
            folder.findings.reject(what, remedy, f'{name!r}, {rows.origin}')
        else:
            what = 'rows left out, since their map is missing'
            folder.findings.warn(what, f'{name!r}, {rows.origin}')
