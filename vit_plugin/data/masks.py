"""Folders of images and masks: which belong together, their classes, and which are held out."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from vit_plugin.errors import ConfigError
from vit_plugin.files.images import is_image

from .folders import SEED, VALIDATION, hold_out

IMAGES = ('images', 'img_dir', 'JPEGImages')  # names of the folder, the first that exists is taken
MASKS = ('masks', 'annotations', 'ann_dir', 'labels', 'SegmentationClass')
NOT_LABELLED = 255  # the value of pixels of no class
NAMES = 'classes.txt'


class MaskFolder(NamedTuple):
    """The images and masks of a folder.

    Attributes:
        classes: names of the classes, by their value in a mask.
        images, masks: the folders.
        suffix: that of all images.
        train, val: paths within both folders, without their suffixes.
        held_out: whether ``val`` was drawn from the images for training.
    """
    classes: tuple[str, ...]
    images: Path
    masks: Path
    suffix: str
    train: list[str]
    val: list[str]
    held_out: bool


def read_mask_folder(folder: str | Path) -> MaskFolder:
    """List the pairs ``folder/images/[train|val/]NAME.jpg`` and ``folder/masks/[train|val/]NAME.png``.

    A mask has the number of a class in each pixel, and 255 where there is none. ``folder/classes.txt`` has the name of
    a class on each line. Without a folder for validation, a tenth of the images is held out.

    Raises:
        ConfigError: if there are no such folders, if an image has no mask of its size, if images have several suffixes,
            if a mask has a value without a class, or if there are no images to train on or to validate.
    """
    folder = Path(folder)
    images, masks = (next((folder / name for name in names if (folder / name).is_dir()), None)
                     for names in (IMAGES, MASKS))
    if images is None or masks is None:
        raise ConfigError(f'--data: {str(folder)!r} must have a folder {IMAGES[0]!r} and a folder {MASKS[0]!r} for '
                          '--task segmentation, with masks of the same names that end in .png.')
    files = sorted(path.relative_to(images) for path in images.rglob('*') if is_image(path))
    suffixes = sorted({path.suffix for path in files})
    if len(suffixes) != 1:
        raise ConfigError(f'--data: the images in {str(images)!r} must have one suffix, and have '
                          f'{", ".join(suffixes) or "none"}; save all in one format.')
    names = [path.with_suffix('').as_posix() for path in files]
    classes = _classes(folder / NAMES, max(_largest(images / file, masks / f'{name}.png')
                                           for file, name in zip(files, names, strict=True)))
    val = next((part for part in VALIDATION if (images / part).is_dir()), None)
    held = {name for name in names if name.startswith(f'{val}/')} if val else set(
        hold_out(names, np.random.default_rng(SEED))[0])
    if not 0 < len(held) < len(names):
        raise ConfigError(f'--data: {str(images)!r} must have images to train on and images to validate; add some.')
    return MaskFolder(classes, images, masks, suffixes[0], [name for name in names if name not in held], sorted(held),
                      val is None)


def _largest(image: Path, mask: Path) -> int:
    """The largest class in a mask, after a look whether it fits its image."""
    if not mask.is_file():
        raise ConfigError(f'--data: the image {str(image)!r} has no mask {str(mask)!r}; add it, or remove the image.')
    try:
        with Image.open(image) as photograph, Image.open(mask) as labels:
            sizes, values = (photograph.size, labels.size), np.asarray(labels)
    except (OSError, ValueError, SyntaxError) as error:
        raise ConfigError(f'--data: {str(image)!r} or its mask cannot be read ({error}); repair or remove '
                          'them.') from error
    if values.ndim != 2 or values.dtype not in (np.uint8, np.bool_):
        raise ConfigError(f'--data: the mask {str(mask)!r} must have one channel of 8 bits, the number of the class of '
                          'each pixel.')
    if sizes[0] != sizes[1]:
        raise ConfigError(f'--data: the mask {str(mask)!r} has {sizes[1]} pixels, and its image {sizes[0]}; make them '
                          'equal.')
    return int(values[values != NOT_LABELLED].max(initial=0))


def _classes(names: Path, largest: int) -> tuple[str, ...]:
    if not names.is_file():
        return tuple(f'class {i}' for i in range(max(largest + 1, 2)))
    classes = tuple(filter(None, map(str.strip, names.read_text().splitlines())))
    if largest >= len(classes):
        raise ConfigError(f'--data: a mask has the class {largest}, and {str(names)!r} has {len(classes)} names, from '
                          'class 0; add the others, or mark pixels of no class by 255.')
    return classes
