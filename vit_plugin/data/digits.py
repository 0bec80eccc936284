"""The handwritten digits that scikit-learn ships: a real task without a download."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
from mmengine.dataset import BaseDataset
from PIL import Image
from pydantic import Field
from typing_extensions import TypedDict, Unpack

from anyfolder.complete import new_folder
from vit_plugin.arguments.fields import Count, PositiveInt, Seed, Typed
from vit_plugin.errors import needed_by
from vit_plugin.registry import DATASETS

Split = Literal['train', 'val']
DIGITS_SPLITS: tuple[Split, ...] = get_args(Split)

# Within these bounds, each split has images of every class.
HeldOut = Annotated[float, Field(ge=0.01, le=0.99)]


class DatasetOptions(TypedDict, total=False):
    """Arguments of MMEngine's ``BaseDataset`` that have an effect without files."""

    metainfo: dict | None
    filter_cfg: dict | None
    indices: PositiveInt | Annotated[Sequence[Count], Field(min_length=1)] | None
    serialize_data: bool
    pipeline: Sequence[Typed | Callable]
    test_mode: bool
    lazy_init: bool
    max_refetch: Count


def write_digits(folder: Path) -> None:
    """Write all 1,797 images as PNG files, ``folder/CLASS/NUMBER.png``.

    Raises:
        MissingExtraError: if scikit-learn is not installed.
    """
    images, labels = load_scans('--data digits')
    with new_folder(folder, durable=False) as temporary:
        for i, (pixels, label) in enumerate(zip(images, labels, strict=True)):
            path = temporary / str(label) / f'{i:04d}.png'
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(pixels).save(path)


def load_scans(feature: str) -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's images (1797, 8, 8) in uint8, and their classes.

    ``feature`` names what needs scikit-learn, for the error if it is missing.
    """
    with needed_by(feature):
        from sklearn.datasets import load_digits
    digits = load_digits()
    return np.rint(digits.images * (255 / 16)).astype(np.uint8), digits.target


@DATASETS.register_module()
class Digits(BaseDataset):
    """scikit-learn's 1,797 scans of 8 x 8 pixels (Alpaydin and Kaynak, UCI ML repository, 1998).

    Each item has ``img``, uint8 of shape (8, 8, 1), and ``gt_label``.

    Args:
        split: ``'train'`` or ``'val'``, the held-out part. Both have the same share of every class.
        val_fraction: fraction of the images that is held out.
        seed: seed of the shuffle before the split.
        **kwargs: ``pipeline`` and others of MMEngine's ``BaseDataset``.

    Raises:
        MissingExtraError: if scikit-learn is not installed.
    """

    METAINFO = dict(classes=tuple('0123456789'))

    def __init__(
        self,
        split: Split = 'train',
        val_fraction: HeldOut = 0.2,
        seed: Seed = 0,
        **kwargs: Unpack[DatasetOptions],
    ) -> None:
        self.split, self.val_fraction, self.seed = split, val_fraction, seed
        super().__init__(ann_file='', **kwargs)

    def load_data_list(self) -> list[dict]:
        images, labels = load_scans('The Digits dataset')
        from sklearn.model_selection import train_test_split

        splits = train_test_split(
            np.arange(len(labels)),
            test_size=self.val_fraction,
            stratify=labels,
            random_state=self.seed,
        )
        return [
            dict(img=images[i, ..., None], gt_label=int(labels[i]))  # (8, 8, 1)
            for i in splits[DIGITS_SPLITS.index(self.split)]
        ]
