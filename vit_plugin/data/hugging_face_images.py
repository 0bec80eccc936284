"""Data sets of the library `datasets` by Hugging Face: Arrow files that are mapped into memory."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mmengine.dataset import Compose
from torch.utils.data import Dataset

from anyfolder.pixels.images import decode
from vit_plugin.arguments.fields import Typed
from vit_plugin.errors import ConfigError, needed_by, rejecting
from vit_plugin.registry import DATASETS

from .images import name_unreadable_file


@DATASETS.register_module()
class HuggingFaceImages(Dataset):
    """A Hugging Face ``datasets`` data set of labeled images for classification, by random access.

    Each sample goes through the pipeline as ``img`` (height, width, 3) in BGR, uint8, with
    ``gt_label``, ``img_path``, ``img_shape``, ``ori_shape`` and ``sample_idx``. So the pipeline has
    no ``LoadImageFromFile``.

    Args:
        path: a folder that ``save_to_disk`` wrote, or what ``datasets.load_dataset`` takes: a
            folder of images, a name on the Hub, or a format (``'parquet'``, ``'webdataset'``).
        split: the split, such as ``'train'``.
        image: the column of the images.
        label: the column of the labels; None without labels.
        name: the configuration of a data set on the Hub.
        data_files: the files of a format.
        classes: names of the classes. None takes those of the label's column.
        pipeline: transforms.

    Raises:
        ConfigError: if the data set, the split or a column is missing or of another kind.
        MissingExtraError: if ``datasets`` is not installed.
    """

    def __init__(
        self,
        path: str,
        split: str = 'train',
        image: str = 'image',
        label: str | None = 'label',
        name: str | None = None,
        data_files: str | Sequence[str] | dict | None = None,
        classes: Sequence[str] | None = None,
        pipeline: Sequence[Typed | Callable] = (),
    ) -> None:
        with needed_by('HuggingFaceImages'):
            import datasets  # imported late, since it takes seconds
        table = _load(path, split, name, data_files)
        for field, column in (('image', image), ('label', label)):
            if column is not None and column not in table.features:
                raise ConfigError(
                    f'{field}={column!r} is not a column of {path!r}, which has '
                    f'{", ".join(table.features)}: give one of them.'
                )
        if not isinstance(table.features[image], datasets.Image):
            raise ConfigError(
                f'image={image!r} of {path!r} is not a column of images, but '
                f'{table.features[image]}: give the column of the images, or cast it to '
                'datasets.Image.'
            )
        label_type = table.features[label] if label else None
        if label and not (
            isinstance(label_type, datasets.ClassLabel)
            or getattr(label_type, 'dtype', '').startswith(('int', 'uint'))
        ):
            raise ConfigError(
                f'label={label!r} of {path!r} is not a column of integers, but {label_type}: give '
                'the column of the labels, or label=None.'
            )
        self.pipeline = Compose(list(pipeline))
        names = classes or getattr(label_type, 'names', None)
        self.metainfo = dict(classes=tuple(names)) if names else {}
        self._path, self._image, self._label = path, image, label
        table = table.select_columns([image, label] if label else [image])
        self._table = table.cast_column(image, datasets.Image(decode=False))

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, index: int) -> Any:
        row: dict[str, Any] = self._table[int(index)]
        content, file = _content(row[self._image] or {})
        path = f'{self._path}[{index}] {file}'.strip()
        with name_unreadable_file(path):
            image = decode(content, 'color')
        size = image.shape[:2]
        sample = dict(img=image, img_path=path, img_shape=size, ori_shape=size, sample_idx=index)
        return self.pipeline(dict(sample, gt_label=row[self._label]) if self._label else sample)


def _content(image: dict[str, Any]) -> tuple[bytes, str]:
    """The encoded image of a row, and its path if it has one."""
    path, content = image.get('path') or '', image.get('bytes')
    if content is None and os.path.isfile(path):
        content = Path(path).read_bytes()
    return content or b'', path


def _load(path: str, split: str, name: str | None, data_files: Any) -> Any:
    """The table of a split, mapped into memory."""
    import datasets

    saved = any(Path(path, file).is_file() for file in ('state.json', 'dataset_dict.json'))
    with rejecting(  # the library and its formats raise errors of all kinds
        f"path={path!r} with split={split!r} is not a data set that Hugging Face's `datasets` can "
        'read',
        'give a folder of save_to_disk, a folder of images, or a name on the Hub',
    ):
        if saved:
            dataset = datasets.load_from_disk(path)
            dataset = dataset[split] if isinstance(dataset, datasets.DatasetDict) else dataset
        else:
            dataset = datasets.load_dataset(path, name, split=split, data_files=data_files)
    return dataset
