"""Data sets of the library `datasets` by Hugging Face: Arrow files that are mapped into memory."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from vit_plugin.arguments.fields import Typed
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.registry import DATASETS

from .encoded import EncodedImages


@DATASETS.register_module()
class HuggingFaceImages(EncodedImages):
    """Images with labels in a data set of Hugging Face's ``datasets``, by random access, for classification.

    Args:
        path: a folder that ``save_to_disk`` wrote, or what ``datasets.load_dataset`` takes: a folder of images, or a
            name on the Hub.
        split: the part, such as ``'train'``.
        image: the column of the images.
        label: the column of the labels; None without labels.
        name: the configuration of a data set on the Hub.
        data_files: files for a format of ``load_dataset`` (``path='parquet'``).
        classes: names of the classes. None takes those of the label's column.
        pipeline: transforms, see :class:`~vit_plugin.data.encoded.EncodedImages`.

    Raises:
        ConfigError: if the data set, the split or a column is missing or of another kind.
        MissingExtraError: if ``datasets`` is not installed.
    """

    def __init__(self, path: str, split: str = 'train', image: str = 'image', label: str | None = 'label',
                 name: str | None = None, data_files: str | Sequence[str] | dict | None = None,
                 classes: Sequence[str] | None = None, pipeline: Sequence[Typed | Callable] = ()) -> None:
        with needed_by('HuggingFaceImages'):
            import datasets  # not before it is needed: it takes seconds
        table = _load(path, split, name, data_files)
        for field, column in (('image', image), ('label', label)):
            if column is not None and column not in table.features:
                raise ConfigError(f'{field}={column!r} is no column of {path!r}, which has '
                                  f'{", ".join(table.features)}: give one of them.')
        if not isinstance(table.features[image], datasets.Image):
            raise ConfigError(f'image={image!r} of {path!r} is no column of images but {table.features[image]}: give '
                              'the column of the images, or cast it to datasets.Image.')
        kind = table.features[label] if label else None
        if label and not (isinstance(kind, datasets.ClassLabel) or getattr(kind, 'dtype', '').startswith('int')):
            raise ConfigError(f'label={label!r} of {path!r} has no integers but {kind}: give the column of the '
                              'labels, or label=None.')
        super().__init__(pipeline, classes or getattr(kind, 'names', None))
        self._path, self._image, self._label = path, image, label
        self._table = table.select_columns([one for one in (image, label) if one]).cast_column(
            image, datasets.Image(decode=False))

    def __len__(self) -> int:
        return len(self._table)

    def encoded(self, index: int) -> tuple[bytes, str, int | None]:
        row: dict[str, Any] = self._table[int(index)]
        image, label = row[self._image] or {}, row[self._label] if self._label else None
        path = image.get('path') or ''
        content = image.get('bytes')
        if content is None and os.path.isfile(path):
            with open(path, 'rb') as file:
                content = file.read()
        return content or b'', f'{self._path}[{index}] {path}'.strip(), label


def _load(path: str, split: str, name: str | None, data_files: Any) -> Any:
    """The table of a split, mapped into memory."""
    import datasets
    try:
        if any(os.path.isfile(os.path.join(path, file)) for file in ('state.json', 'dataset_dict.json')):
            saved = datasets.load_from_disk(path)
            found = saved[split] if isinstance(saved, datasets.DatasetDict) else saved
        else:
            found = datasets.load_dataset(path, name, split=split, data_files=data_files)
    except Exception as error:  # the library raises errors of all kinds, its own and those of the formats
        reason = (' '.join(str(error).split()) or type(error).__name__)[:200].rstrip('.')
        raise ConfigError(f'path={path!r} with split={split!r} is no data set that Hugging Face\'s `datasets` can read '
                          f'({reason}); give a folder of save_to_disk, a folder of images, or a name on the Hub.'
                          ) from error
    return found
