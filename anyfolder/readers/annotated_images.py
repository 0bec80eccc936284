"""The images of a folder with their annotations from the files of a format."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from .class_names import warn_repeated
from .file_contents import reading
from .findings import Findings
from .format_folder import FormatFolder
from .formats.parsed import Parsed
from .formats.table import Format
from .image_tree import Tree
from .records import Records


def read_images(
    tree: Tree, format: Format, folder: FormatFolder, findings: Findings
) -> tuple[Records, list[str]]:
    """The images of the files of a format, and the names of the classes in their order, if any.

    Args:
        tree: the files of the folder.
        format: the format, which parses a file.
        folder: the annotation files to read.
        findings: collects missing images and errors in the files.

    Raises:
        InputError: if a file is incomplete.
    """
    names = [*folder.names]
    read = _of_lists if format.image is None else _of_files
    records = read(tree, format, folder, names, findings)
    for record in records:
        for found in record.instances:
            found.name = folder.renamed.get(found.name, found.name)
    return records, names


def _parse(
    format: Format, content: Any, file: Path, names: list[str], findings: Findings
) -> Parsed:
    with reading(file, format.unit, format.name):
        parsed = format.parse(content, file)
    findings.note_all(parsed.faults)
    warn_repeated(parsed.names, file, findings)
    names += parsed.names
    return parsed


def _of_lists(
    tree: Tree, format: Format, folder: FormatFolder, names: list[str], findings: Findings
) -> Records:
    """The images that files list."""
    records = []
    for file, content in folder.files.items():
        split = tree.stated_split(file)
        for image in _parse(format, content, file, names, findings).images:
            own = image.split or split
            if path := tree.resolve(image.name, file, own, findings):
                more = dict(stated=image.stated, instances=image.objects)
                records.append(tree.record(path, file, own, **more))
    return records


def _of_files(
    tree: Tree, format: Format, folder: FormatFolder, names: list[str], findings: Findings
) -> Records:
    """The images of files that belong to one image each."""
    named = dict(_named(tree, format, folder.files, findings))
    pairs = tree.index.pair({file: [name] for file, name in named.items()}, findings)
    for file in pairs.lost:
        findings.note(folder.lost.what, str(file), folder.lost.remedy)
    splits, found = folder.splits or {}, {}
    for file, path in pairs.image_of.items():
        [image] = _parse(format, folder.files[file], file, names, findings).images
        more = dict(stated=image.stated, instances=image.objects)
        found[path] = tree.record(path, file, splits.get(file) or splits.get(path), **more)
    if not folder.whole:
        return [*found.values()]
    whole = [path for path in tree.images if path not in pairs.unclear]
    what = 'images without a label file, taken as empty'
    findings.warn_all(what, (path for path in whole if path not in found))
    return [found.get(path) or tree.record(path, path, splits.get(path)) for path in whole]


def _named(
    tree: Tree, format: Format, files: Mapping[Path, Any], findings: Findings
) -> Iterator[tuple[Path, str]]:
    """The name by which the image of each file is found: the file's, or else the one inside."""
    assert format.image
    for file, content in files.items():
        written = format.image(content)
        if not written:
            yield file, file.stem
            continue
        own = tree.index.match(file.stem, file)
        bare = PureWindowsPath(written).name  # its folders can be those of another machine
        stated = tree.index.match(bare, file)
        if len(stated) != 1:
            stated = tree.index.match(written, file)
        if len(own) == len(stated) == 1 and own != stated:
            if format.is_strict:
                what = 'files have the name of one image, and name another one inside'
                findings.reject(
                    what, 'rename them, or correct the name in them', f'{file} with {written!r}'
                )
                continue
            what = 'annotations that name another image, taken for the image of their own name'
            findings.warn(what, f'{written} in {file}')
        yield file, file.stem if own else written if len(stated) == 1 else bare
