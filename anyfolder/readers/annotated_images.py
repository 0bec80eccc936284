"""Read the annotation files of one format, and find the image of each annotation."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from .class_names import warn_repeated
from .file_contents import rejecting_malformed
from .findings import Findings
from .format_folder import FolderFacts
from .formats.parsed import Parsed
from .formats.table import Format
from .image_tree import Tree
from .paired_files import pair_files
from .records import Records


def read_images(
    tree: Tree, format: Format, folder: FolderFacts, findings: Findings
) -> tuple[Records, list[str]]:
    """The images with annotations, and the class names in order as far as the files give them.

    Args:
        tree: the files of the folder.
        format: the format, which parses a file.
        folder: the annotation files to read.
        findings: collects missing images and errors in the files.

    Raises:
        InputError: if a file is malformed or incomplete for its format.
    """
    names = [*folder.names]
    if format.image is None:
        records = _read_lists(tree, format, folder, names, findings)
    else:
        records = _read_file_per_image(tree, format, folder, names, findings)
    for record in records:
        for instance in record.instances:
            instance.name = folder.name_of_code.get(instance.name, instance.name)
    return records, names


def _parse(
    format: Format, content: Any, file: Path, names: list[str], findings: Findings
) -> Parsed:
    """Parse a file. Its faults are noted, and its class names are added to ``names``."""
    with rejecting_malformed(file, format.unit, format.name):
        parsed = format.parse(content, file)
    findings.note_all(parsed.faults)
    warn_repeated(parsed.names, file, findings)
    names += parsed.names
    return parsed


def _read_lists(
    tree: Tree, format: Format, folder: FolderFacts, names: list[str], findings: Findings
) -> Records:
    """The images of files that each list any number of images, such as COCO's."""
    records = []
    for file, content in folder.files.items():
        split = tree.stated_split(file)
        for image in _parse(format, content, file, names, findings).images:
            image_split = image.split or split
            if path := tree.resolve(image.name, file, image_split, findings):
                fields = dict(stated_size=image.stated_size, instances=image.objects)
                records.append(tree.record(path, file, image_split, **fields))
    return records


def _read_file_per_image(
    tree: Tree, format: Format, folder: FolderFacts, names: list[str], findings: Findings
) -> Records:
    """The images of files that belong to one image each, such as Pascal VOC's."""
    image_name_of = dict(_image_names(tree, format, folder.files, findings))
    pairs = pair_files(tree.index, {file: [name] for file, name in image_name_of.items()}, findings)
    for file in pairs.unmatched:
        findings.note(folder.no_image_note.what, str(file), folder.no_image_note.remedy)
    splits, record_of = folder.splits or {}, {}
    for file, path in pairs.image_of.items():
        [image] = _parse(format, folder.files[file], file, names, findings).images
        split = splits.get(file) or splits.get(path)  # VOC's lists name files, YOLO's name images
        fields = dict(stated_size=image.stated_size, instances=image.objects)
        record_of[path] = tree.record(path, file, split, **fields)
    if not folder.unlabeled_are_empty:
        return [*record_of.values()]
    images = [path for path in tree.images if path not in pairs.conflicting]
    what = 'images without a label file, taken as empty'
    findings.warn_all(what, (path for path in images if path not in record_of))
    return [record_of.get(path) or tree.record(path, path, splits.get(path)) for path in images]


def _image_names(
    tree: Tree, format: Format, files: Mapping[Path, Any], findings: Findings
) -> Iterator[tuple[Path, str]]:
    """The name by which to find each file's image: its own name, or else the one written in it.

    A file that names another image than its own name does is noted, or rejected by a strict format.
    """
    assert format.image
    for file, content in files.items():
        written = format.image(content)
        if not written:
            yield file, file.stem
            continue
        by_file_name = tree.index.match(file.stem, file)
        bare = PureWindowsPath(written).name  # its folders can be those of another machine
        by_content = tree.index.match(bare, file)
        if len(by_content) != 1:  # several images of this name, which the folders may tell apart
            by_content = tree.index.match(written, file)
        if len(by_file_name) == len(by_content) == 1 and by_file_name != by_content:
            if format.is_strict:
                what = 'files have the name of one image, and name another one inside'
                findings.reject(
                    what, 'rename them, or correct the name in them', f'{file} with {written!r}'
                )
                continue
            what = 'annotations that name another image, taken for the image of their own name'
            findings.warn(what, f'{written} in {file}')
        if by_file_name:
            yield file, file.stem
        else:
            yield file, written if len(by_content) == 1 else bare
