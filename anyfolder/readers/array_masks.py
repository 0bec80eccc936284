"""Masks as NumPy arrays, which are rejected with code that converts them to PNG."""

from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.pixels.arrays import header_in, length_of

from .findings import Findings
from .image_tree import Tree
from .map_sets import kind_by_name


def array_masks(tree: Tree) -> list[Path]:
    """The ``.npy`` arrays in mask folders that are named after images.

    Empty unless most arrays there have an image, and all of these are class numbers.
    """
    arrays = [
        file
        for file in tree.others
        if file.suffix.lower() == '.npy' and kind_by_name(tree.parts(file)) == 'mask'
    ]
    pairs = tree.index.pair({file: [file.stem] for file in arrays}, Findings(skip_invalid=True))
    paired = [*pairs.image_of]
    return paired if 2 * len(paired) > len(arrays) and all(map(_has_class_numbers, paired)) else []


def check_array_masks(tree: Tree) -> None:
    """Raise an ``InputError`` for masks as arrays, with code that converts them to PNG."""
    if not (masks := array_masks(tree)):
        return
    raise InputError(
        f'{str(masks[0])!r} is a mask as an array, but masks must be images; convert to 16-bit PNG '
        f'in the folder {str(tree.folder)!r}, by: `import numpy as np, pathlib; '
        "from PIL import Image; [Image.fromarray(np.load(f).astype('uint16'))"
        ".save(f.with_suffix('.png')) for f in pathlib.Path()"
        f".rglob('{masks[0].parent.name}/*.npy')]`."
    )


def _has_class_numbers(file: Path) -> bool:
    """True for class numbers: an array (H, W) of integers or booleans."""
    try:
        with file.open('rb') as content:
            header = header_in(content, length_of(content))
    except (OSError, ValueError):
        return False
    return len(header.shape) == 2 and header.dtype.kind in 'biu'
