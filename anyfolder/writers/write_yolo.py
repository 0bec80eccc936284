"""Write YOLO: ``images/train``, ``labels/train`` and ``data.yaml``, as in ultralytics."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from anyfolder.dataset import Dataset, Image

from .placed_images import PlacedImage, place_file

# Without this line, anyfolder's reader guesses from all labels whether a box and keypoints follow.
KPT_SHAPE_LINE = 'kpt_shape: [0, 2]  # no keypoints: what follows a class is a polygon\n'


def write_yolo(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write a line for each object: its class and its box or polygon as fractions of the image."""
    for entry in placed:
        place_file(entry.image.path, out / 'images' / entry.split / entry.name, copy)
        file = out / 'labels' / entry.split / f'{entry.stem}.txt'
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(''.join(f'{line}\n' for line in _lines(data, entry.image)))
    splits = dict.fromkeys(entry.split for entry in placed)
    names = yaml.safe_dump(dict(names=[*data.classes]), allow_unicode=True, sort_keys=False)
    text = ''.join(f'{split}: images/{split}\n' for split in splits) + names
    if data.task == 'instance':
        text += KPT_SHAPE_LINE
    # There is no path, so that the folder can be moved.
    (out / 'data.yaml').write_text(text, encoding='utf-8')


def _lines(data: Dataset, image: Image) -> list[str]:
    lines = []
    for obj in image.objects:
        values: Sequence[float]
        if data.task == 'instance' and isinstance(obj.segmentation, Sequence):
            values = obj.segmentation[0]
        else:
            left, top, width, height = obj.box
            values = left + width / 2, top + height / 2, width, height
        fractions = (f'{value / image.size[i % 2]:.8g}' for i, value in enumerate(values))
        lines.append(f'{data.number_of(obj.label)} {" ".join(fractions)}')
    return lines
