"""The handwritten digits inside scikit-learn: a real task that needs no download."""

from typing import Any

import numpy as np
from mmengine.dataset import BaseDataset

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.registry import DATASETS

SPLITS = ('train', 'val')


@DATASETS.register_module()
class Digits(BaseDataset):
    """1,797 scans of 8 x 8 pixels (Alpaydin and Kaynak, UCI ML repository, 1998; as scikit-learn ships them).

    Each item has ``img``, uint8 of shape (8, 8, 1), and ``gt_label``.

    Args:
        split: ``'train'``, or ``'val'`` for the held-out part, which has the same share of every class.
        val_fraction: how much is held out.
        seed: of the shuffle that holds it out.
        **kwargs: ``pipeline`` and others of MMEngine's ``BaseDataset``.

    Raises:
        ConfigError: for an unknown split.
        MissingExtraError: without scikit-learn.
    """

    METAINFO = dict(classes=tuple('0123456789'))

    def __init__(self, split: str = 'train', val_fraction: float = 0.2, seed: int = 0, **kwargs: Any) -> None:
        if split not in SPLITS:
            raise ConfigError(f'Digits: split={split!r} is not one of {", ".join(SPLITS)}.')
        self.split, self.val_fraction, self.seed = split, val_fraction, seed
        super().__init__(ann_file='', **kwargs)

    def load_data_list(self) -> list[dict]:
        with needed_by('The Digits dataset'):
            from sklearn.datasets import load_digits
            from sklearn.model_selection import train_test_split
        digits = load_digits()
        parts = train_test_split(np.arange(len(digits.target)), test_size=self.val_fraction,
                                 stratify=digits.target, random_state=self.seed)
        images = np.rint(digits.images * (255 / 16)).astype(np.uint8)[..., None]  # (1797, 8, 8, 1)
        return [dict(img=images[i], gt_label=int(digits.target[i])) for i in parts[SPLITS.index(self.split)]]
