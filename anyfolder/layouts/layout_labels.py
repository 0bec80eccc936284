"""Read annotation files, such as COCO's or YOLO's, that a layout names.

Their parsers are those that also read folders without a layout, see
:data:`~anyfolder.readers.formats.table.FORMATS`. A layout only states which files are read, and to
which images they belong.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError
from anyfolder.readers.file_contents import FileContents, rejecting_malformed
from anyfolder.readers.formats.parsed import Parsed, ParsedImage
from anyfolder.readers.formats.public_formats import PUBLIC_FORMATS
from anyfolder.readers.formats.table import FORMATS, Format
from anyfolder.readers.formats.yolo import YoloLabels
from anyfolder.readers.formats.yolo_line_form import LineForm
from anyfolder.readers.tables import read_objects

from .laid_out_folder import LaidOutFolder
from .layout_files import MatchedFile

# By suffix, the function that reads a file into the content that the parser of a `Format` takes.
CONTENTS: dict[str, Callable[[FileContents, Path], Any]] = {
    '.json': lambda contents, file: contents.json(file),
    '.geojson': lambda contents, file: contents.json(file),
    '.xml': lambda contents, file: contents.xml(file),
    '.jsonl': lambda contents, file: dict(frames=read_objects(file)),
    '.odgt': lambda contents, file: read_objects(file),
    '.csv': lambda contents, file: contents.rows(file),
    '.tsv': lambda contents, file: contents.rows(file),
    '.txt': lambda contents, file: contents.lines(file),
}
# YOLO's class numbers serve as names at first. The codes of the layout name the classes later.
CLASS_NUMBERS = [*map(str, range(10_000))]


def format_named(name: str, suffix: str) -> Format:
    """The format by its name in a layout, ``'voc'`` for Pascal VOC, and by the suffix of a file.

    VGG Image Annotator writes JSON and tables. For any other suffix, it is the first one.
    """
    named = [one for one in (*FORMATS, *PUBLIC_FORMATS) if key_of_format(one) == name]
    return next((one for one in named if suffix in one.suffixes), named[0])


def key_of_format(format: Format) -> str:
    """The name of a format in a layout: one lowercase word."""
    word = format.name.lower().replace('pascal ', '').replace(' ', '')
    return {'vggimageannotator': 'via', 'v7darwin': 'darwin'}.get(word, word)


def parsed_images(
    folder: LaidOutFolder, names: list[str]
) -> Iterator[tuple[Path, ParsedImage, MatchedFile]]:
    """The path, the annotations and the label file of each image in the label files.

    The fields of label files are stored in ``folder.label_fields`` along the way.

    Args:
        folder: a folder with label files in the format of its layout.
        names: collects the class names in the files; complete at the end of the iteration.

    Raises:
        InputError: if a file is incomplete, or its suffix is not one of the format.
    """
    for file in folder.labels:
        format = format_named(folder.layout.format, file.path.suffix.lower())
        parsed = _parse(folder, format, file)
        folder.findings.note_all(parsed.faults)
        names += parsed.names
        for image in parsed.images:
            if format.image:  # each file belongs to one image, and need not name it
                path = folder.image_of_label_file(file)
            else:
                path = folder.image_named(image.name, file)
            if path:
                split_field = {'split': image.split} if image.split else {}
                folder.add_label_fields(path, {**file.fields, **split_field})
                yield path, image, file


def _parse(folder: LaidOutFolder, format: Format, file: MatchedFile) -> Parsed:
    suffix = file.path.suffix.lower()
    if suffix not in format.suffixes:
        raise InputError(
            f'{folder.layout.file!r}: {str(file.path)!r} is not a {format.name} file, whose names '
            f'end in {" or ".join(format.suffixes)}; correct labels.'
        )
    content = CONTENTS[suffix](folder.tree.contents, file.path)
    if format.name == 'YOLO':  # YOLO's classes are numbers
        content = YoloLabels(content, (file.path, CLASS_NUMBERS), LineForm())
    with rejecting_malformed(file.path, format.unit, format.name):
        return format.parse(content, file.path)
