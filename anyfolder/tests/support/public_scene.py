"""What writes scenes of public data sets, and what is right of each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

SIZE = 40, 30
Sizes = tuple[int, int, int]  # the images to train on, to validate and to test


class Scene:
    """Writes files below a folder.

    Attributes:
        folder: where they are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._random = folder, np.random.default_rng(0)

    def path(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def images(self, *names: str, size: tuple[int, int] = SIZE) -> None:
        """Noise, so that no image is a copy of another."""
        for name in names:
            pixels = self._random.integers(0, 255, (size[1], size[0], 3), np.uint8)
            Image.fromarray(pixels).save(self.path(name))

    def array(self, name: str, values: np.ndarray) -> None:
        """A mask or a depth map."""
        if name.endswith('.npy'):
            np.save(self.path(name), values)
        else:
            Image.fromarray(values).save(self.path(name))

    def text(self, name: str, *lines: str) -> None:
        self.path(name).write_text(''.join(f'{line}\n' for line in lines))


@dataclass
class Public:
    """A scene of a public data set, and what is right.

    Attributes:
        layout: the known layout that it has.
        write: writes the scene.
        task: that it is read for.
        classes: in the order of their numbers.
        sizes: the images of each split.
        held_out: whether those to validate were held out.
        boxes: of objects in the images to train on, with their class, among others.
        labels: the classes of images, or in their masks, by the ends of their paths, among others.
        ignored: the number of objects that are neither trained on nor counted.
        notes: words of what is said of it.
        farthest: the largest depth in meters.
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
