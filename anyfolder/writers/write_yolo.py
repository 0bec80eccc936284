"""YOLO: ``images/train``, ``labels/train`` and ``data.yaml``, as ultralytics has them."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from anyfolder.dataset import Dataset, Image

from .placed_images import PlacedImage, place_file

# Without it, readers guess from all lines whether values after a box are keypoints.
POLYGONS = 'kpt_shape: [0, 2]  # no keypoints: what follows a class is a polygon\n'


def write_yolo(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write a line for each object: its class and its box or polygon as fractions of the image."""
    for one in placed:
        place_file(one.image.path, out / 'images' / one.split / one.name, copy)
        file = out / 'labels' / one.split / f'{one.stem}.txt'
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(''.join(f'{line}\n' for line in _lines(data, one.image)))
    splits = dict.fromkeys(one.split for one in placed)
    names = yaml.safe_dump(dict(names=[*data.classes]), allow_unicode=True, sort_keys=False)
    text = ''.join(f'{split}: images/{split}\n' for split in splits) + names
    # There is no path, so that the folder can be moved.
    (out / 'data.yaml').write_text(text + POLYGONS * (data.task == 'instance'), encoding='utf-8')


def _lines(data: Dataset, image: Image) -> list[str]:
    lines = []
    for found in image.objects:
        values: Sequence[float]
        if data.task == 'instance' and isinstance(found.segmentation, Sequence):
            values = found.segmentation[0]
        else:
            left, top, width, height = found.box
            values = left + width / 2, top + height / 2, width, height
        shares = (f'{value / image.size[i % 2]:.8g}' for i, value in enumerate(values))
        lines.append(f'{data.number_of(found.label)} {" ".join(shares)}')
    return lines
