"""Write maps with a value for each pixel: masks of classes, and depth in meters."""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from anyfolder.dataset import Dataset

from .placed_images import PlacedImage, place_file


def write_maps(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write ``images`` with ``masks`` as PNG, or with ``depth`` as ``.npy``, by split.

    Mask pixels are the numbers of classes in ``classes.txt``; 255 is unlabeled.
    """
    kind = 'depth' if data.task == 'depth' else 'masks'
    for entry in placed:
        place_file(entry.image.path, out / 'images' / entry.split / entry.name, copy)
        target = out / kind / entry.split / entry.stem
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == 'depth':
            np.save(target.with_name(f'{entry.stem}.npy'), data.depth(entry.image))
        else:
            _, content = cv2.imencode('.png', data.class_map(entry.image))
            target.with_name(f'{entry.stem}.png').write_bytes(content.tobytes())
    if kind == 'masks':
        lines = (f'{number}: {name}\n' for number, name in enumerate(data.classes))
        (out / 'classes.txt').write_text(''.join(lines), encoding='utf-8')
