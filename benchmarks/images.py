"""Give image files of every kind to every reader that the recipes have, and print the outcomes.

    python benchmarks images

It takes seconds. The readers of this package must read each file correctly, or reject it in one
sentence that names it; otherwise the status is 1. MMCV's ``LoadImageFromFile`` is shown next to
them, but need not pass. The test pipelines of the recipes have it, since the frameworks'
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

# Outcomes: read correctly; a ConfigError of one sentence that names the file; another error that
# does; an error that does not; wrong pixels.
ACCEPTED = ('right', 'one sentence')
COLUMNS = (*ACCEPTED, 'named', 'not named', 'other pixels')
MAX_MEAN_DIFFERENCE = 5  # gray levels, for formats with losses


def load_whole_as_crop(results: dict) -> dict:
    """Read a file by ``LoadRandomResizedCrop``, with the whole image as the crop."""
    # The size of a broken file is unknown, and does not matter.
    height, width = shown(results['img_path']).shape[:2] if results.pop('is_image') else (8, 8)
    load = LoadRandomResizedCrop(
        (height, width), crop_ratio_range=(1.0, 1.0), aspect_ratio_range=(width / height,) * 2
    )
    return load(results)


READERS: dict[str, Callable[[dict], dict]] = {
    'LoadImage': LoadImage(),
    'LoadCachedImage': LoadCachedImage(),
    'LoadRandomResizedCrop': load_whole_as_crop,
    'LoadImageFromFile': LoadImageFromFile(),
}


def shown(path: str) -> np.ndarray:
    """The image as a viewer shows it, in BGR."""
    with Image.open(path) as image:
        if image.mode == 'I;16':  # Pillow would clip it to 255
            return np.asarray(image)[..., None].repeat(3, -1) >> 8
        return np.asarray(ImageOps.exif_transpose(image).convert('RGB'))[..., ::-1]


def outcome(load: Callable[[dict], dict], path: str, is_image: bool) -> str:
    """What a reader makes of a file, one of :data:`COLUMNS`.

    Args:
        load: the reader.
        path: the file.
        is_image: whether it is a valid image, see :func:`~benchmarks.image_kinds.write`.
    """
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
        and np.abs(image.astype(int) - wanted).mean() < MAX_MEAN_DIFFERENCE
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
                if column not in ACCEPTED:
                    print(f'{name}: {Path(path).name}: {column}')
            print(
                f'{name}: tried {len(kinds)}, '
                + ', '.join(f'{column} {counts[column]}' for column in COLUMNS)
            )
            accepted = sum(counts[column] for column in ACCEPTED)
            if name != 'LoadImageFromFile' and accepted < len(kinds):
                failed += 1
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
