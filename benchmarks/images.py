"""Image files of every kind through every reader of our recipes: the outcome of each.

    python benchmarks images

Takes seconds. Our readers read each file correctly, or reject it in one sentence that names it.
MMCV's own reader is shown next to them, since the recipes' test pipelines have it: the frameworks'
inferencers look for it by its name.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mmcv.transforms import LoadImageFromFile
from PIL import Image, ImageOps

from benchmarks.image_kinds import write
from vit_plugin.data import LoadCachedImage, LoadImage, LoadRandomResizedCrop
from vit_plugin.errors import ConfigError

OURS = ('right', 'one sentence')
COLUMNS = (*OURS, 'named', 'not named', 'other pixels')


def whole(results: dict) -> dict:
    """Our reader of crops, with the whole image as the crop."""
    height, width = shown(results['img_path']).shape[:2] if results.pop('is_image') else (8, 8)
    load = LoadRandomResizedCrop(
        (height, width), crop_ratio_range=(1.0, 1.0), aspect_ratio_range=(width / height,) * 2
    )
    return load(results)


READERS: dict[str, Callable[[dict], dict]] = {
    'LoadImage': LoadImage(),
    'LoadCachedImage': LoadCachedImage(),
    'LoadRandomResizedCrop': whole,
    'LoadImageFromFile': LoadImageFromFile(),
}


def shown(path: str) -> np.ndarray:
    """The image as a viewer shows it, in BGR."""
    with Image.open(path) as image:
        if image.mode == 'I;16':  # Pillow would clip it
            return np.asarray(image)[..., None].repeat(3, -1) >> 8
        return np.asarray(ImageOps.exif_transpose(image).convert('RGB'))[..., ::-1]


def outcome(load: Callable[[dict], dict], path: str, is_image: bool) -> str:
    """The column of the table for the file."""
    results = dict(img_path=path, is_image=is_image)
    try:
        image = load(results)['img']
    except ConfigError as error:
        sentence = str(error)
        return 'one sentence' if repr(path) in sentence and '\n' not in sentence else 'not named'
    except Exception as error:
        return 'named' if path in str(error) else 'not named'
    wanted = shown(path) if is_image else None
    right = (
        wanted is not None
        and image.shape == wanted.shape
        and np.abs(image.astype(int) - wanted).mean() < 5
    )
    return 'right' if right else 'other pixels'


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        kinds = list(write(Path(folder)))
        for name, load in READERS.items():
            columns = {path: outcome(load, path, is_image) for path, is_image in kinds}
            counts = Counter(columns.values())
            for path, column in columns.items():
                if column not in OURS:
                    print(f'{name}: {Path(path).name}: {column}')
            print(
                f'{name}: tried {len(kinds)}, '
                + ', '.join(f'{column} {counts[column]}' for column in COLUMNS)
            )
            accepted = sum(counts[column] for column in OURS)
            if name != 'LoadImageFromFile' and accepted < len(kinds):
                failed += 1
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
