"""A data set of slices of medical volumes for MMSegmentation, and its loading transforms.

The files have the layout of the Synapse data that TransUNet's authors prepared.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mmengine
import numpy as np

from anyfolder.pixels.volume_slices import (
    SLICE_SUFFIX,
    VOLUME_SUFFIX,
    number_of_slices,
    read_slice,
)
from vit_plugin.data.images import Window, apply_window, name_unreadable_file
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import DATASETS, TRANSFORMS

IGNORED = 255  # in a class map: pixels that do not count

with needed_by('VolumeSlices'):
    make_importable()
    from mmcv.transforms import BaseTransform
    from mmseg.datasets import BaseSegDataset


@DATASETS.register_module()
class VolumeSlices(BaseSegDataset):
    """Slices of volumes. A file ``NAME.npz`` has one slice, ``NAME.npy.h5`` all slices of a volume.

    Both have the arrays ``image`` and ``label``: (H, W), or (slices, H, W). Each line of
    ``ann_file`` is a NAME, as in the authors' ``lists/lists_Synapse/train.txt``. Without it, all
    files in the folder are used.

    A sample has the path of its file as ``img_path``, the index of its ``slice`` in a file with
    several, else None, and as ``case`` the NAME up to ``_slice``. By the case
    :class:`~vit_plugin.engine.SurfaceMetric` groups the slices of a volume. The pipeline needs
    :class:`LoadImageSlice` and :class:`LoadSliceAnnotations`.

    Args:
        **kwargs: arguments of MMSegmentation's ``BaseSegDataset``: ``data_root``,
            ``data_prefix=dict(img_path=...)``, ``ann_file``, ``metainfo``, ``pipeline``, ...

    Raises:
        ConfigError: if there are no files, or if a listed one is missing.
        MissingExtraError: if a volume is to be read and h5py is not installed.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def load_data_list(self) -> list[dict]:
        """One sample for each slice, in the order of the files."""
        folder = Path(self.data_prefix['img_path'])
        samples = [
            dict(
                img_path=str(path),
                slice=number,
                case=name.partition('_slice')[0],
                label_map=self.label_map,
                reduce_zero_label=self.reduce_zero_label,
                seg_fields=[],
            )
            for name, path in self._files(folder)
            for number in (range(_count(path)) if path.name.endswith(VOLUME_SUFFIX) else [None])
        ]
        if not samples:
            raise ConfigError(
                f'VolumeSlices: {str(folder)!r} has no files *{SLICE_SUFFIX} or '
                f'*{VOLUME_SUFFIX}; give their folder as data_root and '
                'data_prefix=dict(img_path=...).'
            )
        return samples

    def _files(self, folder: Path) -> Iterator[tuple[str, Path]]:
        """NAME and path of each file."""
        if not self.ann_file:
            for path in sorted(folder.glob('*')):
                if path.name.endswith((SLICE_SUFFIX, VOLUME_SUFFIX)):
                    yield path.name.removesuffix(VOLUME_SUFFIX).removesuffix(SLICE_SUFFIX), path
            return
        for name in filter(None, map(str.strip, mmengine.list_from_file(self.ann_file))):
            paths = [folder / f'{name}{suffix}' for suffix in (SLICE_SUFFIX, VOLUME_SUFFIX)]
            file = next((path for path in paths if path.is_file()), None)
            if file is None:
                raise ConfigError(
                    f'VolumeSlices: {self.ann_file!r} names {name!r}, and there is neither '
                    f'{str(paths[0])!r} nor {paths[1].name!r}; correct the list, or data_prefix.'
                )
            yield name, file


@TRANSFORMS.register_module()
class LoadImageSlice(BaseTransform):
    """Load the image of a sample of :class:`VolumeSlices`: gray (H, W), in float32 from 0 to 255.

    Args:
        window: the values that become 0 and 255; those outside are clipped. The authors' files have
            values from 0 to 1. They made them from raw computed tomography with the window
            ``(-125, 275)``, in Hounsfield units.

    Raises:
        ConfigError: if a file cannot be read, or has no array ``image``.
    """

    def __init__(self, window: Window = (0.0, 1.0)) -> None:
        self.window = window

    def transform(self, results: dict) -> dict:
        image = apply_window(_array(results, 'image'), self.window)
        return dict(results, img=image, img_shape=image.shape, ori_shape=image.shape)


@TRANSFORMS.register_module()
class LoadSliceAnnotations(BaseTransform):
    """Load the class map (H, W) of a sample of :class:`VolumeSlices`, as ``gt_seg_map``.

    In a test pipeline it should follow the resize, so that the class map keeps the resolution of
    the file, at which predictions are scored.

    The data set's ``reduce_zero_label``, and its ``label_map`` if it has only some of the classes,
    apply as in MMSegmentation's ``LoadAnnotations``.

    Raises:
        ConfigError: if a file cannot be read, has no array ``label`` of the size of the image, or
            has labels that are not whole numbers from 0 to 255.
    """

    def transform(self, results: dict) -> dict:
        label = _array(results, 'label')
        if label.shape != results['ori_shape']:
            raise ConfigError(
                f'{results["img_path"]!r}: its label has the shape {label.shape} and its image '
                f'{results["ori_shape"]}; correct the file.'
            )
        numbers = np.nan_to_num(label).clip(0, IGNORED).astype(np.uint8)
        if (wrong := label[numbers != label]).size:
            raise ConfigError(
                f'{results["img_path"]!r}: its label has the value {wrong[0]:g}; classes are whole '
                f'numbers from 0, and {IGNORED} is ignored; correct the file.'
            )
        fields = [*results.get('seg_fields', ()), 'gt_seg_map']
        return dict(results, gt_seg_map=_training_classes(results)[numbers], seg_fields=fields)


def _training_classes(results: dict) -> np.ndarray:
    """The class in training of each number in a file."""
    classes = np.arange(IGNORED + 1, dtype=np.uint8)
    if results.get('reduce_zero_label'):
        classes = np.array([IGNORED, *classes[: IGNORED - 1], IGNORED], dtype=np.uint8)
    mapped = classes.copy()
    for old, new in (results.get('label_map') or {}).items():
        mapped[classes == old] = new
    return mapped


def _count(path: Path) -> int:
    """Number of slices of a volume."""
    with name_unreadable_file(str(path)):
        return number_of_slices(path)


def _array(results: dict, name: str) -> np.ndarray:
    """The array (H, W) with this name in the file of a sample."""
    with name_unreadable_file(results['img_path']):
        return read_slice(results['img_path'], results.get('slice'), name)
