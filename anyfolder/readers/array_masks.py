"""Masks as NumPy arrays, which are rejected with code that converts them to PNG."""

from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.pixels.arrays import header_in, length_of

from .findings import Findings
from .image_tree import Tree
from .map_sets import kind_by_name


def array_masks(tree: Tree) -> list[Path]:
    """The ``.npy`` arrays in mask folders that are named after images, if all are class numbers.

    An array of class numbers is (H, W), in integers or booleans.
    """
    arrays = [
        file
        for file in tree.others
        if file.suffix.lower() == '.npy' and kind_by_name(tree.parts(file)) == 'mask'
    ]
    found = tree.index.pair({file: [file.stem] for file in arrays}, Findings(skip_invalid=True))
    paired = [*found.image_of]
    return paired if 2 * len(paired) > len(arrays) and all(map(_is_of_numbers, paired)) else []


def check_array_masks(tree: Tree) -> None:
    """Raise an ``InputError`` for masks as arrays, with code that converts them to PNG."""
    if not (found := array_masks(tree)):
        return
    raise InputError(
        f'{str(found[0])!r} is a mask as an array, but masks must be images; convert to 16-bit PNG '
        f'in the folder {str(tree.folder)!r}, by: `import numpy as np, pathlib; '
        "from PIL import Image; [Image.fromarray(np.load(f).astype('uint16'))"
        ".save(f.with_suffix('.png')) for f in pathlib.Path()"
        f".rglob('{found[0].parent.name}/*.npy')]`."
    )


def _is_of_numbers(file: Path) -> bool:
    try:
        with file.open('rb') as content:
            header = header_in(content, length_of(content))
    except (OSError, ValueError):
        return False
    return len(header.shape) == 2 and header.dtype.kind in 'biu'
