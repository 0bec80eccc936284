"""Writes public data sets in miniature, and states what reading each must give."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

SIZE = 40, 30
Sizes = tuple[int, int, int]  # number of training, validation and test images


class Scene:
    """Writes files into a folder.

    Attributes:
        folder: the root, to which the names of files are relative.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._random = folder, np.random.default_rng(0)

    def path(self, name: str) -> Path:
        """The path of a file, in a folder that now exists."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def images(self, *names: str, size: tuple[int, int] = SIZE) -> None:
        """Write noise, so that no image is a copy of another."""
        for name in names:
            pixels = self._random.integers(0, 255, (size[1], size[0], 3), np.uint8)
            Image.fromarray(pixels).save(self.path(name))

    def array(self, name: str, values: np.ndarray) -> None:
        """Write a mask or a depth map as ``.npy`` or as an image."""
        if name.endswith('.npy'):
            np.save(self.path(name), values)
        else:
            Image.fromarray(values).save(self.path(name))

    def text(self, name: str, *lines: str) -> None:
        self.path(name).write_text(''.join(f'{line}\n' for line in lines))


@dataclass
class PublicDataSet:
    """A public data set in miniature, and what reading it must give.

    Attributes:
        layout: the name of its known layout.
        write: writes its files.
        task: the task that it is read for.
        classes: the class names in the order of their numbers.
        sizes: the number of images of each split.
        held_out: whether the validation images are held out from the training images.
        boxes: left, top, width and height of some objects in the training images, by class.
        labels: the class or classes of some images or their masks, by the end of the image path.
        ignored: the number of training objects that are ignored, in the loss and in scores.
        notes: words that occur in the examples of the findings.
        farthest: the largest depth in meters, or 0 without depth maps.
    """

    layout: str
    write: Callable[[Scene], None]
    task: str
    classes: Iterable[str]
    sizes: Sizes
    held_out: bool = False
    boxes: dict[str, tuple[float, ...]] = field(default_factory=dict)
    labels: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    ignored: int = 0
    notes: tuple[str, ...] = ()
    farthest: float = 0.0
