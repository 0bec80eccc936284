"""Replacements of MMPretrain's data sets: images in class folders, a text list, or JSON."""

from pathlib import Path
from typing import Any

import mmengine.dataset
from torchvision.datasets.folder import IMG_EXTENSIONS, find_classes, make_dataset

from vit_plugin.errors import ConfigError


class BaseDataset(mmengine.dataset.BaseDataset):
    """MMEngine's data set, with the folder of the images as ``data_prefix``.

    Args:
        ann_file, data_prefix, **kwargs: arguments of MMEngine's ``BaseDataset``.
    """

    def __init__(self, ann_file: str = '', data_prefix: str | dict = '', **kwargs: Any) -> None:
        prefix = data_prefix if isinstance(data_prefix, dict) else dict(img_path=data_prefix)
        super().__init__(ann_file, data_prefix=prefix, **kwargs)

    def get_cat_ids(self, idx: int) -> list[int]:
        """The classes of an image."""
        label = self.get_data_info(idx)['gt_label']
        return label if isinstance(label, list) else [label]


class MultiLabelDataset(BaseDataset):
    """:class:`BaseDataset` of images with several classes each."""


class CustomDataset(BaseDataset):
    """Images in class folders, or in a text file with a path and a class on each line.

    Args:
        with_label: whether the lines of the text file have classes.
        **kwargs: arguments of MMEngine's ``BaseDataset``. ``ann_file`` is the text file; without
            it, the class folders are read. ``data_prefix`` is the folder of the images, which may
            be inside ``data_root``.

    Raises:
        ConfigError: if the classes do not match the folders, or if a line has no class.
    """

    def __init__(self, with_label: bool = True, **kwargs: Any) -> None:
        self.with_label = with_label
        super().__init__(**kwargs)

    def load_data_list(self) -> list[dict]:
        """The path and the class of each image."""
        folder = self.data_prefix['img_path']
        if not self.ann_file:
            names, number_of_name = find_classes(folder)
            if len(self._metainfo.setdefault('classes', tuple(names))) != len(names):
                raise ConfigError(
                    f'CustomDataset: {folder!r} has {len(names)} folders; give as many classes.'
                )
            files = make_dataset(folder, number_of_name, IMG_EXTENSIONS, allow_empty=True)
            return [dict(img_path=path, gt_label=label) for path, label in files]
        samples: list[dict[str, Any]] = []
        for line in mmengine.list_from_file(self.ann_file):
            # The path may contain spaces, so the class follows the last one.
            name, _, label = line.strip().rpartition(' ') if self.with_label else (line, '', '')
            if self.with_label and not (name and label.removeprefix('-').isdecimal()):
                raise ConfigError(
                    f'CustomDataset: {self.ann_file!r} has the line {line!r}, where a path, a '
                    'space and the number of a class are expected; correct it, or set '
                    'with_label=False.'
                )
            entry = dict(gt_label=int(label)) if label else {}
            samples.append(dict(entry, img_path=str(Path(folder, name))))
        return samples
