"""Folders next to classes that are not classes: copies of all images, and program output."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from anyfolder.errors import UnclearError
from anyfolder.pixels.image_files import is_image, is_os_metadata

from .findings import Findings
from .image_tree import Tree
from .splits import split_of

# Folders that programs write next to the data, in lower case.
RESULT_FOLDERS = (
    'output', 'outputs', 'result', 'results', 'runs', 'prediction', 'predictions', 'preds',
    'inference', 'logs', 'checkpoints', 'weights', 'plots', 'visualizations',
)  # fmt: skip
# The images of a folder, by subfolder; '' for those in the folder itself.
ImagesBySubfolder = Mapping[str, list[Path]]
# The images of a class: by subfolder, or all in one list.
ClassImages = TypeVar('ClassImages', ImagesBySubfolder, list[Path])


def without_copies(
    tree: Tree, classes: Mapping[str, ImagesBySubfolder], findings: Findings
) -> dict[str, ImagesBySubfolder]:
    """The class folders except one that contains a copy of all others, each with its images.

    Raises:
        UnclearError: if a folder has folders of all other classes, but with other images.
    """
    # With only two class folders, a subfolder named as the other one is no sign of a copy.
    copies = [
        name
        for name, below in classes.items()
        if len(below) > 1 and below.keys() == classes.keys() - {name}
    ]
    for name in copies:
        for label, images in classes[name].items():
            originals = {
                _name_and_size(path) for paths in classes[label].values() for path in paths
            }
            other = next((path for path in images if _name_and_size(path) not in originals), None)
            if other:
                raise UnclearError(
                    f'{str(tree.folder / name)!r} has folders of all classes again, with other '
                    f'images such as {str(other)!r}; put these into the folders of their classes, '
                    'or name the folders train, val and test, with a folder of each class in them.',
                    images='**/{class}/*',
                )
    what = 'folders left out, since they have the images of all classes again'
    findings.warn_all(what, (tree.folder / name for name in copies))
    return {name: below for name, below in classes.items() if name not in copies}


def _name_and_size(path: Path) -> tuple[str, int]:
    """The name and the size in bytes of an image; 0 for a broken link, which is reported later."""
    return path.name, path.stat().st_size if path.exists() else 0


def without_results(
    folder: Path, classes: Mapping[str, ClassImages], findings: Findings
) -> dict[str, ClassImages]:
    """The class folders except those of program output, by name.

    A folder is program output if it is named so and contains something other than images and
    folders of splits. One with only these may be a class: it is kept, with a warning. Nothing is
    left out if fewer than two classes would remain.
    """
    named = {name: _path_of(folder, name) for name in classes if name.casefold() in RESULT_FOLDERS}
    results = [
        name
        for name, path in named.items()
        if not all(
            is_image(entry) or is_os_metadata(entry) or split_of(entry.name)
            for entry in path.iterdir()
        )
    ]
    if len(classes) - len(results) < 2:
        return {**classes}
    findings.warn_all(
        'folders left out, since they are named as program output and contain something other than '
        'images',
        (named[name] for name in results),
    )
    findings.warn_all(
        'classes named as program output; move their folders away if they are not classes',
        (path for name, path in named.items() if name not in results),
    )
    return {name: below for name, below in classes.items() if name not in results}


def _path_of(folder: Path, name: str) -> Path:
    """The folder of a class. In a split, it can be within the only other folder, such as images."""
    return next(filter(Path.is_dir, (folder / name, *folder.glob(f'*/{name}'))), folder / name)
