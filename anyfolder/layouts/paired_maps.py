"""The mask or depth map of each image by a layout."""

from collections.abc import Iterator
from pathlib import Path

from anyfolder.readers.records import ImageRecord

from .laid_out_folder import LaidOutFolder
from .layout_files import LayoutImages, PlacedFile


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
    """Each image with the map whose path has the same fields, and the source of that match."""
    for file in folder.labels:
        if path := folder.image_of_label_file(file):
            folder.label_fields[path] = file.fields
            yield path, file.path, str(file.path)


def _maps_in_tables(folder: LaidOutFolder) -> Iterator[tuple[Path, Path, str]]:
    """Each image with the map that its row names, and the position of that row."""
    tree, images = folder.tree, folder.images.of_path
    candidates = (path for path in [*tree.images, *tree.others] if path not in images)
    maps = LayoutImages(PlacedFile(path, path.as_posix(), {}) for path in candidates)
    table = folder.labels[0]  # if maps have the same name, those in its folder count
    for path, rows in folder.rows.items():
        name = rows.facts.get('mask', '')
        matches = maps.named(name, table) if name else ()
        if len(matches) == 1:
            yield path, matches[0].path, rows.origin
        elif matches:
            what, remedy = 'names of maps match several files', 'say the folder of each'
            folder.findings.reject(what, remedy, f'{name!r}, {rows.origin}')
        else:
            what = 'rows left out, since their map is missing'
            folder.findings.warn(what, f'{name!r}, {rows.origin}')
