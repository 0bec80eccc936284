"""Masks as NumPy arrays (``.npy``) are not read.

They are rejected with an error that contains a Python snippet to convert them to PNG.
"""

from collections.abc import Sequence
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.pixels.arrays import header_in, length_of

from .findings import Findings
from .image_tree import Tree
from .map_sets import kind_by_name
from .paired_files import pair_files


def array_masks(tree: Tree) -> list[Path]:
    """The ``.npy`` files in mask folders that have the name of an image.

    Empty unless most arrays in mask folders have an image, and all of these hold class numbers.
    """
    arrays = [
        file
        for file in tree.others
        if file.suffix.lower() == '.npy' and kind_by_name(tree.parts(file)) == 'mask'
    ]
    discarded = Findings()  # arrays without an image are not an error here
    pairs = pair_files(tree.index, {file: [file.stem] for file in arrays}, discarded)
    paired = [*pairs.image_of]
    return paired if 2 * len(paired) > len(arrays) and all(map(_has_class_numbers, paired)) else []


def check_array_masks(tree: Tree) -> None:
    """Raise an ``InputError`` for masks as arrays, with code that converts them to PNG.

    The code converts the arrays below every folder whose name is that of a mask folder in which
    an array was paired with an image. A negative number, which PNG cannot hold, becomes 255, a
    pixel without a class. The code stops at a number that 16 bits cannot hold.
    """
    if not (masks := array_masks(tree)):
        return
    folder_names = sorted({_mask_folder_name(tree.parts(file)) for file in masks})
    raise InputError(
        f'{str(masks[0])!r} is a mask as an array, but masks must be images; convert all to 16-bit '
        f'PNG in the folder {str(tree.folder)!r}, by: `import numpy as np, pathlib; '
        "from PIL import Image; [Image.fromarray(np.where(a < 0, 255, a).astype('uint16'))"
        ".save(f.with_suffix('.png')) "
        f"for name in {folder_names} for f in pathlib.Path().rglob(name + '/**/*') "
        "if f.suffix.lower() == '.npy' for a in [np.load(f).astype(int)] "
        "if a.max() < 65536 or exit(str(f) + ' has numbers above 65535')]`."
    )


def _mask_folder_name(folders: Sequence[str]) -> str:
    """The innermost folder that is named for masks, such as ``masks`` or ``train_masks``."""
    return next(name for name in reversed(folders) if kind_by_name((name,)) == 'mask')


def _has_class_numbers(file: Path) -> bool:
    """True for class numbers: an array (H, W) of integers or booleans."""
    try:
        with file.open('rb') as content:
            header = header_in(content, length_of(content))
    except (OSError, ValueError):
        return False
    return len(header.shape) == 2 and header.dtype.kind in 'biu'
